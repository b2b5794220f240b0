"""How one memory looks on a line: tag, text, origin and date. Pure.

Dates are those of the zone that the caller names, so that the same call gives the same text on every machine.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from memorize import ids
from memorize.index.query import Row
from memorize.recall.blocks import Item, Placed
from memorize.recall.plain import harmless
from memorize.recall.tokens import shorten

# One letter a kind; progress and summary both tell of a session.
LETTERS: Final = {
    "rule": "r",
    "constraint": "c",
    "decision": "d",
    "failure": "f",
    "question": "o",
    "summary": "s",
    "progress": "s",
    "preference": "p",
    "fact": "n",
}
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Whose word it is matters most where something binds.
_BINDING: Final = frozenset({"rule", "constraint"})
# Each side of a dispute gets this much, so that both ids are always seen.
_DISPUTE_TOKENS: Final = 40


def letter(kind: str) -> str:
    """Return the letter that stands for a kind, "n" (note) for one that this version does not know."""
    return LETTERS.get(kind, "n")


def tag(row: Row, others: Collection[bytes] = ()) -> str:
    """Return for example ``[d a41f09]``; ``others`` are ids that the short one must not fit."""
    return f"[{letter(row.kind)} {ids.short(row.id, others)}]"


def day(ms: int, zone_minutes: int = 0) -> datetime | None:
    """Return the time in that zone, None when no calendar holds it."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC) + timedelta(minutes=zone_minutes)
    except (OverflowError, ValueError, OSError):
        return None


def date(ms: int, now_ms: int, zone_minutes: int = 0) -> str:
    """Return ``12 Nov``, with the year when it is not this one; empty when no calendar holds the time."""
    then, now = day(ms, zone_minutes), day(now_ms, zone_minutes)
    if then is None or now is None:
        return ""
    year = "" if then.year == now.year else f" {then.year}"
    return f"{then.day} {_MONTHS[then.month - 1]}{year}"


def when(ms: int, now_ms: int, zone_minutes: int = 0) -> str:
    """Return ``today``, ``yesterday`` or the date."""
    then, now = day(ms, zone_minutes), day(now_ms, zone_minutes)
    if then is None or now is None:
        return ""
    days = (now.date() - then.date()).days
    return {0: "today", 1: "yesterday"}.get(days, date(ms, now_ms, zone_minutes))


def origin(row: Row, now_ms: int, zone_minutes: int = 0) -> str:
    """Return `` (user, 12 Nov)`` where it matters, always for what came from outside, else an empty string."""
    dated = ", ".join(part for part in (row.trust, date(row.recency, now_ms, zone_minutes)) if part)
    if row.trust == "external":
        return f" ({dated}; not verified)"
    return f" ({dated})" if row.kind in _BINDING else ""


def item(row: Row, mark: Placed, tail: str, others: Collection[bytes] = ()) -> Item:
    """Return the line of one memory."""
    return Item(f"{tag(row, others)} ", row.text, tail, (mark,))


def dispute(one: Row, other: Row, marks: tuple[Placed, ...], others: Collection[bytes] = ()) -> Item:
    """Return the one line that shows two memories that contradict each other."""
    sides = (
        f"{shorten(harmless(row.text), _DISPUTE_TOKENS)} {tag(row, others)}"
        + (" (external)" if row.trust == "external" else "")
        for row in (one, other)
    )
    return Item(f"Disputed: {' vs '.join(sides)}; ask the user.", "", "", marks)
