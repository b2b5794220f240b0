"""How a memory came to be what it is: every event that made, replaced, confirmed, pinned, took back or restored it.

The chain reaches through supersede events to what the memory replaced and to what replaced it, in the one order of
events. Nothing is judged here: a step tells what was said, the state tells what holds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from memorize import model
from memorize.index.closure import load
from memorize.index.packing import chunks, key_number, number8, string
from memorize.model import Event

_WORDS: Final = {
    model.MEMORY_FORMED: "formed",
    model.MEMORY_SUPERSEDED: "superseded",
    model.MEMORY_RETRACTED: "retracted",
    model.MEMORY_RESTORED: "restored",
    model.MEMORY_PINNED: "pinned",
    model.MEMORY_UNPINNED: "unpinned",
    model.MEMORY_CONFIRMED: "confirmed",
    model.MEMORY_JUDGED: "judged",
    model.ERASE_REQUESTED: "erased",
}
# What later events may take back, so that those belong to the chain, too.
_ANSWERED: Final = frozenset({model.MEMORY_SUPERSEDED, model.MEMORY_RETRACTED, model.MEMORY_PINNED})


class Step(NamedTuple):
    """One event of the chain. ``what`` is a word for a person, ``text`` what it says, ``about`` the events it names."""

    id: bytes
    lamport: int
    wall: int
    what: str
    text: str
    about: tuple[bytes, ...]


def history(connection: sqlite3.Connection, identity: bytes) -> list[Step]:
    """Return the chain of a memory in order of (lamport, id); empty when there is no such memory."""
    found: dict[bytes, Event] = {}
    seen: set[bytes] = set()
    waiting = _group(connection, identity)
    while waiting:
        seen |= waiting
        events = _named(connection, waiting)
        news = {event.id: event for event in events if event.id not in found and event.kind in _WORDS}
        found |= news
        follow = {one for event in news.values() if event.kind == model.MEMORY_SUPERSEDED for one in event.header.deps}
        follow = {member for one in follow - seen for member in _group(connection, one)}
        waiting = (follow | {event.id for event in news.values() if event.kind in _ANSWERED}) - seen
    return [_step(event) for event in sorted(found.values(), key=lambda event: event.order)]


def _group(connection: sqlite3.Connection, identity: bytes) -> set[bytes]:
    """Return the memories that say the same as this one, itself included; nothing when it is no memory."""
    sql = """select o.id from memories m join memories o on o.n = m.n or (o.text_group = m.text_group and
        m.text_group <> x'') where m.id = ?"""
    return {bytes(found) for (found,) in connection.execute(sql, (identity,))}


def _named(connection: sqlite3.Connection, identities: Iterable[bytes]) -> list[Event]:
    """Return the events with these ids and the events that name one of them."""
    wanted = set(identities)
    numbers: set[int] = set()
    for chunk in chunks(sorted({key_number(b"i" + one) for one in wanted})):
        numbers.update(n for (n,) in connection.execute(f"select n from links where key in ({chunk})"))
    for chunk in chunks(sorted({number8(one) for one in wanted})):
        numbers.update(n for (n,) in connection.execute(f"select n from events where id8 in ({chunk})"))
    events = load(connection, numbers).values()
    return [event for event in events if event.id in wanted or not wanted.isdisjoint(_names(event))]


def _names(event: Event) -> tuple[bytes, ...]:
    """Return the ids that an event is about; an erasure lists them in its body."""
    if event.kind == model.ERASE_REQUESTED and isinstance(event.payload, Mapping):
        listed = event.payload.get("ids")
        return tuple(one for one in listed if isinstance(one, bytes)) if isinstance(listed, list | tuple) else ()
    return event.header.deps


def _step(event: Event) -> Step:
    payload = event.payload if isinstance(event.payload, Mapping) else {}
    text = next((said for name in ("text", "reason", "verdict") if (said := string(payload, name))), "")
    if event.kind == model.MEMORY_FORMED and not text:
        text = "(erased)"
    header = event.header
    return Step(event.id, header.lamport, header.wall, _WORDS[event.kind], text, _names(event))
