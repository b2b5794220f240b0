"""The devices that wrote what is held, by what they told of themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from memorize.model import DEVICE_RETIRED, Event


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
    """Return the replicas of devices that were said never to come back. ``event`` reads one by its id."""
    if connection.execute("select 1 from kinds where kind = ?", (DEVICE_RETIRED,)).fetchone() is None:
        return frozenset()
    ids = connection.execute("select id from events where kind = ?", (DEVICE_RETIRED,)).fetchall()
    said = (found.payload for (identity,) in ids if (found := event(bytes(identity))) is not None)
    names = {payload.get("device") for payload in said if payload}
    return frozenset(one for device in devices(connection) if device.id in names for one in device.replicas)
