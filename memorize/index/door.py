"""What the log asks before it takes in events of others: which are known, and which bodies an erasure forbids."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence

from memorize.fold import reading
from memorize.index import closure
from memorize.index.packing import chunks, key_number, number8
from memorize.model import ERASE_REQUESTED, INDELIBLE, Event

_KNOWN = """
select id, held or exists(select 1 from erased x where x.id = events.id) from events where id8 in (%s)"""
_SLOT = """
select 1 from events e join erased x on x.id = e.id
where e.nonce8 = ? and e.nonce = ? and e.ordinal = ? and e.kind = ? and e.person = ?"""


def bodies(connection: sqlite3.Connection, ids: Collection[bytes]) -> Mapping[bytes, bool]:
    """Return id -> whether its body is held, or erased, of those of the events that are known."""
    wanted = set(ids)
    found: dict[bytes, bool] = {}
    for chunk in chunks(sorted({number8(identity) for identity in wanted})):
        rows = connection.execute(_KNOWN % chunk)
        found.update((identity, bool(settled)) for identity, settled in rows if identity in wanted)
    return found


def refused(connection: sqlite3.Connection, events: Sequence[Event]) -> frozenset[bytes]:
    """Return the ids of those of the events whose body an erasure forbids to keep, whether or not they are known.

    An erasure hits what it names and every alias of it, of its own person, and nothing that cannot be erased.
    """
    if not connection.execute("select exists(select 1 from named_by_erasures)").fetchone()[0]:
        return frozenset()
    deletable = (event for event in events if event.header.kind not in INDELIBLE)
    return frozenset(event.id for event in deletable if _is_named(connection, event) or _is_alias(connection, event))


def _is_named(connection: sqlite3.Connection, event: Event) -> bool:
    if not connection.execute("select 1 from named_by_erasures where id = ?", (event.id,)).fetchone():
        return False
    key = key_number(b"i" + event.id)
    numbers = [n for (n,) in connection.execute("select n from links where key = ?", (key,))]
    for other in closure.load(connection, numbers).values():
        counts = other.header.kind == ERASE_REQUESTED and other.payload is not None and not other.malformed
        named = reading.erasure(other.payload) if counts and other.payload is not None else None
        if other.header.person == event.header.person and event.id in (named or ()):
            return True
    return False


def _is_alias(connection: sqlite3.Connection, event: Event) -> bool:
    header = event.header
    if not header.nonce:
        return False
    slot = (number8(header.nonce), header.nonce, header.ordinal, header.kind, header.person)
    return connection.execute(_SLOT, slot).fetchone() is not None
