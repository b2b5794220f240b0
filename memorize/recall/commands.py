"""Which programs a command line runs, with which arguments: through wrappers, shells in shells, ``find -exec``.

``calls`` gives every stage: of ``sudo timeout 5 git push`` the calls of sudo, of timeout and of git. Pure, linear in
the line, never raises: chains of wrappers and lines inside lines are followed only so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from memorize.patterns import late
from memorize.recall import lexer, windows
from memorize.recall.words import Shell, Simple, Split, Word
from memorize.recall.wrappers import (
    CMD_LINE,
    GIT_ASKED,
    GIT_VALUED,
    JOINER_VALUED,
    JOINERS,
    LINES,
    NODE_PROGRAMS,
    POWERSHELL_LINE,
    POWERSHELLS,
    RUNNERS,
    SCRIPT_RUNNERS,
    SHELL_VALUED,
    SHELLS,
    WRAPPERS,
    Wrapper,
)

# More wrappers around one command, or lines inside lines, than anybody writes.
_WRAPPERS_MAX: Final = 12
_LINES_MAX: Final = 3
_ASSIGNMENT: Final = late(r"[A-Za-z_]\w*=")
_ENDINGS: Final = (".exe", ".cmd", ".bat", ".ps1", ".com")
_VERSIONED: Final = late(r"(python|pip|pypy)[0-9.]+")


class Call(NamedTuple):
    """A program that is run: its name without directory and ending, its arguments, and where in the line.

    ``wraps``: the next call is the command that this one runs.
    """

    name: str
    args: tuple[Word, ...]
    at: int = 0
    wraps: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The arguments as texts."""
        return tuple(word.text for word in self.args)


def calls(line: str, shell: Shell = "posix") -> list[Call]:
    """Return the programs that a command line runs, in the order in which they stand in it."""
    return list(_calls(line, shell, 0))


def split(line: str, shell: Shell = "posix") -> Split:
    """Return the simple commands of a line or script of this shell."""
    if shell == "powershell":
        return windows.split_powershell(line)
    return windows.split_cmd(line) if shell == "cmd" else lexer.split(line)


def program_name(word: str) -> str:
    """Return the name of a program without directory, ending and version: ``/usr/bin/python3.11`` is python."""
    name = word.replace("\\", "/").rsplit("/", 1)[-1]
    if name.lower().endswith(_ENDINGS):
        name = name.lower().rsplit(".", 1)[0]
    if "@" in name[1:]:  # npx prisma@5
        name = name[: name.index("@", 1)]
    found = _VERSIONED.fullmatch(name)
    return found[1] if found else name


def calls_of(command: Simple, shell: Shell = "posix") -> list[Call]:
    """Return the programs that one simple command runs, the outermost first."""
    return list(_stages(command.words, command.at, shell, 0))


def git_words(call: Call) -> tuple[str, ...]:
    """Return git's arguments from the sub-command on; none when there is no sub-command, or git is only asked."""
    start = git_start(call)
    return call.texts[start:] if start >= 0 else ()


def git_start(call: Call) -> int:
    """Return the place of git's sub-command among its arguments, -1 as ``git_words`` returns none."""
    at = 0
    while at < len(call.args):
        text = call.args[at].text
        if not text.startswith("-"):
            return at
        if text in GIT_ASKED:
            return -1
        at += 2 if text in GIT_VALUED else 1
    return -1


def _calls(line: str, shell: Shell, level: int) -> Iterator[Call]:
    for command in sorted(split(line, shell).commands, key=lambda one: one.at):
        yield from _stages(command.words, command.at, shell, level)


def _stages(words: Sequence[Word], at: int, shell: Shell, level: int) -> Iterator[Call]:
    """Yield the call of these words and of the commands that it runs."""
    for _ in range(_WRAPPERS_MAX):
        if not words:
            return
        name, args = program_name(words[0].text), tuple(words[1:])
        if words[0].dynamic and "$" in name:
            return  # nobody knows which program that will be; of "$HOME/bin/git" the name is known
        name = name if shell == "posix" else name.lower()
        inner = _inner(name, args)
        yield Call(name, args, at, wraps=bool(inner))
        if level < _LINES_MAX:
            yield from _lines(name, args, at, shell, level + 1)
        if not inner:
            return
        words = inner


def _inner(name: str, args: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of the command that a call runs, none when it runs none."""
    if name in ("python", "pypy", "py"):
        return _module(args)
    if name in ("start-process", "saps"):
        return _started(args)
    if name in ("docker", "podman") and (at := _place(args, "compose")) >= 0:
        name, args = "docker-compose", args[at + 1 :]
    wrapper = WRAPPERS.get(name)
    start = _begin(args, wrapper) if wrapper is not None else -1
    if start < 0 and name in RUNNERS:
        start = _first(args, RUNNERS[name])
    return args[start:] if start >= 0 else ()


def _place(args: Sequence[Word], wanted: str) -> int:
    """Return the place of a sub-command before which only options stand, -1 when another word comes first."""
    for at, word in enumerate(args):
        if word.text == wanted:
            return at
        if not word.text.startswith("-"):
            break
    return -1


def _first(args: Sequence[Word], valued: frozenset[str]) -> int:
    """Return the place of the first word that is no option when it is a program that such a runner finds, else -1."""
    at = 0
    while at < len(args) and args[at].text.startswith("-"):
        at += 2 if args[at].text in valued else 1
    return at if at < len(args) and args[at].text in NODE_PROGRAMS else -1


def _begin(args: Sequence[Word], wrapper: Wrapper) -> int:
    """Return the place of the wrapped command among a wrapper's arguments, -1 when there is none."""
    operands, after = wrapper.operands, bool(wrapper.after)
    at = 0
    while at < len(args):
        text = args[at].text
        if text == "--":
            at += 1
            return at + operands if not after and at + operands < len(args) else -1
        if text in wrapper.looks:
            return -1
        if text.startswith("-") and (len(text) > 1 or wrapper.assigns):  # "env -": nothing of the environment
            at += 2 if _takes_next(text, wrapper.valued) else 1
        elif after:
            if text not in wrapper.after:
                return -1
            after = False
            at += 1
        elif operands:
            operands -= 1
            at += 1
        elif wrapper.assigns and _ASSIGNMENT.match(text):
            at += 1
        else:
            return at
    return -1


def _takes_next(option: str, valued: frozenset[str]) -> bool:
    """Tell whether the next word is the value of this option, or of the last one of a cluster: ``sudo -Eu me``."""
    if option in valued or option.startswith("--"):
        return option in valued
    letters = [f"-{letter}" for letter in option[1:]]
    return next((place == len(letters) for place, one in enumerate(letters, 1) if one in valued), False)


def _module(args: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of ``python -m <module> ...``: the module's name stands for its program."""
    for at, word in enumerate(args):
        if word.text == "-m":
            return args[at + 1 :]
        if not word.text.startswith("-") or word.text.startswith("-c"):
            break
    return ()


def _started(args: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of the program that PowerShell's ``Start-Process`` starts."""
    program: list[Word] = []
    rest: list[Word] = []
    into = program
    for word in args:
        option = word.text.lower()
        if option in ("-argumentlist", "-args"):
            into = rest
        elif option == "-filepath":
            into = program
        elif option.startswith("-") and word.plain:
            into = []  # some other option and its value
        else:
            into += [Word(part.strip("'\""), word.dynamic, 1) for part in re.split(r"[\s,]+", word.text) if part]
            into = rest if into is program else into
    return (*program[:1], *program[1:], *rest)


def _lines(name: str, args: tuple[Word, ...], at: int, shell: Shell, level: int) -> Iterator[Call]:
    """Yield the calls of the lines that a call has another shell run."""
    if name == "find":
        for words in _executed(args):
            yield from _stages(words, at, shell, level)
        return
    if name == "git":
        words = args[git_start(Call(name, args)) :] if args else ()
        text, inner = (_in_submodules(words), shell) if words[:1] and words[0].text == "submodule" else ("", shell)
    else:
        text, inner = _line(name, args, shell)
    if text:
        for call in _calls(text, inner, level):
            yield call._replace(at=at)


def _line(name: str, args: tuple[Word, ...], shell: Shell) -> tuple[str, Shell]:
    if name in SHELLS:
        return _after_c(args), "posix"
    if name in POWERSHELLS:
        return _after_option(args, POWERSHELL_LINE), "powershell"
    if name == "cmd":
        return _after_option(args, CMD_LINE), "cmd"
    if name in JOINERS:
        start = _begin(args, Wrapper(JOINER_VALUED))
        return " ".join(word.text for word in args[start:]) if start >= 0 else "", shell
    if name == "trap":
        return args[0].text if len(args) > 1 else "", shell
    for place, word in enumerate(args if name in LINES else ()):
        option, equals, value = word.text.partition("=")
        if equals and option[:2] == "--" and option in LINES[name]:
            return value, "posix"
        if place == len(args) - 1:
            break
        text = word.text
        if text in LINES[name] or (text[:1] == "-" and text[1:2] != "-" and f"-{text[-1]}" in LINES[name]):
            return args[place + 1].text, "posix"
    return "", shell


def _in_submodules(words: Sequence[Word]) -> str:
    """Return the line that ``git submodule foreach`` runs, "" when it is another sub-command."""
    rest = [word.text for word in words[1:] if word.text not in ("--recursive", "-q", "--quiet")]
    return " ".join(rest[1:]) if rest[:1] == ["foreach"] else ""


def script(call: Call) -> Call | None:
    """Return the script that an interpreter is given as a call of its own, None when there is none."""
    if call.name not in SCRIPT_RUNNERS and call.name not in SHELLS:
        return None
    at = 0  # behind an option for a line or a module nothing is a script
    while at < len(call.args) and call.args[at].text.startswith(("-", "+")):
        text = call.args[at].text
        if text[:2] != "--" and any(letter in text for letter in ("c" if call.name in SHELLS else "cem")):
            return None
        at += 2 if text in SHELL_VALUED else 1
    if at >= len(call.args) or call.args[at].dynamic:
        return None
    return Call(program_name(call.args[at].text), call.args[at + 1 :], call.at)


def _after_c(args: Sequence[Word]) -> str:
    """Return the line after a shell's ``-c``, "" without one. Other options may be in one word with it."""
    asked = False
    at = 0
    while at < len(args):
        text = args[at].text
        if not text.startswith(("-", "+")) or text in ("-", "--"):
            at += text == "--"
            return args[at].text if asked and at < len(args) else ""
        short = text[1:2] != "-"
        asked = asked or (short and text[0] == "-" and "c" in text)
        at += 2 if text in SHELL_VALUED or (short and text[-1] in "oO") else 1
    return ""


def _after_option(args: Sequence[Word], named: frozenset[str]) -> str:
    """Return everything after one of these options, in any case, as one line."""
    for at, word in enumerate(args):
        if word.text.lower() in named:
            return " ".join(one.text for one in args[at + 1 :])
    return ""


def _executed(args: tuple[Word, ...]) -> Iterator[tuple[Word, ...]]:
    """Yield the commands that ``find`` runs on what it finds."""
    start = -1
    for at, word in enumerate(args):
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            start = at + 1
        elif word.text in (";", "+") and start >= 0:
            yield args[start:at]
            start = -1
    if start >= 0:
        yield args[start:]


def deletes(call: Call) -> bool:
    """Tell whether a call of ``find`` or ``xargs`` deletes whatever it is given, one by one."""
    inner = _executed(call.args) if call.name == "find" else [_inner(call.name, call.args)]
    return any(words and program_name(words[0].text) in ("rm", "unlink", "shred") for words in inner)
