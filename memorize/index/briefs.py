"""The table of briefs: what a session start prints when no daemon is there to ask."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memorize.index import meta, schema


class Spot(NamedTuple):
    """A directory of this device in which sessions start, and its project."""

    path: str
    project: str
    root: str
    name: str


class StoredBrief(NamedTuple):
    """A brief of an agent in a directory; ``record`` is the line that tells what was delivered by ``text``."""

    agent: str
    directory: str
    project: str
    record: str
    text: str


def spots(connection: sqlite3.Connection, device: str, project: str | None = None) -> list[Spot]:
    """Return the directories of this device, the latest first; with ``project`` only those of its family."""
    sql = """
        select p.path, p.project, coalesce(r.root, p.project), coalesce(r.name, '') from places p
        left join projects r on r.key = p.project where p.device = ?
        and (? is null or coalesce(r.root, p.project) =
             coalesce((select root from projects where key = ?), ?)) order by p.lamport desc
    """
    return [Spot(*row) for row in connection.execute(sql, (device, project, project, project))]


def state_mark(connection: sqlite3.Connection) -> str:
    """Return what changes whenever the state does."""
    count, total = meta.totals(connection, "state")
    return f"{count}:{total:x}"


def rendered_mark(connection: sqlite3.Connection) -> str:
    """Return the mark that was given when all briefs were rendered last."""
    return str(meta.get(connection, "briefs", ""))


def put(path: Path, briefs: Sequence[StoredBrief], mark: str | None, busy_s: float = schema.BUSY_S) -> None:
    """Store briefs. With a ``mark`` they are all there are, and the others go; without one they replace their like."""
    connection = schema.open_write(path, busy_s)
    try:
        with schema.guard(path), schema.transaction(connection):
            if mark is not None:
                connection.execute("delete from briefs")
                meta.put(connection, "briefs", mark)
            connection.executemany("insert or replace into briefs values(?, ?, ?, ?, ?)", briefs)
    finally:
        connection.close()
