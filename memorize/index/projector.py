"""The projection: keeps the index up to the log, one transaction a batch. Only the holder of the ingest lock writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from memorize.index import closure, door, erasures, meta, rows, schema, sums
from memorize.index.packing import chunks, number8, string
from memorize.index.rows import FOLDABLE, TOLD_TOO, Telling, held, malformed
from memorize.index.settle import settle
from memorize.limits import LAMPORT_LEAP_MAX
from memorize.model import Event, Stored


class Projector:
    """The write side of the index at a path. Opens it when it is first needed, and again when it was swapped.

    Every method raises IndexMissing, IndexDamaged, Busy or CannotWrite; then nothing was changed.
    """

    def __init__(self, path: Path, busy_s: float = schema.BUSY_S) -> None:
        """Nothing is opened before the first use. A lock of somebody else's is waited for ``busy_s`` seconds."""
        self._path = path
        self._busy_s = busy_s
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] = (0, 0)
        # What the last ``known`` did not find, and the number that the next event would have got then.
        self._unknown: tuple[int, frozenset[bytes]] = (0, frozenset())

    def close(self) -> None:
        """Close the index; the next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def top(self) -> int:
        """Return the largest Lamport number, leaps left out; 0 in an empty index."""
        with self._open() as connection:
            found: int = meta.get(connection, "top")
            return found

    def offsets(self) -> Mapping[str, int]:
        """Return file name -> offset up to which it is indexed."""
        with self._open() as connection:
            return dict(connection.execute("select name, offset from files"))

    def known(self, nonces: Sequence[bytes]) -> Mapping[tuple[bytes, int], bytes]:
        """Return (nonce, ordinal) -> event id of every indexed event with one of these nonces.

        Of several events of one capture and ordinal the least (lamport, id) is given, which is the one that counts.
        """
        wanted = set(nonces)
        wanted.discard(b"")
        found: dict[tuple[bytes, int], tuple[int, bytes]] = {}
        with self._open() as connection:
            for chunk in chunks(sorted({number8(nonce) for nonce in wanted})):
                sql = f"select nonce, ordinal, lamport, id from events where nonce8 in ({chunk})"
                for nonce, ordinal, lamport, identity in connection.execute(sql):
                    order = (lamport, identity)
                    if nonce in wanted and order <= found.get((nonce, ordinal), order):
                        found[nonce, ordinal] = order
            unknown = wanted.difference([nonce for nonce, _ in found])
            self._unknown = (rows.next_number(connection), frozenset(unknown))
        return {slot: identity for slot, (_, identity) in found.items()}

    def bodies(self, ids: Collection[bytes]) -> Mapping[bytes, bool]:
        """Return id -> whether its body is held, or erased, of those of the events that are known."""
        with self._open() as connection:
            return door.bodies(connection, ids)

    def refused(self, events: Sequence[Event]) -> Collection[bytes]:
        """Return the ids of those of the events whose body an erasure forbids to keep."""
        with self._open() as connection:
            return door.refused(connection, events)

    def erases(self, replica: bytes) -> bool:
        """Tell whether something erased is still here, or this replica has an erasure to acknowledge. Cheap."""
        with self._open() as connection:
            return erasures.is_open(connection, replica)

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        """Index the events, which may be known already, and advance the offsets, all in one transaction."""
        with self._open() as connection, schema.transaction(connection):
            numbers = put_files(connection, offsets, events)
            if events:
                at, unknown = self._unknown
                fresh = unknown if at == rows.next_number(connection) else ()
                add(connection, events, numbers, received_ms, settle_now=True, unknown=fresh)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with schema.guard(self._path):
            if self._connection is not None and self._file != schema.file_identity(self._path):
                self.close()
            if self._connection is None:
                self._connection = schema.open_write(self._path, self._busy_s)
                self._file = schema.file_identity(self._path)
            yield self._connection


def put_files(
    connection: sqlite3.Connection, offsets: Mapping[str, int], events: Sequence[Stored] = ()
) -> Mapping[str, int]:
    """Advance the offsets and return the numbers of all files."""
    put = "insert into files(name, offset) values(?, ?) on conflict(name) do update set offset = excluded.offset"
    connection.executemany(put, offsets.items())
    new = {stored.file for stored in events}.difference(offsets)
    connection.executemany("insert or ignore into files(name, offset) values(?, 0)", [(name,) for name in new])
    return dict(connection.execute("select name, number from files"))


def add(
    connection: sqlite3.Connection,
    events: Sequence[Stored],
    numbers: Mapping[str, int],
    received: int,
    *,
    settle_now: bool,
    unknown: Collection[bytes] = (),
) -> None:
    """Index events inside a transaction.

    Without ``settle_now`` the state is left behind: ``rebuild`` folds later. ``unknown`` are nonces that are known to
    have no event in the index.
    """
    before: dict[int, Event] = {}
    changed: dict[int, Event] = {}
    connection.execute("savepoint fresh")
    try:
        inserted = rows.insert(connection, events, numbers, received)
    except sqlite3.IntegrityError:
        connection.execute("rollback to fresh")
        events, changed, before = _sort_out(connection, events, numbers)
        inserted = rows.insert(connection, events, numbers, received)
    connection.execute("release fresh")
    telling = Telling(connection, received)
    foldable: dict[int, Event] = {}
    fresh_ones = ((n, stored.event) for n, stored in enumerate(events, inserted.first))
    for n, event in chain(fresh_ones, changed.items()):
        spoiled = malformed(event)
        if event.header.kind in FOLDABLE or spoiled:
            foldable[n] = event
        if not spoiled and (event.header.kind not in FOLDABLE or event.header.kind in TOLD_TOO):
            telling.add(n, event)
    telling.write()
    _raise_top(connection, [row[1] for row in inserted.rows])
    made = closure.insert(connection, foldable) if foldable else {}
    if settle_now:
        drawn = closure.drawn_in(connection, events, inserted, unknown)
        # With its body an event begins to count, also as an ingestion of its capture.
        fresh = {**foldable, **drawn, **changed}
        if fresh:
            settle(connection, fresh, before, foldable.keys() - drawn.keys() - changed.keys(), made)


def _sort_out(
    connection: sqlite3.Connection, events: Sequence[Stored], numbers: Mapping[str, int]
) -> tuple[list[Stored], dict[int, Event], dict[int, Event]]:
    """Return the events that are new; those that were known without their body; and these as they were known."""
    once: dict[bytes, Stored] = {}
    for stored in events:
        kept = once.setdefault(stored.event.id, stored)
        if kept is not stored and not held(kept) and held(stored):
            once[stored.event.id] = stored
    known: dict[bytes, tuple[int, bool]] = {}
    for chunk in chunks(sorted({number8(identity) for identity in once})):
        for n, identity, is_held in connection.execute(f"select n, id, held from events where id8 in ({chunk})"):
            if identity in once:
                known[identity] = (n, bool(is_held))
    changed: dict[int, Event] = {}
    for identity, (n, is_held) in known.items():
        stored = once[identity]
        erased = connection.execute("select 1 from erased where id = ?", (identity,)).fetchone()
        if erased and held(stored):
            # A file that somebody put there by hand: its body must go, too.
            connection.execute("update erased set clean = 0 where id = ?", (identity,))
        if is_held or not held(stored) or erased:
            continue
        changed[n] = stored.event
        header = stored.event.header
        sums.counted(connection, [sums.Counted(header.lamport, identity, header.writer, header.seq)])
    before = closure.load(connection, changed)
    for n, event in changed.items():
        _put_body(connection, n, once[event.id], numbers[once[event.id].file])
    return [stored for identity, stored in once.items() if identity not in known], changed, before


def _put_body(connection: sqlite3.Connection, n: int, stored: Stored, file: int) -> None:
    payload = rows.mapping(stored.event)
    connection.execute(
        "update events set file = ?, offset = ?, length = ?, held = 1, malformed = ?, session = ?, project = ?"
        " where n = ?",
        (
            file, stored.offset, stored.length, malformed(stored.event),
            string(payload, "session"), string(payload, "project"), n,
        ),
    )  # fmt: skip
    connection.execute("delete from foldable where n = ?", (n,))


def _raise_top(connection: sqlite3.Connection, lamports: Sequence[int]) -> None:
    """An event too far ahead is kept, but the own counter does not follow it."""
    old = top = meta.get(connection, "top")
    for lamport in (
        sorted(lamports) if max(lamports, default=0) > top + LAMPORT_LEAP_MAX else (max(lamports, default=0),)
    ):
        if top < lamport <= top + LAMPORT_LEAP_MAX:
            top = lamport
    if top != old:
        meta.put(connection, "top", top)
