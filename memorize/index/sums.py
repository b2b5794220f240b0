"""What the set digest counts, kept as sums: of stretches of the order, and the runs of numbers of every writer.

An event counts once its body is held, or once an erasure of it has taken effect. From then on it counts for ever.
``counted`` is called with it in the same transaction, once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from memorize.index import meta

# A bucket holds the events of 1,024 Lamport numbers: a million events are a thousand rows.
BUCKET_BITS: Final = 10
_MODULUS: Final = 2**256
_GET: Final = "select events, total from sums where bucket = ?"
_PUT: Final = "insert or replace into sums values(?, ?, ?)"
# Runs never touch: of those that begin at or below a number only the last few can reach it.
_NEAR: Final = "select low, high from runs where writer = ? and low <= ? order by low desc"
_COUNTED: Final = """
select lamport, id, writer, seq from events
where held or exists(select 1 from erased x where x.id = events.id) order by writer, seq"""


class Counted(NamedTuple):
    """What is needed of an event that begins to count."""

    lamport: int
    id: bytes
    writer: bytes
    seq: int


def counted(connection: sqlite3.Connection, events: Sequence[Counted]) -> None:
    """Let these events count from now on."""
    if not events:
        return
    buckets: dict[int, list[int]] = {}
    seqs: dict[bytes, list[int]] = {}
    for lamport, identity, writer, seq in events:
        buckets.setdefault(lamport >> BUCKET_BITS, []).append(int.from_bytes(identity, "big"))
        seqs.setdefault(writer, []).append(seq)
    meta.add(connection, "set", len(events), sum([sum(found) for found in buckets.values()]))
    for bucket, found in buckets.items():
        count, total = connection.execute(_GET, (bucket,)).fetchone() or (0, b"")
        raw = ((int.from_bytes(total, "big") + sum(found)) % _MODULUS).to_bytes(32, "big")
        connection.execute(_PUT, (bucket, count + len(found), raw))
    for writer, numbers in seqs.items():
        _extend(connection, writer, sorted(numbers))


def _extend(connection: sqlite3.Connection, writer: bytes, numbers: list[int]) -> None:
    """Add numbers of a writer, ascending, to its runs; remember those that are there twice."""
    first = last = numbers[0]
    twins: set[int] = set()
    for number in numbers[1:]:
        if number == last:
            twins.add(number)
        elif number == last + 1:
            last = number
        else:
            twins |= _put_run(connection, writer, first, last)
            first = last = number
    twins |= _put_run(connection, writer, first, last)
    if twins:
        connection.executemany("insert or ignore into twins values(?, ?)", [(writer, seq) for seq in sorted(twins)])


def _put_run(connection: sqlite3.Connection, writer: bytes, first: int, last: int) -> set[int]:
    """Add one run and return the numbers of it that were there already."""
    low, high = first, last
    twins: set[int] = set()
    near = []
    for start, end in connection.execute(_NEAR, (writer, last + 1)):
        if end < first - 1:
            break
        near.append(start)
        twins.update(range(max(start, first), min(end, last) + 1))
        low, high = min(low, start), max(high, end)
    swallowed = [(writer, start) for start in near if start > low]
    connection.executemany("delete from runs where writer = ? and low = ?", swallowed)
    connection.execute("insert or replace into runs values(?, ?, ?)", (writer, low, high))
    return twins


def flaw(connection: sqlite3.Connection) -> str:
    """Compare what is kept with the events that should count; return what is wrong, "" when nothing."""
    sums: dict[int, tuple[int, int]] = {}
    runs: list[tuple[bytes, int, int]] = []
    twins: set[tuple[bytes, int]] = set()
    for lamport, identity, writer, seq in connection.execute(_COUNTED):
        events, total = sums.get(lamport >> BUCKET_BITS, (0, 0))
        sums[lamport >> BUCKET_BITS] = (events + 1, (total + int.from_bytes(identity, "big")) % _MODULUS)
        if not runs or runs[-1][0] != writer or seq > runs[-1][2] + 1:
            runs.append((writer, seq, seq))
        elif seq == runs[-1][2]:
            twins.add((writer, seq))
        else:
            runs[-1] = (writer, runs[-1][1], seq)
    whole = (sum([events for events, _ in sums.values()]), sum([total for _, total in sums.values()]) % _MODULUS)
    if whole != meta.totals(connection, "set"):
        return "its digest is not that of its events"
    kept = connection.execute("select bucket, events, total from sums")
    if {bucket: (events, int.from_bytes(raw, "big")) for bucket, events, raw in kept} != sums:
        return "its sums are not those of its events"
    same = runs == connection.execute("select writer, low, high from runs order by writer, low").fetchall()
    if not same or twins != set(connection.execute("select writer, seq from twins")):
        return "the runs of its writers are not those of its events"
    return ""
