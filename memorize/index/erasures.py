"""What is asked of erasures: what is still here of erased events, and who has said that nothing is left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

from memorize.index.closure import chunks
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
