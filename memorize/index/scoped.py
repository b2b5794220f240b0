"""Which project an event belongs to, as the index knows it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from memorize.index.packing import number8


def projects_of(connection: sqlite3.Connection, identities: Iterable[bytes]) -> list[str]:
    """Return the projects of these events, each once, in the order in which they are named; of unknown ones none."""
    found: dict[str, None] = {}
    for identity in identities:
        sql = "select project from events where id8 = ? and id = ?"
        row = connection.execute(sql, (number8(identity), identity)).fetchone()
        if row is not None and row[0]:
            found[str(row[0])] = None
    return list(found)
