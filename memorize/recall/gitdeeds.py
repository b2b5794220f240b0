"""Git commands that can take along what other sessions did: which of them a command line runs, and what they reach.

Pure, and no more than a reading of the words: what a shell puts in only when it runs counts as everything.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Final, NamedTuple

from memorize.recall.commands import Call, calls
from memorize.recall.words import Shell, Word

# What a deed reaches: files of the checkout it works in, the commits of branches, or a whole other checkout.
TREE: Final = "tree"
BRANCH: Final = "branch"
WORKTREE: Final = "worktree"

_GLOBALS: Final = frozenset("-C -c --git-dir --work-tree --namespace --exec-path --config-env".split())
_LOOKS: Final = frozenset({"--help", "-h", "--dry-run"})
_REBASE_GOES_ON: Final = frozenset({"--abort", "--continue", "--skip", "--quit", "--edit-todo", "--show-current-patch"})
_STASH_TAKES: Final = frozenset({"push", "save", "pop", "apply", "drop", "clear"})
_PUSH_VALUED: Final = frozenset({"-o", "--push-option", "--receive-pack", "--exec", "--repo"})
_RESTORE_VALUED: Final = frozenset({"-s", "--source", "--conflict", "--pathspec-from-file"})
_STASH_VALUED: Final = frozenset({"-m", "--message", "--pathspec-from-file"})


class Deed(NamedTuple):
    """A command that may destroy, for people (``label``), and what it reaches.

    ``names``: paths (of a tree), branches or a checkout; none = all of the tree, the branch that is checked out.
    ``folder`` is the directory it works in, absolute.
    """

    label: str
    reach: str
    names: tuple[str, ...]
    folder: str

    def within(self, root: str, inside: str) -> Deed:
        """Return it with paths relative to the top of the checkout ``root``; ``inside`` is where in it the deed works.

        "" means all of it. Checkouts become absolute paths.
        """
        if self.reach == WORKTREE:
            return self._replace(names=tuple(_normal(self.folder, name) for name in self.names) + self.names)
        if self.reach != TREE:
            return self
        found = []
        for name in self.names:
            name = name.removeprefix(":/") if name.startswith(":/") else posixpath.join("/", inside, name)
            path = posixpath.normpath(name if name.startswith("/") else f"/{name}")
            if path.startswith(f"{root}/") or path == root:
                path = path[len(root) :] or "/"
            found.append("" if any(char in path for char in "*?[$") else path.strip("/"))
        return self._replace(names=tuple(found))


class _Args(NamedTuple):
    """Options without values, operands before ``--``, and paths behind it."""

    options: frozenset[str]
    operands: tuple[str, ...]
    paths: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Tell whether one of these options stands there, short ones also in a cluster."""
        return any(name in self.options for name in names)


def deeds(line: str, cwd: str, shell: Shell = "posix") -> list[Deed]:
    """Return the destructive git commands of a line that is run in ``cwd`` (absolute), in order."""
    if "git" not in line:
        return []
    found, folder = [], cwd
    for call in calls(line, shell):
        if call.name == "cd" and len(call.args) == 1 and not call.args[0].dynamic:
            folder = _normal(folder, call.args[0].text)
        elif call.name == "git":
            found += _git(call, folder)
    return found


def _git(call: Call, folder: str) -> list[Deed]:
    words = list(call.args)
    while words and words[0].text.startswith("-"):
        option = words.pop(0).text
        if option in _GLOBALS and words:
            value = words.pop(0)
            if option == "-C" and not value.dynamic:
                folder = _normal(folder, value.text)
    if not words or (found := _READERS.get(words[0].text)) is None or any(word.text in _LOOKS for word in words[1:]):
        return []
    deed = found(words[1:])
    return [] if deed is None else [deed._replace(folder=folder)]


def _normal(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name))


def _parsed(words: Sequence[Word], valued: frozenset[str] = frozenset()) -> _Args:
    options, operands, paths = set[str](), list[str](), list[str]()
    rest = iter(words)
    behind = False
    for word in rest:
        text = "$" if word.dynamic else word.text
        if behind:
            paths.append(text)
        elif text == "--":
            behind = True
        elif text.startswith("--"):
            options.add(text.partition("=")[0])
            if text in valued:
                next(rest, None)
        elif text.startswith("-") and len(text) > 1:
            options.update(f"-{letter}" for letter in text[1:])
            if text in valued:
                next(rest, None)
        else:
            operands.append(text)
    return _Args(frozenset(options), tuple(operands), tuple(paths))


def _deed(label: str, reach: str, names: Sequence[str] = ()) -> Deed:
    return Deed(f"git {label}", reach, tuple(names), "")


def _reset(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words)
    hard = next((name for name in ("--hard", "--merge") if args.has(name)), "")
    return _deed(f"reset {hard}", TREE) if hard else None


def _clean(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words, frozenset({"-e", "--exclude"}))
    if not args.has("-f", "--force") or args.has("-n"):
        return None
    return _deed("clean", TREE, (*args.operands, *args.paths))


def _checkout(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words, frozenset({"-b", "-B", "--orphan", "--conflict", "--pathspec-from-file"}))
    if args.has("-b", "-B", "--orphan"):
        return None
    if args.paths:
        return _deed("checkout of files", TREE, args.paths)
    if args.has("-f", "--force"):
        return _deed("checkout --force", TREE)
    # A name may be a branch's as well: it matters only where it is that of a file somebody works on.
    return _deed("checkout of files", TREE, args.operands) if args.operands else None


def _restore(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words, _RESTORE_VALUED)
    if args.has("-S", "--staged") and not args.has("-W", "--worktree"):
        return None
    return _deed("restore", TREE, (*args.operands, *args.paths) or ("",))


def _switch(words: Sequence[Word]) -> Deed | None:
    forced = _parsed(words).has("-f", "--force", "--discard-changes")
    return _deed("switch --discard-changes", TREE) if forced else None


def _stash(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words, _STASH_VALUED)
    verb = args.operands[0] if args.operands else "push"
    return _deed(f"stash {verb}", TREE, args.paths) if verb in _STASH_TAKES else None


def _branch(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words)
    delete = args.has("-D") or (args.has("-d", "--delete") and args.has("-f", "--force"))
    return _deed("branch -D", BRANCH, args.operands) if delete and args.operands else None


def _rebase(words: Sequence[Word]) -> Deed | None:
    return None if _parsed(words).options & _REBASE_GOES_ON else _deed("rebase", BRANCH)


def _worktree(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words)
    names = (*args.operands[1:], *args.paths)
    return _deed("worktree remove", WORKTREE, names) if args.operands[:1] == ("remove",) and names else None


def _push(words: Sequence[Word]) -> Deed | None:
    args = _parsed(words, _PUSH_VALUED)
    refs = (*args.operands[1:], *args.paths)
    forced = args.has("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror")
    if args.has("-n") or not (forced or any(ref.startswith("+") for ref in refs)):
        return None
    names = [ref.removeprefix("+").rpartition(":")[2].removeprefix("refs/heads/") for ref in refs]
    return _deed("push --force", BRANCH, () if any(name in ("HEAD", "$", "@") for name in names) else names)


_READERS: Final = {
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "restore": _restore,
    "switch": _switch,
    "stash": _stash,
    "branch": _branch,
    "rebase": _rebase,
    "worktree": _worktree,
    "push": _push,
}
