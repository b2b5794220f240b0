"""The devices that wrote what is held, by what they told of themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from memorize.index.packing import number8
from memorize.model import DEVICE_HELLO, DEVICE_RETIRED, Event, Payload


class Device(NamedTuple):
    """One machine of the person. ``last``: the latest wall time in ms of its events, as its clock had it."""

    id: str
    name: str
    platform: str
    version: str
    replicas: tuple[bytes, ...]
    events: int
    last: int


_ROWS = """
select r.device, r.name, r.platform, r.version, w.replica, sum(w.events), max(w.wall)
from writers w left join replicas r on r.replica = w.replica
group by w.replica order by max(w.wall), w.replica
"""


def devices(connection: sqlite3.Connection) -> list[Device]:
    """Return every device, the one heard of last first; replicas of which no greeting came are one each."""
    found: dict[str, Device] = {}
    for device, name, platform, version, replica, events, last in connection.execute(_ROWS):
        key = device or replica.hex()
        kept = found.get(key, Device(key, "", "", "", (), 0, 0))
        found[key] = Device(
            key,
            name or kept.name,
            platform or kept.platform,
            version or kept.version,
            (*kept.replicas, bytes(replica)),
            kept.events + events,
            max(kept.last, last),
        )
    return sorted(found.values(), key=lambda one: (-one.last, one.id))


def retired(connection: sqlite3.Connection, event: Callable[[bytes], Event | None]) -> frozenset[bytes]:
    """Return the replicas that were said never to come back, alone or with their whole device.

    ``event`` reads one by its id.
    """
    if connection.execute("select 1 from kinds where kind = ?", (DEVICE_RETIRED,)).fetchone() is None:
        return frozenset()
    ids = connection.execute("select id from events where kind = ?", (DEVICE_RETIRED,)).fetchall()
    said = [payload for payload in _payloads(ids, event) if payload]
    names, alone = {payload.get("device") for payload in said}, {payload.get("replica") for payload in said}
    known = [(device.id, replica) for device in devices(connection) for replica in device.replicas]
    return frozenset(replica for device, replica in known if device in names or replica.hex() in alone)


def superseded(connection: sqlite3.Connection, event: Callable[[bytes], Event | None]) -> frozenset[bytes]:
    """Return the replicas in whose place another one stands by its own word, so that no directory goes on under them.

    One that was heard of after that word is there all the same: somebody has put the earlier directory back.
    """
    walls, found = last_heard(connection), set[bytes]()
    for (replica,) in connection.execute("select replica from replicas").fetchall():
        sql = "select id, wall from events where nonce8 = ? and nonce = ? and kind = ?"
        for identity, wall in connection.execute(sql, (number8(replica), replica, DEVICE_HELLO)).fetchall():
            for payload in _payloads([(identity,)], event):
                gone = (payload or {}).get("gone")
                named = [one for one in gone if isinstance(one, bytes)] if isinstance(gone, list) else []
                found |= {one for one in named if one != replica and walls.get(one, 0) <= wall}
    return frozenset(found)


def last_heard(connection: sqlite3.Connection) -> Mapping[bytes, int]:
    """Return replica -> the latest wall time in ms of its events, as its clock had it."""
    rows = connection.execute("select replica, max(wall) from writers group by replica")
    return {bytes(replica): wall for replica, wall in rows}


def _payloads(ids: Iterable[tuple[bytes]], event: Callable[[bytes], Event | None]) -> Iterator[Payload | None]:
    """Yield what these events say; None when it cannot be read."""
    for (identity,) in ids:
        if (found := event(bytes(identity))) is not None:
            yield found.payload
