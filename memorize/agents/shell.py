"""Which shell commands only look, and which change something: a table of programs over the lexer of ``recall``.

Wrong answers are cheap in one direction only: a reading command kept is one observation too many, a changing one
dropped is lost for good. So whatever is not known to be reading counts as changing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from memorize.agents import programs
from memorize.patterns import late
from memorize.recall.commands import Call, calls, calls_of, git_words
from memorize.recall.lexer import split
from memorize.recall.words import Simple, Word

_CURL_CHANGES: Final = late(
    r"-[a-zA-Z]*[XdFToO]|--(?:request|data.*|json|form.*|upload-file|output.*|remote-name.*)(?:=.*)?"
)


def reads_only(command: str) -> bool:
    """Tell whether every part of a command line is known to look only; one that is not understood is not."""
    found = split(command)
    return found.complete and bool(found.commands) and all(_reads(part) for part in found.commands)


def answers_only(command: str) -> bool:
    """Tell whether the last part of a command line is one whose exit status 1 is an answer and not a failure."""
    found = split(command)
    last = calls_of(found.commands[-1])[:1] if found.complete and found.commands else []
    return bool(last) and last[0].name in programs.ANSWERERS


def runs_git(command: str, *subcommands: str) -> bool:
    """Tell whether some part of a command line is git with one of these sub-commands."""
    return any(
        call.name == "git" and git_words(call)[:1] in [(name,) for name in subcommands] for call in calls(command)
    )


def _reads(part: Simple) -> bool:
    if part.writes:
        return False
    stages = calls_of(part)
    last = next((call for call in stages if not call.wraps), None)
    return _call_reads(last) if last is not None else not part.words


def _call_reads(call: Call) -> bool:
    name, rest = call.name, call.texts
    if rest and all(word in ("--version", "-V", "--help", "-h", "version") for word in rest):
        return True
    if name in _SPECIAL:
        return _SPECIAL[name](rest)
    if name in programs.SUB_READERS:
        following = [word for word in rest if not word.startswith("-")]
        return bool(following) and following[0] in programs.SUB_READERS[name]
    return name in programs.READERS


def _git_reads(rest: tuple[str, ...]) -> bool:
    rest = git_words(Call("git", tuple(Word(text) for text in rest)))
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
        if word in ("-exec", "-execdir", "-ok", "-okdir") and not _reads(Simple(tuple(map(Word, rest[at + 1 :])))):
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
