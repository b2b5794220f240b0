"""The events that can influence each other's state, found through the keys that they share."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from memorize.fold import capture_key, keys
from memorize.index.packing import chunks, key_number, number8, pack, unpack
from memorize.index.rows import FOLDABLE, Inserted, malformed
from memorize.model import ERASE_REQUESTED, Event, Header, Stored

_EVENT: Final = (
    "select e.n, e.lamport, e.id, e.kind, e.nonce, e.ordinal, e.writer, e.seq, e.wall, e.person, e.held, e.malformed,"
    " f.header, f.payload from events e left join foldable f on f.n = e.n where "
)


def insert(connection: sqlite3.Connection, events: Mapping[int, Event]) -> dict[int, frozenset[bytes]]:
    """Keep what the fold will read of these new events, and the keys that connect them with others; return the keys.

    Its own id and its capture connect an event, too, but these are found through the indexes of ``events``.
    """
    links: list[tuple[int, int]] = []
    foldable: list[tuple[int, bytes, bytes | None]] = []
    named: list[tuple[bytes]] = []
    made: dict[int, frozenset[bytes]] = {}
    for n, event in events.items():
        identity, header, payload, spoiled = event
        foldable.append(
            (n, pack(_essence(header)), None if payload is None or spoiled or malformed(event) else pack(payload))
        )
        if header.kind in FOLDABLE:
            own = b"i" + identity
            # A capture key begins with "a".
            made[n] = all_keys = keys(event)
            others = [key for key in all_keys if key[0] != 97 and key != own]
            links += [(key_number(key), n) for key in others]
            if header.kind == ERASE_REQUESTED:
                named += [(key[1:],) for key in others if key[:1] == b"i"]
    connection.executemany("insert into foldable values(?, ?, ?)", foldable)
    connection.executemany("insert or ignore into links values(?, ?)", links)
    if named:
        connection.executemany("insert or ignore into named_by_erasures values(?)", named)
    return made


def _essence(header: Header) -> tuple[Any, ...]:
    """Return the header with the fields emptied that the fold doesn't read; they are most of its bytes."""
    form, _, _, _, seq, _, lamport, deps, kind, _, _, nonce, ordinal, _, _, wall, _, person, must = header
    return (form, b"", b"", b"", seq, b"", lamport, deps, kind, 0, b"", nonce, ordinal, b"", 0, wall, b"", person, must)


def drawn_in(
    connection: sqlite3.Connection, batch: Sequence[Stored], inserted: Inserted, unknown: Collection[bytes]
) -> dict[int, Event]:
    """Return the events of a batch that matter to the fold although it reads no such kind.

    These are aliases, and events that an erasure named before they came. ``unknown`` are nonces that no event before
    the batch has.
    """
    first, _, slots, twins = inserted
    found = {n: batch[n - first].event for n in twins}
    for chunk in chunks(
        [number8(nonce) for nonce in dict.fromkeys([slot[0] for slot in slots]) if nonce not in unknown]
    ):
        sql = f"select nonce, ordinal, kind, person from events where nonce8 in ({chunk}) and n < {first}"
        for slot in connection.execute(sql):
            twin = slots.get(slot)
            if twin is not None:
                found[twin] = batch[twin - first].event
    if connection.execute("select exists(select 1 from named_by_erasures)").fetchone()[0]:
        for n, stored in enumerate(batch, first):
            identity = stored.event.id
            if connection.execute("select 1 from named_by_erasures where id = ?", (identity,)).fetchone():
                found[n] = stored.event
    return found


def connected(
    connection: sqlite3.Connection,
    fresh: Mapping[int, Event],
    alone: Collection[int] = (),
    made: Mapping[int, frozenset[bytes]] = MappingProxyType({}),
) -> dict[int, Event]:
    """Return the given events and every indexed event connected with them, by number.

    ``alone`` are those of the given events that are known to be the only ones of their capture and ordinal, ``made``
    are keys that were made before.
    """
    found = dict(fresh)
    seen: set[bytes] = set()
    waiting: Mapping[int, Event] = fresh
    while True:
        fringe: set[bytes] = set()
        captures: set[bytes] = set()
        for n, event in waiting.items():
            fringe |= made.get(n) or keys(event)
            if n not in alone:
                captures.add(capture_key(event.header))
        fringe -= seen
        seen |= fringe
        captures &= fringe
        known = {b"i" + event.id for event in waiting.values()}
        numbers = _neighbours(connection, [key for key in fringe if key[0] != 97], known, captures)
        waiting = load(connection, numbers.difference(found))
        if not waiting:
            return found
        found |= waiting


def _neighbours(
    connection: sqlite3.Connection, others: Iterable[bytes], known: set[bytes], captures: set[bytes]
) -> set[int]:
    """Return the events that have one of these keys; ``known`` are the keys of ids that need not be looked up."""
    found: set[int] = set()
    for chunk in chunks([key_number(key) for key in others]):
        found.update([n for (n,) in connection.execute(f"select n from links where key in ({chunk})")])
    ids = {key[1:] for key in others if key[0] == 105 and key not in known}
    for chunk in chunks([number8(identity) for identity in ids]):
        rows = connection.execute(f"select n, id from events where id8 in ({chunk})")
        found.update(n for n, identity in rows if identity in ids)
    if captures:
        found |= _same_capture(connection, captures)
    return found


def _same_capture(connection: sqlite3.Connection, captures: set[bytes]) -> set[int]:
    """Return the events that have one of these capture keys; the key tells everything but the nonce's length."""
    found: set[int] = set()
    nonces = sorted({number8(_nonce_of(key)) for key in captures})
    for chunk in chunks(nonces):
        rows = connection.execute(f"select n, nonce, ordinal, kind, person from events where nonce8 in ({chunk})")
        for n, nonce, ordinal, kind, person in rows:
            if capture_key(BLANK._replace(nonce=nonce, ordinal=ordinal, kind=kind, person=person)) in captures:
                found.add(n)
    return found


def _nonce_of(key: bytes) -> bytes:
    """Return the nonce inside a capture key: ``a<ordinal> <person size> <nonce size> <person><nonce><kind>``."""
    _, person, nonce, rest = key.split(b" ", 3)
    return rest[int(person) : int(person) + int(nonce)]


def load(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Event]:
    """Return the events with these numbers as the fold wants them.

    An event that the fold only knows by its header comes with an empty payload in place of its own.
    """
    found: dict[int, Event] = {}
    for chunk in chunks(sorted(numbers)):
        for row in connection.execute(f"{_EVENT} e.n in ({chunk})"):
            found[row[0]] = _event(row)
    return found


def all_numbers(connection: sqlite3.Connection) -> Iterator[int]:
    """Return the numbers of all events that the fold reads, in order."""
    return (n for (n,) in connection.execute("select n from foldable order by n"))


BLANK: Final = Header(0, b"", b"", b"", 0, b"", 0, (), "", 0, b"", b"", 0, b"", 0, 0)


def _event(row: Sequence[Any]) -> Event:
    _, lamport, identity, kind, nonce, ordinal, writer, seq, wall, person, is_held, is_malformed, raw, payload = row
    if raw is not None:
        fields = unpack(raw)
        header = Header._make([*fields[:7], tuple(fields[7]), *fields[8:18], tuple(fields[18])])
        return Event(identity, header, unpack(payload) if payload is not None else None, bool(is_malformed))
    header = BLANK._replace(
        writer=writer, seq=seq, lamport=lamport, kind=kind, nonce=nonce, ordinal=ordinal, wall=wall, person=person
    )
    return Event(identity, header, {} if is_held else None, bool(is_malformed))
