"""How long memories hold, by kind: how often they were told, whether they were of use, and how old they became.

Measured, local, and without any effect on what is shown: it is there so that kinds and prompts can be judged by it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from statistics import median
from typing import Final, NamedTuple

import msgpack

from memorize.index.packing import number8

_DAY_MS: Final = 24 * 3600 * 1000
_IN_MAX: Final = 500
_OVERRULED: Final = ("superseded", "retracted", "shadowed")
# Told in a session that went on to edit a file which the memory names.
_EDITED: Final = """
select distinct m.n from memories m join delivered d on d.item = m.id join events told on told.n = d.n
  join events e on e.session = d.session and e.lamport > told.lamport join touched t on t.n = e.n
  where m.paths <> '[]' and t.path in (select value from json_each(m.paths))
"""


class Lifetime(NamedTuple):
    """What became of the memories of one kind.

    ``told`` counts memories, ``times`` every telling. ``used``: told, and then a file that it names was edited in that
    session; or confirmed. ``days`` is the median age, in days, at which one was superseded or retracted (None: none).
    """

    kind: str
    formed: int
    live: int
    expired: int
    told: int
    times: int
    used: int
    superseded: int
    retracted: int
    doubled: int
    days: float | None


def lifetimes(connection: sqlite3.Connection, now_ms: int) -> list[Lifetime]:
    """Return one line a kind, in order of kind."""
    told: dict[bytes, int] = dict(connection.execute("select item, count(*) from delivered group by item"))
    used = {n for (n,) in connection.execute(_EDITED)}
    used |= {n for (n,) in connection.execute("select n from shown where confirmations > 0")}
    walls = _walls(connection)
    lines: dict[str, Lifetime] = {}
    ages: dict[str, list[float]] = {}
    for n, identity, kind, status, wall, expires_at, by in connection.execute(
        "select n, id, kind, status, wall, expires_at, overruled_by from memories where status <> 'erased' order by n"
    ):
        times = told.get(identity, 0)
        old = lines.get(kind) or Lifetime(kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, None)
        lines[kind] = old._replace(
            formed=old.formed + 1,
            live=old.live + (status == "live"),
            expired=old.expired + (status == "live" and expires_at is not None and expires_at <= now_ms),
            told=old.told + bool(times),
            times=old.times + times,
            used=old.used + (n in used),
            superseded=old.superseded + (status == "superseded"),
            retracted=old.retracted + (status == "retracted"),
            doubled=old.doubled + (status == "shadowed"),
        )
        ends = [walls[one] for one in msgpack.unpackb(by) if one in walls]
        if status in ("superseded", "retracted") and ends:
            ages.setdefault(kind, []).append(max(0, min(ends) - wall) / _DAY_MS)
    found = [line._replace(days=round(median(ages[kind]), 2) if kind in ages else None) for kind, line in lines.items()]
    return sorted(found, key=lambda line: line.kind)


def _walls(connection: sqlite3.Connection) -> dict[bytes, int]:
    """Return the wall times (ms) of every event that overrules a memory."""
    marks = ", ".join("?" * len(_OVERRULED))
    rows = connection.execute(f"select overruled_by from memories where status in ({marks})", _OVERRULED)
    wanted = sorted({one for (cell,) in rows for one in msgpack.unpackb(cell)})
    found: dict[bytes, int] = {}
    for part in _parts(wanted):
        numbers = [number8(one) for one in part]
        sql = f"select id, wall from events where id8 in ({', '.join('?' * len(numbers))})"
        found.update(connection.execute(sql, numbers))
    return found


def _parts(wanted: list[bytes]) -> Iterator[list[bytes]]:
    for start in range(0, len(wanted), _IN_MAX):
        yield wanted[start : start + _IN_MAX]
