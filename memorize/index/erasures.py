"""What is asked of erasures: what is still here of erased events, and who has said that nothing is left."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from memorize.index.devices import Device, last_heard
from memorize.index.packing import chunks, number8, unpack

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


class Incarnation(NamedTuple):
    """A replica of a device and the erasures that it has not acknowledged. ``last``: heard of, in wall ms."""

    replica: bytes
    last: int
    open: tuple[bytes, ...]


class Standing(NamedTuple):
    """A device with every replica of it that may be there, and the erasures that one of these did not acknowledge."""

    device: Device
    open: tuple[bytes, ...]
    replicas: tuple[Incarnation, ...]


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


def standings(
    connection: sqlite3.Connection, known: Sequence[Device], erasures: Sequence[Request], gone: Collection[bytes]
) -> list[Standing]:
    """Return how each of these devices stands to the erasures, and each of its replicas but those that are ``gone``.

    Every replica speaks for itself: what one has done says nothing of a copy of its directory, or of the directory
    that it was before it was restored.
    """
    said: dict[bytes, set[bytes]] = {}
    for erasure, replica in connection.execute("select erasure, replica from acknowledged"):
        said.setdefault(bytes(replica), set()).add(bytes(erasure))
    walls = last_heard(connection)
    found = []
    for device in known:
        replicas = [
            Incarnation(one, walls.get(one, 0), tuple(e.id for e in erasures if e.id not in said.get(one, ())))
            for one in device.replicas
            if one not in gone
        ]
        replicas.sort(key=lambda one: (-one.last, one.replica))
        waiting = {identity for one in replicas for identity in one.open}
        found.append(Standing(device, tuple(e.id for e in erasures if e.id in waiting), tuple(replicas)))
    return found
