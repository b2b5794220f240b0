"""What is asked of erasures: what is still here of erased events, and who has said that nothing is left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from memorize.index.closure import chunks, unpack
from memorize.index.devices import Device
from memorize.index.rows import number8

_PLACE: Final = """
select e.n, e.id, e.kind, e.nonce, e.session, f.name, e.offset, e.length
from events e join files f on f.number = e.file where """
_UNDONE: Final = """
select e.n, e.id from erasures e
where not exists(select 1 from acknowledged a where a.erasure = e.id and a.replica = ?) order by e.n"""


class Spot(NamedTuple):
    """An erased event that may have left something behind, and where its frame lies."""

    n: int
    id: bytes
    kind: str
    nonce: bytes
    session: str
    file: str
    offset: int
    length: int


class Request(NamedTuple):
    """One erasure: how many events it names, and when it was asked for (wall ms)."""

    id: bytes
    lamport: int
    wall: int
    events: int


class Standing(NamedTuple):
    """A device, and the erasures that it has not acknowledged."""

    device: Device
    open: tuple[bytes, ...]


def is_open(connection: sqlite3.Connection, replica: bytes) -> bool:
    """Tell whether something erased is still here, or this replica has not acknowledged an erasure yet."""
    unclean = connection.execute("select exists(select 1 from erased where not clean)").fetchone()[0]
    return bool(unclean) or connection.execute(f"{_UNDONE} limit 1", (replica,)).fetchone() is not None


def unclean(connection: sqlite3.Connection) -> list[Spot]:
    """Return the erased events of which something may still be here."""
    ids = {identity for (identity,) in connection.execute("select id from erased where not clean")}
    return spots(connection, ids)


def spots(connection: sqlite3.Connection, ids: Iterable[bytes]) -> list[Spot]:
    """Return where these events lie, in order of their arrival."""
    wanted = set(ids)
    found: list[Spot] = []
    for chunk in chunks(sorted({number8(identity) for identity in wanted})):
        found += [Spot(*row) for row in connection.execute(f"{_PLACE} e.id8 in ({chunk})") if row[1] in wanted]
    return sorted(found)


def unacknowledged(connection: sqlite3.Connection, replica: bytes) -> list[bytes]:
    """Return the erasures that this replica has not acknowledged, in order of their arrival."""
    return [bytes(identity) for _, identity in connection.execute(_UNDONE, (replica,))]


def requests(connection: sqlite3.Connection) -> list[Request]:
    """Return all erasures, the earliest first."""
    sql = """select e.id, e.lamport, e.wall, f.payload from erasures r join events e on e.n = r.n
        join foldable f on f.n = r.n order by e.lamport, e.id"""
    rows = connection.execute(sql)
    return [Request(bytes(one), lamport, wall, len(unpack(raw)["ids"])) for one, lamport, wall, raw in rows if raw]


def standings(connection: sqlite3.Connection, known: Sequence[Device], erasures: Sequence[Request]) -> list[Standing]:
    """Return how each of these devices stands to the erasures.

    The word of the incarnation heard of last counts: a state directory that was restored must do it all again.
    """
    said: dict[bytes, set[bytes]] = {}
    for erasure, replica in connection.execute("select erasure, replica from acknowledged"):
        said.setdefault(bytes(replica), set()).add(bytes(erasure))
    found = []
    for device in known:
        latest = max(device.replicas, key=lambda replica: (_top(connection, replica), replica))
        done = said.get(latest, set())
        found.append(Standing(device, tuple(one.id for one in erasures if one.id not in done)))
    return found


def _top(connection: sqlite3.Connection, replica: bytes) -> int:
    """Return the largest Lamport number of a replica, by the last events of its writers."""
    sql = """select max((select e.lamport from events e where e.writer = w.writer order by e.seq desc limit 1))
        from writers w where w.replica = ?"""
    return int(connection.execute(sql, (replica,)).fetchone()[0] or 0)
