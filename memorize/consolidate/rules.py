"""The extractor that needs no model: what was said in so many words, and what the tools plainly showed.

It never invents: a statement is kept in the person's own words, a failure in the program's own. Importance is modest,
so that what a model or the person says later outranks it. What must not be remembered is refused and what reads like
an order to an agent set aside, as with a model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from memorize.consolidate.refusals import refusal
from memorize.consolidate.statements import Statement, mentions, statements, taken_back
from memorize.consolidate.trust import screened
from memorize.consolidate.windows import Found, Window
from memorize.model import (
    OBSERVED_COMMIT,
    OBSERVED_EDIT,
    OBSERVED_NOTE,
    OBSERVED_PROMPT,
    OBSERVED_REPLY,
    OBSERVED_SHELL,
    Event,
    text_key,
)
from memorize.patterns import late

NAME: Final = "rules"
GOAL_CHARS: Final = 160
REPLY_CHARS: Final = 200
ERROR_CHARS: Final = 200
COMMAND_CHARS: Final = 120
FILES_SHOWN: Final = 5
# A session of trial and error must not drown what was decided: so many of each, the last ones.
UNREPAIRED_MAX: Final = 3
REPAIRED_MAX: Final = 3

_HANGUL = late(r"[가-힣]")
_NAMED_ERROR = late(r"\b(?:[A-Z]\w*)?(?:Error|Exception)\b|\berror(?:\[\w+\])?:|\bfatal:|오류:")
_ERROR_LINE = late(r"error|exception|fail|denied|not found|no such|cannot|refused|timed? ?out|오류|실패", re.IGNORECASE)
# A slip at the keyboard or a question to the machine: nothing that another session could learn from.
_SLIP = late(
    r"command not found|: not found$|is not recognized as|usage:|unrecognized (?:option|argument)|illegal option"
    r"|(?:invalid|unknown) (?:option|flag|command|argument|switch)|no such (?:option|command)|try '[^']*--help'"
    r"|명령을 찾을 수 없|사용법:",
    re.IGNORECASE,
)
_PROBES: Final = frozenset(
    {
        "curl",
        "wget",
        "http",
        "ping",
        "nc",
        "telnet",
        "dig",
        "nslookup",
        "mysql",
        "psql",
        "sqlite3",
        "redis-cli",
        "mongo",
    }
)
_SENTENCES: Final = late(r"(?<=[.!?。？！])\s")
_REDACTED: Final = "[redacted:"
_SENTENCE_ENDS: Final = (".", "?", "!", "…", "。", "？", "！")
_REST_CHARS_MIN: Final = 4
_WORDS: Final = {
    "en": (
        "Goal",
        "Edited",
        "Commits",
        "Failed",
        "Ended with",
        "and {n} more",
        "failed",
        "then passed",
        "after editing",
    ),
    "ko": ("목표", "수정한 파일", "커밋", "실패", "마지막 답", "외 {n}개", "실패", "이후 성공", "수정 후"),
}


def extract(window: Window) -> list[Found]:
    """Return the memories of a window: statements, failures, commits and one summary, without exact repetitions."""
    memories = [*_statements(window.events), *_failures(window.events), *_commits(window.events)]
    memories += _spoken(window)
    summary = _summary(window)
    if summary is not None:
        memories.append(summary)
    unique: dict[tuple[str, str, str], Found] = {}
    for memory in screened(one for one in memories if not refusal(one.kind, one.text)):
        unique.setdefault((memory.scope, memory.kind, text_key(memory.text)), memory)
    return list(unique.values())


def _field(event: Event, name: str) -> str:
    value = event.payload.get(name) if event.payload else None
    return value if isinstance(value, str) else ""


def _of(events: Iterable[Event], *kinds: str) -> list[Event]:
    return [event for event in events if event.kind in kinds and event.payload]


def _statements(events: Iterable[Event]) -> list[Found]:
    """What the person stated, without the decisions that a later prompt takes back by name."""
    found: list[Found] = []
    for event in _of(events, OBSERVED_PROMPT, OBSERVED_NOTE):
        prompt = _field(event, "text")
        gone = taken_back(prompt)
        found = [one for one in found if one.kind != "decision" or not any(mentions(one.text, name) for name in gone)]
        found += (_stated(said, event) for said in statements(prompt))
    return found


def _stated(said: Statement, event: Event) -> Found:
    return Found(
        kind=said.kind,
        text=said.text,
        importance=said.importance,
        scope=said.scope,
        trust="user",
        confidence=70,
        sources=(event.id,),
        branch=_field(event, "branch"),
        triggers=said.triggers,
    )


def _spoken(window: Window) -> list[Found]:
    """Return the statements in what the person typed according to the transcript, and was not observed."""
    observed = {text_key(_field(event, "text")) for event in _of(window.events, OBSERVED_PROMPT, OBSERVED_NOTE)}
    return [
        Found(said.kind, said.text, said.importance, said.scope, "user", 70, (), triggers=said.triggers)
        for line in window.lines
        if line.role == "user" and line.trust == "user" and text_key(line.text) not in observed
        for said in statements(line.text)
    ]


def normalised(command: str) -> str:
    """Return the form under which a command is recognised when it runs again."""
    return " ".join(command.split())


def _cut(text: str, chars: int) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= chars else folded[: chars - 1].rstrip() + "…"


def _telling_line(output: str) -> str:
    lines = [line for line in (" ".join(raw.split()) for raw in output.splitlines()) if line]
    named = [line for line in lines if _NAMED_ERROR.search(line)]
    telling = [line for line in lines if _ERROR_LINE.search(line)]
    return _cut((named or telling or lines or [""])[-1], ERROR_CHARS)


def _failures(events: tuple[Event, ...]) -> list[Found]:
    """A failed command, and whether the same command passed later and what was edited in between."""
    words = _WORDS[_language_of_most(events)]
    runs = Counter(normalised(_field(event, "command")) for event in _of(events, OBSERVED_SHELL))
    found: dict[str, Found] = {}
    for place, event in enumerate(events):
        if event.kind != OBSERVED_SHELL or not event.payload or event.payload.get("ok") is not False:
            continue
        command = normalised(_field(event, "command"))
        error = _telling_line(_field(event, "output"))
        if not command or not error:
            continue
        text = f"`{_cut(command, COMMAND_CHARS)}` {words[6]}: {error}"
        sources, repair = _repair(events[place + 1 :], command)
        if not sources and _is_trivial(command, _field(event, "output"), runs[command]):
            continue
        if sources:
            text += f" ({words[7]}{', ' + words[8] + ' ' + ', '.join(repair) if repair else ''})"
        found[command] = Found(
            kind="failure",
            text=text,
            importance=4 if sources else 5,
            scope="project",
            trust="agent",
            confidence=80,
            sources=(event.id, *sources),
            branch=_field(event, "branch"),
            paths=tuple(repair),
        )
    repaired = [one for one in found.values() if len(one.sources) > 1][-REPAIRED_MAX:]
    unrepaired = [one for one in found.values() if len(one.sources) == 1][-UNREPAIRED_MAX:]
    return [one for one in found.values() if one in repaired or one in unrepaired]


def _is_trivial(command: str, output: str, runs: int) -> bool:
    """Tell whether a failure that was never repaired is a slip, or one look at something that was not there."""
    if any(_SLIP.search(line.strip()) for line in output.splitlines()):
        return True
    words = (word for part in re.split(r"&&|\|\||;|\|", command) for word in part.split()[:1])
    return runs == 1 and any(word.rsplit("/", 1)[-1] in _PROBES for word in words)


def _repair(later: tuple[Event, ...], command: str) -> tuple[tuple[bytes, ...], list[str]]:
    """Return the ids and the files between a failure and the first success of the same command; empty if none."""
    paths: list[str] = []
    for event in later:
        if event.kind == OBSERVED_EDIT:
            path = _field(event, "path")
            if path and path not in paths:
                paths.append(path)
        is_same = event.kind == OBSERVED_SHELL and normalised(_field(event, "command")) == command
        if is_same and event.payload and event.payload.get("ok") is True:
            return (event.id,), paths[:FILES_SHOWN]
    return (), []


def _commits(events: Iterable[Event]) -> list[Found]:
    return [
        Found(
            kind="progress",
            text=f"Commit {_field(event, 'sha')[:10]}: {_cut(_field(event, 'subject'), 200)}",
            importance=3,
            scope="project",
            trust="agent",
            confidence=95,
            sources=(event.id,),
            branch=_field(event, "branch"),
        )
        for event in _of(events, OBSERVED_COMMIT)
        if _field(event, "subject")
    ]


def _language(said: str) -> str:
    return "ko" if len(_HANGUL.findall(said)) * 4 > len(said) else "en"


def _language_of_most(events: Iterable[Event]) -> str:
    """Return the language of most prompts."""
    spoken = [_language(_field(event, "text")) for event in _of(events, OBSERVED_PROMPT)]
    return "ko" if spoken.count("ko") * 2 > len(spoken) else "en"


def _goal(prompts: Iterable[Event]) -> str:
    """Return the first thing that was asked for, without what is a memory of its own already."""
    for prompt in prompts:
        text = _field(prompt, "text")
        rest = " ".join(text.split())
        for said in statements(text):
            # The first letter of a statement may have been raised.
            at = rest.find(said.text[1:])
            if at > 0:
                rest = f"{rest[: at - 1]} {rest[at - 1 + len(said.text) :]}"
        # A sentence that held a secret says nothing to a later session.
        said_openly = [one for one in _SENTENCES.split(rest) if _REDACTED not in one]
        rest = " ".join(" ".join(said_openly).split()).strip("-*• ,;:")
        if sum(char.isalnum() for char in rest) >= _REST_CHARS_MIN:
            return _cut(rest, GOAL_CHARS)
    return ""


def _ended(text: str) -> str:
    """Return the text with one mark at its end."""
    return text if text.endswith(_SENTENCE_ENDS) else f"{text}."


def _summary(window: Window) -> Found | None:
    """One line of what the session set out to do, what it touched and where it ended; None if it did nothing."""
    prompts = _of(window.events, OBSERVED_PROMPT)
    replies = _of(window.events, OBSERVED_REPLY)
    edited = list(dict.fromkeys(path for event in _of(window.events, OBSERVED_EDIT) if (path := _field(event, "path"))))
    commits = [_cut(_field(event, "subject"), 80) for event in _of(window.events, OBSERVED_COMMIT)]
    failed = _still_failing(window.events)
    goal, end = _goal(prompts), _field(replies[-1], "text") if replies else ""
    if not window.events:
        # What a subagent was told is no goal of the person, so its transcript alone has no summary.
        goal = _cut(next((line.text for line in window.lines if line.role == "user"), ""), GOAL_CHARS)
        end = next((line.text for line in reversed(window.lines) if line.role == "assistant"), "")
    if not goal and not edited and not commits and not failed:
        return None
    words = _WORDS[_language(goal) if goal else _language_of_most(window.events)]
    more = f" {words[5].format(n=len(edited) - FILES_SHOWN)}" if len(edited) > FILES_SHOWN else ""
    parts = [
        (words[0], goal),
        (words[1], ", ".join(edited[:FILES_SHOWN]) + more),
        (words[2], "; ".join(commits[-3:])),
        (words[3], ", ".join(f"`{_cut(command, 60)}`" for command in failed[:3])),
        (words[4], _cut(end, REPLY_CHARS)),
    ]
    sources = [*prompts[:1], *replies[-1:]] or list(window.events[:1])
    return Found(
        kind="summary",
        text=" ".join(f"{label}: {_ended(text)}" for label, text in parts if text),
        importance=4,
        scope="project",
        trust="agent",
        confidence=70,
        sources=tuple(event.id for event in sources),
        branch=_field(window.events[-1], "branch") if window.events else "",
        paths=tuple(edited[:20]),
    )


def _still_failing(events: Iterable[Event]) -> list[str]:
    """Return the commands whose last run in the window failed."""
    last: dict[str, object] = {}
    for event in _of(events, OBSERVED_SHELL):
        if event.payload is not None:
            last[normalised(_field(event, "command"))] = event.payload.get("ok")
    return [command for command, ok in last.items() if ok is False and command]
