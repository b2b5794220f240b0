"""Taking what erased events said out of the index for good: out of its tables, then out of its file.

An erasure takes effect in the state as soon as it is indexed. What a body told besides (a session's branch, a
project's remote) is taken out here, by telling anew what the remaining events tell of the same. ``erased.clean`` says
whether all of that, and the log itself, is done.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path
from typing import Final

from memorize import model
from memorize.errors import CannotRead, IndexBusy
from memorize.fold import keys
from memorize.index import schema
from memorize.index.erasures import Spot
from memorize.index.packing import chunks, key_number
from memorize.index.rows import FOLDABLE, TOLD_TOO, Telling, malformed
from memorize.log.codec import Bad
from memorize.log.segments import read_event
from memorize.model import Event

_FTS: Final = ("memory_fts", "observation_fts")
_REST: Final = """
select e.n, e.received, f.name, e.offset, e.length, e.kind from events e join files f on f.number = e.file
where {} and e.held and not exists(select 1 from erased x where x.id = e.id) order by e.n"""


def forget(path: Path, root: Path, found: Sequence[Spot], busy_s: float = schema.BUSY_S) -> None:
    """Take these erased events out of the tables. ``root`` is the state directory; the ingest lock is held.

    Raises IndexMissing, IndexDamaged, Busy or CannotWrite; then nothing was changed.
    """
    with schema.guard(path), closing(schema.open_write(path, busy_s)) as connection, schema.transaction(connection):
        _unlink(connection, root, found)
        for chunk in chunks([spot.n for spot in found]):
            connection.execute(f"delete from judged where n in ({chunk})")
            connection.execute(f"update events set session = '', project = '' where n in ({chunk})")
        _tell_sessions(connection, root, sorted({spot.session for spot in found} - {""}))
        if any(spot.kind == model.PROJECT_SEEN for spot in found):
            _tell_projects(connection, root)


def _unlink(connection: sqlite3.Connection, root: Path, found: Sequence[Spot]) -> None:
    """Take out the keys that were made of bodies: one of a text tells whoever guesses the text."""
    for spot in found:
        if spot.kind not in FOLDABLE:
            continue
        with suppress(Bad, CannotRead):
            event = read_event(root / spot.file, spot.offset, spot.length)
            made, bare = (set(map(key_number, keys(one))) for one in (event, event._replace(payload=None)))
            gone = [(key, spot.n) for key in made - bare]
            connection.executemany("delete from links where key = ? and n = ?", gone)


def _tell_sessions(connection: sqlite3.Connection, root: Path, sessions: Sequence[str]) -> None:
    for session in sessions:
        connection.execute("delete from sessions where session = ?", (session,))
        rows = connection.execute(_REST.format("e.session = ? and e.session <> ''"), (session,)).fetchall()
        connection.executemany("delete from observation_fts where rowid = ?", [(row[0],) for row in rows])
        _tell(connection, root, rows)


def _tell_projects(connection: sqlite3.Connection, root: Path) -> None:
    """Tell all places and names of projects anew; there are few."""
    connection.execute("delete from places")
    connection.execute("delete from identities")
    connection.execute("delete from projects where root = key")
    connection.execute("update projects set name = '', lamport = -1, id = x''")
    _tell(connection, root, connection.execute(_REST.format("e.kind = ?"), (model.PROJECT_SEEN,)).fetchall())


def _tell(connection: sqlite3.Connection, root: Path, rows: Iterable[Sequence[object]]) -> None:
    for received, batch in groupby(rows, key=lambda row: row[1]):
        assert isinstance(received, int)
        telling = Telling(connection, received)
        for n, event in _read(root, batch):
            telling.add(n, event)
        telling.write()


def _read(root: Path, rows: Iterable[Sequence[object]]) -> Iterator[tuple[int, Event]]:
    for n, _, name, offset, length, kind in rows:
        assert isinstance(n, int)
        assert isinstance(offset, int)
        assert isinstance(length, int)
        if kind in FOLDABLE and kind not in TOLD_TOO:
            continue
        try:
            event = read_event(root / str(name), offset, length)
        except (Bad, CannotRead):
            continue  # what cannot be read tells nothing any more
        if not malformed(event):
            yield n, event


def compact(path: Path, busy_s: float = schema.BUSY_S) -> None:
    """Write the index anew into its own file, so that nothing of what was deleted is left between the rows.

    ``secure_delete`` alone is not enough: rows that moved to another page leave copies behind, and words stay in old
    parts of the full-text index until these are merged. Raises Busy when a reader holds on to the old pages.
    """
    with schema.guard(path), closing(schema.open_write(path, busy_s)) as connection:
        for name in _FTS:
            connection.execute(f"insert into {name}({name}) values('optimize')")
        connection.execute("vacuum")
        if connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
            raise IndexBusy(path=path)


def clean(path: Path, root: Path, found: Sequence[Spot], busy_s: float = schema.BUSY_S) -> None:
    """Note that nothing is left of these erased events; their frames have no body any more. Raises as ``forget``."""
    with schema.guard(path), closing(schema.open_write(path, busy_s)) as connection, schema.transaction(connection):
        numbers = [spot.n for spot in found]
        odd: list[int] = []
        for chunk in chunks(numbers):
            connection.execute(f"update events set held = 0 where n in ({chunk})")
            odd += [n for (n,) in connection.execute(f"select n from events where n in ({chunk}) and malformed")]
        connection.executemany("update erased set clean = 1 where id = ?", [(spot.id,) for spot in found])
        for spot in found if odd else ():
            if spot.n in odd:
                _judge(connection, root, spot)


def _judge(connection: sqlite3.Connection, root: Path, spot: Spot) -> None:
    """What was wrong with an event may have been in its body."""
    try:
        wrong = malformed(read_event(root / spot.file, spot.offset, spot.length))
    except (Bad, CannotRead):
        return
    connection.execute("update events set malformed = ? where n = ?", (wrong, spot.n))
    if not wrong and spot.kind not in FOLDABLE:
        connection.execute("delete from foldable where n = ?", (spot.n,))
