"""Hand-written dialogues with labels, and the windows that they would become.

``known.json`` holds twenty that the rules were looked at with; ``unseen.json`` ten that were written after the rules
had been settled and that nothing may be fitted to. A dialogue has a name, a language, turns, and labels:

- ``want``: what should be remembered: the kinds that are right, then words that must all stand in the text
  (``a|b``: one of them);
- ``stale``: words of what the person took back later;
- ``never``: words that nothing told to a session may hold: poison, secrets, private life.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from memorize.consolidate.windows import Window
from memorize.log.redact import redact, redact_value
from memorize.model import (
    OBSERVED_COMMIT,
    OBSERVED_EDIT,
    OBSERVED_PROMPT,
    OBSERVED_REPLY,
    OBSERVED_SHELL,
    Event,
    Header,
)

KNOWN: Final = "known"
UNSEEN: Final = "unseen"
# 2026-06-01 09:00:00 UTC, and a minute between turns.
_START_MS: Final = 1_780_304_400_000
_TURN_MS: Final = 60_000


class Line(NamedTuple):
    """A line that only the transcript has."""

    role: str
    text: str
    trust: str
    id: str
    at_ms: int


class Dialogue(NamedTuple):
    """A session with its labels; see the module."""

    name: str
    language: str
    turns: tuple[tuple[str, ...], ...]
    want: tuple[tuple[str, ...], ...]
    stale: tuple[tuple[str, ...], ...]
    never: tuple[tuple[str, ...], ...]
    part: str

    def window(self) -> Window:
        """Return the window that consolidation would read: redacted events, and the lines of tools."""
        events: list[Event] = []
        lines: list[Line] = []
        for number, turn in enumerate(self.turns, 1):
            at_ms = _START_MS + number * _TURN_MS
            if turn[0] == "web":
                lines.append(Line("tool", redact(turn[1]), "external", f"web-{number}", at_ms))
            else:
                events.append(_event(number, at_ms, turn))
        return Window("claude", self.name, "p" * 32, tuple(events), tuple(lines))


def dialogues(*parts: str) -> list[Dialogue]:
    """Return the dialogues of these parts, or all."""
    found = []
    for part in parts or (KNOWN, UNSEEN):
        text = (Path(__file__).parent / f"{part}.json").read_text("utf-8")
        for one in json.loads(text):
            turns, want, stale, never = (_tuples(one.get(name, [])) for name in ("turns", "want", "stale", "never"))
            found.append(Dialogue(one["name"], one["language"], turns, want, stale, never, part))
    return found


def _tuples(rows: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _event(number: int, at_ms: int, turn: Sequence[str]) -> Event:
    """Return the observation that a hook would have made of a turn."""
    what, *words = turn
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "user": (OBSERVED_PROMPT, {"text": words[0]}),
        "agent": (OBSERVED_REPLY, {"text": words[0]}),
        "edit": (OBSERVED_EDIT, {"path": words[0], "op": "edit", "added": 3, "removed": 1, "diff": ""}),
        "commit": (OBSERVED_COMMIT, {"sha": f"{number:040x}", "subject": words[0]}),
        "passes": (OBSERVED_SHELL, {"command": words[0], "ok": True, "exit": 0, "output": ""}),
        "fails": (OBSERVED_SHELL, {"command": words[0], "ok": False, "exit": 1, "output": words[-1]}),
    }
    kind, fields = kinds[what]
    payload = {"agent": "claude", "session": "s", "project": "p" * 32, "branch": "main", **redact_value(fields)}
    who = (b"s" * 16, b"r" * 16, b"w" * 16)
    header = Header(1, *who, number, b"", number, (), kind, 0, b"", b"", 0, b"", number, at_ms)
    return Event(number.to_bytes(32, "big"), header, payload)
