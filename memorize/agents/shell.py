"""Which shell commands only look, and which change something: a small lexer and a table of programs.

Wrong answers are cheap in one direction only: a reading command kept is one observation too many, a changing one
dropped is lost for good. So whatever is not known to be reading counts as changing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from memorize.agents import programs

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_HARMLESS_TARGETS: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "nul", "NUL", "$null"})
_CURL_CHANGES: Final = re.compile(
    r"-[a-zA-Z]*[XdFToO]|--(?:request|data.*|json|form.*|upload-file|output.*|remote-name.*)(?:=.*)?"
)
_HEREDOC: Final = re.compile(r"<<-?\s*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([\w.-]+))")
_NESTING_MAX: Final = 8
# What means nothing to a shell: the rest of a word, and of a text in double quotes. Taken in one step.
_PLAIN: Final = re.compile(r"[^'\"\\`$ \t\r\n;&|()<>]*")
_QUOTED: Final = re.compile(r"[^\"\\`$]*")


class Command(NamedTuple):
    """One simple command: its words without quotes, and whether it writes to a file by redirection."""

    words: tuple[str, ...]
    writes: bool


def reads_only(command: str) -> bool:
    """Tell whether every part of a command line is known to look only."""
    parts = split(command)
    return bool(parts) and all(_reads(part) for part in parts)


def answers_only(command: str) -> bool:
    """Tell whether the last part of a command line is one whose exit status 1 is an answer and not a failure."""
    parts = split(command)
    return bool(parts) and bool(parts[-1].words) and _name(parts[-1].words[0]) in programs.ANSWERERS


def runs_git(command: str, *subcommands: str) -> bool:
    """Tell whether some part of a command line is git with one of these sub-commands."""
    for part in split(command):
        words = _unwrapped(part.words)
        if words and _name(words[0]) == "git" and _git_rest(words[1:])[:1] and _git_rest(words[1:])[0] in subcommands:
            return True
    return False


def split(command: str, depth: int = 0) -> list[Command]:
    """Split a command line into its simple commands, those of substitutions included.

    An unclosed quote or a nesting deeper than any person writes gives one command that writes: not understood.
    """
    if depth > _NESTING_MAX:
        return [Command((), True)]
    return _Lexer(command, depth).run()


class _Lexer:
    """Reads one command line from left to right. Here-documents are stepped over, substitutions read as commands."""

    def __init__(self, text: str, depth: int) -> None:
        self.text, self.depth, self.at = text, depth, 0
        self.done: list[Command] = []
        self.words: list[str] = []
        self.word: list[str] | None = None
        self.writes = False
        self.target = False  # the next word is where a redirection writes to
        self.skip_word = False  # the next word is where a redirection reads from
        self.heredocs: list[str] = []

    def run(self) -> list[Command]:
        """Return the simple commands."""
        while self.at < len(self.text):
            if not self._step(self.text[self.at]):
                return [*self.done, Command((), True)]
        self._end_command()
        return self.done

    def _step(self, char: str) -> bool:
        """Take what begins at this character. False: it never ends."""
        if char in "'\"":
            return self._quoted(char)
        if char == "\\":
            if self.text[self.at + 1 : self.at + 2] != "\n":
                self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 2
        elif self._expands(self.at):
            self.at = self._expansion(self.at)
            self._add("$")
            return self.at >= 0
        elif char in " \t\r":
            self._end_word()
            self.at += 1
        elif char == "#" and self.word is None:
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end
        elif char in ";&|()\n":
            self._operator(char)
        elif char in "<>":
            return self._redirection(char)
        else:
            start, self.at = self.at, _end(_PLAIN, self.text, self.at + 1)
            self._add(self.text[start : self.at])
        return True

    def _add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def _quoted(self, quote: str) -> bool:
        if quote == "'":
            start, end = self.at + 1, self.text.find("'", self.at + 1)
            self.at = end + 1
            self._add(self.text[start:end])
            return end >= 0
        at = self.at + 1
        kept: list[str] = []
        while at < len(self.text) and self.text[at] != '"':
            if self.text[at] == "\\":
                kept.append(self.text[at + 1 : at + 2])
                at += 2
            elif self._expands(at):
                at = self._expansion(at)
                if at < 0:
                    return False
            else:
                start, at = at, _end(_QUOTED, self.text, at + 1)
                kept.append(self.text[start:at])
        self._add("".join(kept))
        self.at = at + 1
        return at < len(self.text)

    def _matching(self, at: int) -> int:
        """Return where the parenthesis closes that was opened before ``at``, or -1. Quotes inside are respected."""
        level, quote = 1, ""
        while at < len(self.text):
            char = self.text[at]
            if char == "\\" and quote != "'":
                at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char in "()":
                level += 1 if char == "(" else -1
                if level == 0:
                    return at
            at += 1
        return -1

    def _expands(self, at: int) -> bool:
        return self.text[at] == "`" or self.text.startswith("$(", at)

    def _expansion(self, at: int) -> int:
        """Read the substitution that begins here as commands of its own; return where it ends, -1 for never."""
        if self.text.startswith("$((", at):
            end = self.text.find("))", at)
            return end + 2 if end >= 0 else -1
        if self.text[at] == "`":
            start, end = at + 1, self.text.find("`", at + 1)
        else:
            start, end = at + 2, self._matching(at + 2)
        if end < 0:
            return -1
        self.done.extend(split(self.text[start:end], self.depth + 1))
        return end + 1

    def _operator(self, char: str) -> None:
        if char == "&" and self.text.startswith("&>", self.at):  # bash: both streams to a file
            self._end_word()
            self.target = True
            self.at += 3 if self.text.startswith("&>>", self.at) else 2
            return
        self._end_command()
        self.at += 1
        if char == "\n":
            self._step_over_heredocs()

    def _redirection(self, char: str) -> bool:
        if self.word is not None and "".join(self.word).isdigit():
            self.word = None  # the number of a descriptor
        self._end_word()
        heredoc = _HEREDOC.match(self.text, self.at)
        if heredoc and not self.text.startswith("<<<", self.at):
            self.heredocs.append(next(name for name in heredoc.groups() if name))
            self.at = heredoc.end()
            return True
        if self.text[self.at : self.at + 2] in ("<(", ">("):
            end = self._matching(self.at + 2)
            self.done.extend(split(self.text[self.at + 2 : end], self.depth + 1) if end >= 0 else ())
            self.at = end + 1
            return end >= 0
        while self.at < len(self.text) and self.text[self.at] in "<>|":
            self.at += 1
        if self.text.startswith("&", self.at):  # a descriptor for a descriptor writes nothing new
            self.at += 1
            self.skip_word = True
        elif char == "<":
            self.skip_word = True
        else:
            self.target = True
        return True

    def _step_over_heredocs(self) -> None:
        for name in self.heredocs:
            end = re.compile(rf"^\t*{re.escape(name)}[ \t\r]*$", re.MULTILINE).search(self.text, self.at)
            self.at = len(self.text) if end is None else end.end()
        self.heredocs.clear()

    def _end_word(self) -> None:
        if self.word is None:
            return
        word = "".join(self.word)
        self.word = None
        if self.target:
            self.writes = self.writes or word not in _HARMLESS_TARGETS
        elif not self.skip_word:
            self.words.append(word)
        self.target = self.skip_word = False

    def _end_command(self) -> None:
        self._end_word()
        if self.words or self.writes:
            self.done.append(Command(tuple(self.words), self.writes))
        self.words, self.writes, self.target, self.skip_word = [], False, False, False


def _end(run: re.Pattern[str], text: str, at: int) -> int:
    """Return where a run of characters ends that begins at ``at`` and may be empty."""
    found = run.match(text, at)
    return at if found is None else found.end()


def _name(word: str) -> str:
    return word.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe")


def _unwrapped(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words from the program on: without keywords, assignments, and programs that run another one."""
    while words:
        first = words[0]
        if first in programs.KEYWORDS or _ASSIGNMENT.match(first):
            words = words[1:]
        elif _name(first) in programs.WRAPPERS:
            rest = _after_options(words[1:], programs.WRAPPERS[_name(first)])
            if not rest:
                return words if _name(first) in programs.READERS else ()
            words = rest[1:] if _name(first) == "timeout" else rest
        else:
            return words
    return words


def _after_options(words: tuple[str, ...], valued: frozenset[str]) -> tuple[str, ...]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in valued else words[1:]
    return words


def _git_rest(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return git's words from the sub-command on."""
    return _after_options(words, frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"}))


def _reads(part: Command) -> bool:
    if part.writes:
        return False
    words = part.words
    if words and words[0] in programs.SILENT_KEYWORDS:
        return True
    words = _unwrapped(words)
    if not words:
        return True
    name, rest = _name(words[0]), words[1:]
    if rest and all(word in ("--version", "-V", "--help", "-h", "version") for word in rest):
        return True
    if name in _SPECIAL:
        return _SPECIAL[name](rest)
    if name in programs.SUB_READERS:
        following = [word for word in rest if not word.startswith("-")]
        return bool(following) and following[0] in programs.SUB_READERS[name]
    return name in programs.READERS


def _git_reads(rest: tuple[str, ...]) -> bool:
    rest = _git_rest(rest)
    if not rest or rest[0] in programs.SUB_READERS["git"]:
        return not any(word.startswith("--output") for word in rest) and rest[:2] != ("reflog", "expire")
    if rest[0] not in programs.GIT_LISTS:
        return False
    looks = programs.GIT_LISTS[rest[0]]
    options = [word.split("=", 1)[0] for word in rest[1:]]
    if rest[0] in ("branch", "tag", "remote") and not options:
        return True
    if rest[0] == "branch":
        return all(option in looks for option in options)
    return bool(options) and options[0] in looks


def _gh_reads(rest: tuple[str, ...]) -> bool:
    words = [word for word in rest if not word.startswith("-")]
    if words[:1] == ["api"]:
        return not any(re.fullmatch(r"-[XfF].*|--(?:method|field|raw-field|input).*", word) for word in rest)
    return words[:1] in (["status"], ["search"]) or (len(words) > 1 and words[1] in programs.GH_READERS)


def _find_reads(rest: tuple[str, ...]) -> bool:
    for at, word in enumerate(rest):
        if word == "-delete" or word.startswith(("-fprint", "-fls")):
            return False
        if word in ("-exec", "-execdir", "-ok", "-okdir") and not _reads(Command(rest[at + 1 :], False)):
            return False
    return True


def _awk_reads(rest: tuple[str, ...]) -> bool:
    return not any(re.search(r"system\s*\(|>\s*[\"/]|-i\b", word) for word in rest)


def _source_reads(rest: tuple[str, ...]) -> bool:
    """Setting up one's shell changes nothing; any other script may do anything."""
    return bool(rest) and re.search(r"(?:activate|env|rc|profile)(?:\.\w+)?$", rest[0]) is not None


_SPECIAL: Final[dict[str, Callable[[tuple[str, ...]], bool]]] = {
    "git": _git_reads,
    "gh": _gh_reads,
    "find": _find_reads,
    "awk": _awk_reads,
    "gawk": _awk_reads,
    "source": _source_reads,
    ".": _source_reads,
    "sed": lambda rest: not any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in rest),
    "curl": lambda rest: not any(_CURL_CHANGES.fullmatch(word) for word in rest),
    "sort": lambda rest: not any(word.startswith(("-o", "--output")) for word in rest),
}
