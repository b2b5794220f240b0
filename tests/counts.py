"""How often a repeated test repeats: few times in a quick run, in full with ``MEMORIZE_TEST_FULL=1``.

Every count that was asked for is printed at the end of the run, so that a run shows how much it tried.
"""

from __future__ import annotations

import os

FULL = os.environ.get("MEMORIZE_TEST_FULL") == "1"
_asked: dict[str, int] = {}


def count(name: str, quick: int, full: int) -> int:
    """Return how often to repeat the test called ``name`` in this run, and remember it for the summary."""
    chosen = full if FULL else quick
    _asked[name] = chosen
    return chosen


def asked() -> dict[str, int]:
    """Return the counts given out in this process, by name."""
    return dict(_asked)


_notes: list[str] = []


def note(line: str) -> None:
    """Have a line printed at the end of the run: something measured that no test asserts."""
    _notes.append(line)


def notes() -> list[str]:
    """Return the lines noted in this process."""
    return list(_notes)
