"""Which triggers a command line or an edit fires. Pure and linear; never raises.

A trigger is the name of an action: a built-in one (``deeds``), one that a project declares in ``.memorize.toml``, or
``edit:<glob>`` for files. Only what really runs fires: not a text that speaks of a command, nor ``--help``, ``-h``
where it asks for help, ``--dry-run``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from memorize.patterns import late
from memorize.recall import commands
from memorize.recall.commands import Call
from memorize.recall.deeds import (
    DEEDS,
    DRY,
    GOALS,
    GOALS_VALUED,
    HELP,
    PIP_VALUED,
    WINDOWS_DELETERS,
    Deed,
    valued_before,
)
from memorize.recall.globs import matches
from memorize.recall.words import Shell, Word
from memorize.recall.wrappers import GIT_ASKED

Own = Mapping[str, Sequence[str]]

EDIT: Final = "edit:"
NAME_CHARS_MAX: Final = 40
GLOB_CHARS_MAX: Final = 200
# A project that declares more has made a mistake; every command is compared with each of them.
_OWN_MAX: Final = 64
_OWN_COMMANDS_MAX: Final = 16
_ALIASES_MAX: Final = 10
_NAME: Final = late(r"[^\W_]+(?:[-_][^\W_]+)*")
# One between names, as on Windows, also before "*.ts"; before another sign of a glob it takes that sign's meaning away.
_BACKSLASH: Final = late(r"\\(?![?\[\]{}!\\]|\*(?![*./\\]|\Z))")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NO_OWN: Final[Own] = MappingProxyType({})


def triggers_of(
    command: str,
    *,
    aliases: Mapping[str, str] = _NOTHING,
    own: Own = _NO_OWN,
    shell: Shell = "posix",
) -> tuple[str, ...]:
    """Return the triggers that a command line fires, each once, in the order in which they first occur.

    ``aliases`` are those of git, name -> expansion; ``own`` the project's triggers, name -> commands such as
    ``"make deploy"``.
    """
    found: dict[str, None] = {}
    table = _by_program(own)
    for call in commands.calls(command, shell):
        for name in _fired(call, aliases, table, 0):
            found.setdefault(name)
    return tuple(found)


def edit_triggers(path: str, triggers: Iterable[str]) -> tuple[str, ...]:
    """Return those of the ``edit:<glob>`` triggers that an edit of this file fires.

    ``path`` is relative to the repository's root; globs mean what they mean in a ``.gitignore``.
    """
    globs = [(name, name.removeprefix(EDIT)) for name in triggers if name.startswith(EDIT)]
    return tuple(name for name, glob in globs if glob == path or matches(glob, path))


def normal_name(text: str) -> str:
    """Return a trigger's name as it is stored and compared: trimmed, lower case, NFC, ``-`` for spaces.

    The glob of an ``edit:`` trigger keeps its case. Nothing else is checked.
    """
    text = unicodedata.normalize("NFC", text).strip()
    if text[: len(EDIT)].lower() == EDIT:
        return EDIT + _BACKSLASH.sub("/", text[len(EDIT) :].strip()).removeprefix("./")
    return "-".join(text.lower().split())


def is_name(text: str) -> bool:
    """Tell whether a normal name can be one of a trigger: words of letters and digits joined by ``-``, or a glob."""
    if text.startswith(EDIT):
        glob = text.removeprefix(EDIT)
        return 0 < len(glob) <= GLOB_CHARS_MAX and glob.isprintable()
    return len(text) <= NAME_CHARS_MAX and _NAME.fullmatch(text) is not None


def own_triggers(marker: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return what ``[triggers]`` of a ``.memorize.toml`` declares; what makes no sense is left out.

    ``marker`` is what the file says (``Place.marker``): ``deploy = ["make deploy", "fly deploy"]``, or one as a text.
    """
    section = marker.get("triggers")
    found: dict[str, tuple[str, ...]] = {}
    for name, value in section.items() if isinstance(section, Mapping) else ():
        listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        lines = tuple(" ".join(one.split()) for one in listed if isinstance(one, str) and one.strip())
        key = normal_name(name) if isinstance(name, str) else ""
        if lines and is_name(key) and not key.startswith(EDIT) and len(found) < _OWN_MAX:
            found[key] = lines[:_OWN_COMMANDS_MAX]
    return found


class Options(NamedTuple):
    """Arguments sorted: what was given as an option (clusters such as ``-am`` letter by letter), and the rest."""

    given: frozenset[str]
    operands: tuple[Word, ...]


def options(args: Sequence[Word], valued: frozenset[str]) -> Options:
    """Sort arguments; the value of a ``valued`` option is neither an option nor an operand."""
    given: set[str] = set()
    operands: list[Word] = []
    at = 0
    while at < len(args):
        text = args[at].text
        at += 1
        if text == "--":
            operands += args[at:]
            break
        if not text.startswith("-") or text == "-":
            operands.append(args[at - 1])
            continue
        name, _, value = text.partition("=")
        if name in DRY and value in ("none", "false"):
            continue
        given.add(name)
        if text.startswith("--") or len(text) == 2 or name in valued:
            at += name in valued and name == text
            continue
        for place, letter in enumerate(text[1:], 1):
            given.add(f"-{letter}")
            if f"-{letter}" in valued:
                at += place == len(text) - 1
                break
    return Options(frozenset(given), tuple(operands))


_Table = Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]


def _by_program(own: Own) -> _Table:
    """Return program -> (trigger, words behind the program) of a project's own triggers."""
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for name, lines in own.items():
        for program, *rest in filter(None, (line.split() for line in lines)):
            found.setdefault(commands.program_name(program), []).append((name, tuple(rest)))
    return found


def _fired(call: Call, aliases: Mapping[str, str], own: _Table, depth: int) -> Iterator[str]:
    """Yield the triggers of one call, the project's own ones last."""
    expanded = _alias(call, aliases) if call.name == "git" and depth < _ALIASES_MAX else None
    if expanded is not None:
        # An alias that names itself is none to git: the real sub-command is meant.
        rest = {name: line for name, line in aliases.items() if name != expanded.name}
        for inner in expanded.calls:
            yield from _fired(inner, rest, own, depth + 1)
    else:
        for deed in DEEDS.get(call.name, ()):
            if _does(call, deed):
                yield deed.trigger
        yield from _special(call)
    for one in filter(None, (call, commands.script(call)) if own else ()):
        for name, words in own.get(one.name, ()):
            if _runs(one, words):
                yield name


class _Alias(NamedTuple):
    name: str
    calls: tuple[Call, ...]


def _alias(call: Call, aliases: Mapping[str, str]) -> _Alias | None:
    """Return what a call of git through one of its aliases runs, None when it goes through none."""
    start = commands.git_start(call)
    if start < 0:
        return None
    name, rest = call.args[start].text, call.args[start + 1 :]
    line = _given_alias(call.args[:start], name) or aliases.get(name) or aliases.get(name.lower())
    if not line or name in _GIT_COMMANDS:
        return None
    if line.startswith("!"):
        inner = commands.calls(line[1:])
        # The arguments go to the last command of the line.
        last = [inner[-1]._replace(args=inner[-1].args + rest)] if inner else []
        return _Alias(name.lower(), (*inner[:-1], *last))
    parts = commands.split(line).commands
    words = parts[0].words if parts else ()
    return _Alias(name.lower(), (Call("git", (*call.args[:start], *words, *rest), call.at),))


def _given_alias(args: Sequence[Word], name: str) -> str:
    """Return an alias that ``git -c alias.name=...`` gives for this one call, "" without one."""
    wanted = f"alias.{name}=".lower()
    for option, word in pairwise(args):
        if option.text == "-c" and word.text.lower().startswith(wanted):
            return word.text[len(wanted) :]
    return ""


def _does(call: Call, deed: Deed) -> bool:
    """Tell whether a call does what a row of the table says."""
    at = _descended(call, deed)
    if at < 0:
        return False
    found = options(call.args[at:], deed.valued)
    if not found.given.isdisjoint(deed.unless) or _only_tells(found.given, deed.valued):
        return False
    if deed.needs and found.given.isdisjoint(deed.needs):
        return False
    return len(found.operands) >= deed.operands


def _only_tells(given: frozenset[str], valued: frozenset[str]) -> bool:
    return not given.isdisjoint(HELP - valued) or not given.isdisjoint(DRY)


def _descended(call: Call, deed: Deed) -> int:
    """Return the place behind the sub-commands of a row, -1 when others stand there or help was asked for before."""
    valued = valued_before(call.name)
    path = iter(deed.path)
    wanted = next(path, None)
    at = 0
    while wanted is not None:
        if at >= len(call.args):
            return -1
        text = call.args[at].text
        if text.startswith("-") or (text.startswith("+") and call.name == "cargo"):
            if text in HELP or (text in GIT_ASKED and call.name == "git"):
                return -1
            at += 2 if text in valued else 1
            continue
        if wanted not in ("*", text):
            return -1
        at += 1
        wanted = next(path, None)
        valued |= deed.valued
    return at


def _by_goals(call: Call) -> Iterator[str]:
    """Yield the triggers of what a build tool is told to do, in whatever order."""
    for trigger, programs in GOALS.items():
        if call.name in programs:
            found = options(call.args, GOALS_VALUED)
            goals = {word.text.rsplit(":", 1)[-1] if "gradle" in call.name else word.text for word in found.operands}
            if goals & programs[call.name] and not _only_tells(found.given, frozenset()):
                yield trigger


def _special(call: Call) -> Iterator[str]:
    """Yield the triggers that options alone do not tell."""
    yield from _by_goals(call)
    if call.name == "git":
        start = commands.git_start(call)
        if start >= 0 and call.args[start].text == "push":
            found = options(
                call.args[start + 1 :], frozenset({"-o", "--push-option", "--receive-pack", "--exec", "--repo"})
            )
            gone = any(re.match(r"\+?:.", word.text) for word in found.operands[1:])
            if gone and not _only_tells(found.given, frozenset()) and "-n" not in found.given:
                yield "branch-delete"
    elif call.name == "skopeo" and _descended(call, Deed("", ("copy",))) > 0:
        if call.texts[-1].startswith("docker://") and not _only_tells(frozenset(call.texts), frozenset()):
            yield "container-push"
    elif call.name in ("find", "xargs") and commands.deletes(call):
        yield "destructive-delete"
    elif call.name in ("pip", "uv") and _adds_packages(call):
        yield "dependency-add"
    elif call.name == "go" and _descended(call, Deed("", ("get",))) > 0:
        found = options(call.args[1:], frozenset({"-C", "-modfile", "-mod", "-tags"}))
        if any(not word.text.startswith(".") for word in found.operands) and not _only_tells(found.given, frozenset()):
            yield "dependency-add"
    elif call.name in ("python", "php", "manage.py", "artisan") and _runs_migrations(call):
        yield "migration-run"
    elif call.name in WINDOWS_DELETERS and any(_recurses(text.lower()) for text in call.texts):
        yield "destructive-delete"


def _recurses(option: str) -> bool:
    """Tell whether an option of a Windows command takes what lies below: ``/s``, ``-Recurse``, also shortened."""
    return option in ("/s", "/s/q", "/q/s") or (len(option) > 1 and "-recurse".startswith(option.split(":")[0]))


def _adds_packages(call: Call) -> bool:
    """Tell whether pip installs something by name, not just what a file lists or the project itself."""
    path = ("install",) if call.name == "pip" else ("pip", "install")
    at = _descended(call, Deed("", path))
    if at < 0:
        return False
    found = options(call.args[at:], PIP_VALUED)
    named = any(_is_package(word.text) for word in found.operands)
    return named and not _only_tells(found.given, frozenset())


def _is_package(name: str) -> bool:
    """Tell whether a name is that of a package somewhere else: no path, and not the installers themselves."""
    here = name.startswith((".", "/", "~")) or ("/" in name and "://" not in name) or name.endswith(".whl")
    return not here and name not in ("pip", "setuptools", "wheel")


def _runs_migrations(call: Call) -> bool:
    """Tell whether a project's own script runs its migrations: ``manage.py migrate``, ``artisan migrate``."""
    named = (call.name,) if call.name in ("manage.py", "artisan") else ()
    texts = [text for text in (*named, *call.texts) if not text.startswith("-")]
    script = commands.program_name(texts[0]) if texts else ""
    asked = not _only_tells(frozenset(call.texts), frozenset()) and not {"--plan", "--check", "--pretend"} & {
        *call.texts
    }
    wanted = {
        "manage.py": ("migrate",),
        "console": ("doctrine:migrations:migrate",),
        "artisan": ("migrate", "migrate:fresh", "migrate:refresh", "migrate:rollback"),
    }
    return asked and script in wanted and texts[1:2] != [] and texts[1] in wanted[script]


def _runs(call: Call, words: tuple[str, ...]) -> bool:
    """Tell whether a call of a program is one of a project's own commands: those words follow in that order.

    Options may stand between them, with or without a value; options among the words must be given somewhere.
    """
    texts = call.texts
    if texts[-1:] in (("-h",), ("--help",)) or _only_tells(frozenset(texts) - {"-h", "-?"}, frozenset()):
        return False
    if any(word.startswith("-") and word not in texts for word in words):
        return False
    wanted = [word for word in words if not word.startswith("-")]
    valued = valued_before(call.name)
    after_option = False
    for at, text in enumerate(texts):
        if not wanted:
            return True
        if text.startswith("-") or (at and texts[at - 1] in valued):
            after_option = text.startswith("-") and "=" not in text
        elif text == wanted[0]:
            wanted.pop(0)
            after_option = False
        elif not after_option:
            return False
        else:
            after_option = False
    return not wanted


# Names that git knows itself: an alias cannot take one of them.
_GIT_COMMANDS: Final = frozenset(
    "add am apply archive bisect blame branch bundle checkout cherry cherry-pick clean clone commit config describe"
    " diff difftool fetch format-patch gc grep help init log merge mergetool mv notes pull push range-diff rebase"
    " reflog remote repack replace reset restore revert rm shortlog show sparse-checkout stash status submodule switch"
    " tag worktree".split()
)
