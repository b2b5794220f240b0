"""Which events are held, asked as exchange needs it: by ranges of the order and by writers.

Held are the events that the set digest counts (``sums``). Keys are (lamport, id), ranges are [low, high). Every
question is answered from sums and runs, or by looking at few rows; none reads everything.
"""

from __future__ import annotations

import itertools
import sqlite3
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from memorize.ids import RANDOM_BYTES
from memorize.index import meta
from memorize.index.packing import chunks, number8
from memorize.index.rows import INT_MAX
from memorize.index.sums import BUCKET_BITS
from memorize.model import Key

_MODULUS: Final = 2**256
_BEHIND_IDS: Final = b"\xff" * 33
_IN_RANGE: Final = "(lamport, id) >= (?, ?) and (lamport, id) < (?, ?)"
_COUNTS: Final = "(e.held or exists(select 1 from erased x where x.id = e.id))"
_WANTED: Final = "not held and not exists(select 1 from erased x where x.id = events.id)"
_PLACE: Final = """
select e.lamport, e.id, e.seq, f.name, e.offset, e.length, exists(select 1 from erased x where x.id = e.id)
from events e join files f on f.number = e.file where """
_HEADS: Final = """
select w.writer, w.last_seq, e.id from writers w
join runs r on r.writer = w.writer and r.low = 1 and r.high = w.last_seq
join events e on e.writer = w.writer and e.seq = w.last_seq
where w.events = w.last_seq order by w.writer"""


class Frame(NamedTuple):
    """Where the frame of a held event lies. ``erased``: its body must not be given to anybody."""

    lamport: int
    id: bytes
    seq: int
    file: str
    offset: int
    length: int
    erased: bool


class _Piece(NamedTuple):
    """A part of a range in which so many events lie; a whole bucket or the edge of one."""

    low: Key
    high: Key
    events: int


def digest(connection: sqlite3.Connection, low: Key, high: Key) -> tuple[int, int]:
    """Return the number of held events in a range, and the sum of their ids mod 2^256."""
    whole, edges = _parts(low, high)
    count = total = 0
    for events, raw in connection.execute("select events, total from sums where bucket >= ? and bucket < ?", whole):
        count, total = count + events, total + int.from_bytes(raw, "big")
    for start, end in edges:
        ids = _ids(connection, start, end)
        count, total = count + len(ids), total + sum([int.from_bytes(identity, "big") for identity in ids])
    return count, total % _MODULUS


def everything(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return count and sum of all held events."""
    return meta.totals(connection, "set")


def keys(connection: sqlite3.Connection, low: Key, high: Key, limit: int) -> list[Key]:
    """Return the first keys of a range, ascending."""
    wanted = _wanted(connection, low, high)
    sql = f"select lamport, id from events where {_IN_RANGE} order by lamport, id"
    rows = connection.execute(sql, (*_bound(low), *_bound(high)))
    return list(itertools.islice((row for row in rows if row[1] not in wanted), limit))


def bounds(connection: sqlite3.Connection, low: Key, high: Key, parts: int) -> list[Key]:
    """Return at most ``parts - 1`` keys, ascending and inside, that cut a range into about equally large parts.

    Where a part is larger than a bucket it ends with one, so that its digest is a sum of sums.
    """
    pieces = _pieces(connection, low, high)
    ends = list(itertools.accumulate(piece.events for piece in pieces))
    total = ends[-1] if ends else 0
    step = total / max(parts, 1)
    found: list[Key] = []
    for target in sorted({round(step * number) for number in range(1, parts)} - {0, total}):
        at = bisect_right(ends, target)
        piece, before = pieces[at], ends[at] - pieces[at].events
        key = piece.low if piece.events <= step else _nth(connection, piece, target - before)
        if key is not None and low < key < high and (not found or key > found[-1]):
            found.append(key)
    return found


def _nth(connection: sqlite3.Connection, piece: _Piece, number: int) -> Key | None:
    sql = f"select lamport, id from events where {_IN_RANGE} order by lamport, id limit 1 offset ?"
    found: Key | None = connection.execute(sql, (*_bound(piece.low), *_bound(piece.high), number)).fetchone()
    return found


def _pieces(connection: sqlite3.Connection, low: Key, high: Key) -> list[_Piece]:
    whole, edges = _parts(low, high)
    found = [_Piece(start, end, len(_ids(connection, start, end))) for start, end in edges]
    sql = "select bucket, events from sums where bucket >= ? and bucket < ? order by bucket"
    for bucket, events in connection.execute(sql, whole):
        found.append(_Piece((bucket << BUCKET_BITS, b""), ((bucket + 1) << BUCKET_BITS, b""), events))
    return sorted(piece for piece in found if piece.events)


def _parts(low: Key, high: Key) -> tuple[tuple[int, int], list[tuple[Key, Key]]]:
    """Return the buckets that lie in a range as a whole, [first, last), and the ranges beside them."""
    low, high = _bound(low), _bound(high)
    first = (low[0] >> BUCKET_BITS) + (1 if low > (low[0] >> BUCKET_BITS << BUCKET_BITS, b"") else 0)
    last = high[0] >> BUCKET_BITS
    if first >= last:
        return (0, 0), [(low, high)] if low < high else []
    edges = [(low, (first << BUCKET_BITS, b"")), ((last << BUCKET_BITS, b""), high)]
    return (first, last), [(start, end) for start, end in edges if start < end]


def _bound(key: Key) -> Key:
    """Return a bound that SQLite can hold."""
    return key if key[0] <= INT_MAX else (INT_MAX, _BEHIND_IDS)


def _ids(connection: sqlite3.Connection, low: Key, high: Key) -> list[bytes]:
    wanted = _wanted(connection, low, high)
    rows = connection.execute(f"select id from events where {_IN_RANGE}", (*_bound(low), *_bound(high)))
    return [identity for (identity,) in rows if identity not in wanted]


def _wanted(connection: sqlite3.Connection, low: Key, high: Key) -> frozenset[bytes]:
    sql = f"select id from events where {_IN_RANGE} and {_WANTED}"
    return frozenset(identity for (identity,) in connection.execute(sql, (*_bound(low), *_bound(high))))


def wanted(connection: sqlite3.Connection) -> list[Key]:
    """Return the keys of the events of which only the header is known, though nobody erased them."""
    return connection.execute(f"select lamport, id from events where {_WANTED} order by lamport, id").fetchall()


# -- by writer ------------------------------------------------------------------------------------------------------


def heads(connection: sqlite3.Connection) -> list[tuple[bytes, int, bytes]]:
    """Return (writer, last number, its id) of every writer that is held whole and without twins, by writer."""
    return [row for row in connection.execute(_HEADS) if len(row[0]) == RANDOM_BYTES]


def runs(connection: sqlite3.Connection) -> Mapping[bytes, tuple[bytes, list[tuple[int, int]]]]:
    """Return writer -> (replica, runs of numbers of which at least one event is held)."""
    found: dict[bytes, tuple[bytes, list[tuple[int, int]]]] = {}
    sql = "select r.writer, w.replica, r.low, r.high from runs r join writers w on w.writer = r.writer order by 1, 3"
    for writer, replica, low, high in connection.execute(sql):
        found.setdefault(writer, (replica, []))[1].append((low, high))
    return found


def twins(connection: sqlite3.Connection) -> list[Key]:
    """Return the keys of all held events that share writer and number with another one."""
    sql = f"""select e.lamport, e.id from twins t join events e on e.writer = t.writer and e.seq = t.seq
        where {_COUNTS} order by 1, 2"""
    return connection.execute(sql).fetchall()


def own(connection: sqlite3.Connection) -> frozenset[bytes]:
    """Return the writers of which this state directory has a segment."""
    names = [name for (name,) in connection.execute("select name from files where name like 'segments/%'")]
    digits = (name.partition("/")[2].partition("-")[0] for name in names)
    return frozenset(bytes.fromhex(text) for text in digits if len(text) == 32 and not set(text) - _HEX)


_HEX: Final = set("0123456789abcdef")


def holds(connection: sqlite3.Connection, writer: bytes, seq: int, identity: bytes) -> bool:
    """Tell whether exactly this event is held."""
    sql = f"select 1 from events e where e.writer = ? and e.seq = ? and e.id = ? and {_COUNTS}"
    return connection.execute(sql, (writer, seq, identity)).fetchone() is not None


def frames_of(connection: sqlite3.Connection, writer: bytes, low: int, high: int, limit: int) -> list[Frame]:
    """Return the first frames of a writer's held events with these numbers, by number, then (lamport, id)."""
    sql = f"{_PLACE} e.writer = ? and e.seq between ? and ? and {_COUNTS} order by e.seq, e.lamport, e.id limit ?"
    return [Frame(*row) for row in connection.execute(sql, (writer, low, min(high, INT_MAX), limit))]


def frames(connection: sqlite3.Connection, ids: Sequence[bytes]) -> list[Frame]:
    """Return the frames of these events as far as they are held, by (lamport, id)."""
    wanted_ids = set(ids)
    found: list[Frame] = []
    for chunk in chunks(sorted({number8(identity) for identity in wanted_ids})):
        rows = connection.execute(f"{_PLACE} e.id8 in ({chunk}) and {_COUNTS}")
        found += [Frame(*row) for row in rows if row[1] in wanted_ids]
    return sorted(found)
