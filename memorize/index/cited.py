"""Memories that were taken from what is erased now: they wait for a person, unless the erasure lists them as kept."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Final

from memorize.index.packing import pack, unpack
from memorize.model import REVIEW

_NO_IDS: Final = pack(())
_SHOWN: Final = """
select s.n, s.live, s.review from shown s where s.text_group in
  (select m.text_group from memories m where m.id in (select id from temp.citing))"""


def anything(connection: sqlite3.Connection) -> bool:
    """Tell whether anything is erased at all."""
    return bool(connection.execute("select exists(select 1 from erased)").fetchone()[0])


def taken_from(connection: sqlite3.Connection, memory: bytes, sources: Iterable[bytes]) -> bool:
    """Tell whether one of these sources of a memory is erased, and no erasure says that the memory may stay."""
    if not any(connection.execute("select 1 from erased where id = ?", (source,)).fetchone() for source in sources):
        return False
    return connection.execute("select 1 from kept where id = ?", (memory,)).fetchone() is None


def mark(connection: sqlite3.Connection) -> None:
    """Bring the column ``review`` of what is shown up to what is erased and kept now. Looks at every memory once."""
    if not anything(connection):
        return
    erased = {identity for (identity,) in connection.execute("select id from erased")}
    rows = connection.execute("select id, sources from memories where sources <> ?", (_NO_IDS,))
    citing = [(identity,) for identity, sources in rows if not erased.isdisjoint(unpack(sources))]
    connection.execute("create temp table if not exists citing(id blob primary key)")
    connection.execute("delete from temp.citing")
    connection.executemany("insert or ignore into temp.citing values(?)", citing)
    for n, live, review in connection.execute(_SHOWN).fetchall():
        waits = _waits(connection, unpack(live))
        if waits != bool(review):
            connection.execute("update shown set review = ? where n = ?", (waits, n))
    connection.execute("drop table temp.citing")


def _waits(connection: sqlite3.Connection, live: Iterable[bytes]) -> bool:
    members = [
        connection.execute("select id, tags, window, sources from memories where id = ?", (identity,)).fetchone()
        for identity in live
    ]
    if all(REVIEW in json.loads(tags) and window for _, tags, window, _ in members):
        return True
    return all(taken_from(connection, identity, unpack(sources)) for identity, _, _, sources in members)
