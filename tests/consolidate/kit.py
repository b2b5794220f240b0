"""Windows of sessions that never were: events as the log holds them, lines as a transcript does."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from memorize.consolidate.prompt import Part, build
from memorize.consolidate.windows import Window
from memorize.model import OBSERVED_PROMPT, OBSERVED_REPLY, Event, Header, Payload

SECOND = 1_000
# 2026-11-29 00:00:00 UTC.
START = 1_795_910_400_000


class Line(NamedTuple):
    """A line of a transcript."""

    role: str
    text: str
    trust: str
    id: str
    at_ms: int


def observed(number: int, kind: str, **fields: object) -> Event:
    """Return the event number ``number`` of a session, so many seconds after its start."""
    identity = number.to_bytes(32, "big")
    wall = START + number * SECOND
    header = Header(
        1, b"s" * 16, b"r" * 16, b"w" * 16, number, b"", number, (), kind, 0, b"", b"", 0, b"", number, wall
    )
    payload: Payload = {"agent": "claude", "session": "5f2c", "project": "p", "branch": "refund-api", **fields}
    return Event(identity, header, payload)


def said(number: int, text: str) -> Event:
    """Return a prompt of the person."""
    return observed(number, OBSERVED_PROMPT, text=text)


def replied(number: int, text: str) -> Event:
    """Return an answer of the agent."""
    return observed(number, OBSERVED_REPLY, text=text)


def tool(number: int, text: str) -> Line:
    """Return what a tool gave, as the transcript has it."""
    return Line("tool", text, "external", f"line-{number}", START + number * SECOND)


def window(*turns: Event | Line) -> Window:
    """Return the window of these turns, each in the record that it belongs to."""
    events = tuple(turn for turn in turns if isinstance(turn, Event))
    return Window("claude", "5f2c", "p", events, tuple(turn for turn in turns if isinstance(turn, Line)))


def part_of(*turns: Event | Line, offered: Any = ()) -> Part:
    """Return the one part of a small window."""
    parts = build(window(*turns), offered, 50_000)
    assert len(parts) == 1
    return parts[0]


def item(text: str, kind: str = "decision", sources: Any = (1,), **fields: Any) -> dict[str, Any]:
    """Return an item of an answer."""
    listed = list(sources) if isinstance(sources, tuple) else sources
    return {"kind": kind, "text": text, "importance": 7, "sources": listed, **fields}


def answered(*items: Any) -> str:
    """Return an answer as the prompt asks for it."""
    return json.dumps({"memories": list(items)}, ensure_ascii=False)
