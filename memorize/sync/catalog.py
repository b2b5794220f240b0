"""What is known of the files in a sync folder. A memory of work done: lost or damaged, it is made anew by reading them.

Everything lies in memory while a round runs; what changed is written at its milestones, in one transaction each.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgpack

from memorize.errors import CannotWrite
from memorize.sync.chains import Run

TAKEN: Final = "taken"  # read whole, and everything in it was received
_VERSION: Final = 2
_BUSY_S: Final = 10.0
_TABLES: Final = """
create table if not exists packs (folder text, path blob, row blob, primary key (folder, path)) without rowid;
create table if not exists erased (folder text, id blob, primary key (folder, id)) without rowid;
create table if not exists facts (folder text primary key, row blob) without rowid;
"""


class Row(NamedTuple):
    """What one file turned out to be when it was last read. Times are those of ``Facts.observed``.

    ``state``: TAKEN or one of ``pack``'s; ``why`` in words. ``key``: id of the key that it names. ``number`` grows with
    each file that is met. ``tries`` and ``due``: when to read it again. ``covered``: path of the own pack that holds
    everything that is in this own one, ``since`` when. ``soiled``: it may hold a body that is erased here, or one that
    nobody can read any more. ``missing``: scope keys that were not held. ``scopes``: all under which bodies in it are.
    ``loose``: ids of events in it that name no writer or no number, so that no run holds them. ``bare``: ids of those
    in it without a body that were not erased here when it was read. ``proved``: when its content was last looked at.
    """

    path: str
    size: int
    state: str
    number: int
    why: str = ""
    stub: bool = False
    store: bytes = b""
    key: bytes = b""
    events: int = 0
    runs: tuple[Run, ...] = ()
    missing: tuple[bytes, ...] = ()
    tries: int = 0
    due: int = 0
    covered: str = ""
    since: int = 0
    soiled: bool = False
    scopes: tuple[bytes, ...] = ()
    loose: tuple[bytes, ...] = ()
    bare: tuple[bytes, ...] = ()
    proved: int = 0


class Facts(NamedTuple):
    """What is known of the folder as a whole.

    ``observed``: ms of own wall time that rounds have seen go by, each at most a few hours, so that no clock that jumps
    ages anything. ``wall``: when the last round was. ``place``: the file system that the folder was on, 0 when any
    will do. ``number``: the last one given out.
    ``waiting``: writer of another replica -> since when nothing in the folder carries its events. ``told``: digest of
    the keys that were last published for other devices. ``seen``: replicas that ever had files in it.
    """

    observed: int = 0
    wall: int = 0
    place: int = 0
    number: int = 0
    waiting: tuple[tuple[bytes, int], ...] = ()
    told: bytes = b""
    seen: tuple[bytes, ...] = ()


class Catalog:
    """The rows and facts of one folder. Without a file it lives as long as the object."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.rows: dict[str, Row] = {}
        self.facts = Facts()
        self.erased: set[bytes] = set()  # erasures that were carried into the own packs already
        self._file: _File | None = None
        self._changed: set[str] = set()
        self._added: list[bytes] = []
        self._saved = self.facts

    @classmethod
    def open(cls, path: Path, folder: str) -> Catalog:
        """Return what the file knows of a folder; a damaged file is begun again. Raises CannotWrite."""
        try:
            try:
                return cls._open(path, folder)
            except (sqlite3.DatabaseError, *_UNREADABLE) as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                _remove(path)
                return cls._open(path, folder)
        except (OSError, sqlite3.Error) as error:
            raise CannotWrite(path=path, detail=getattr(error, "strerror", None) or str(error)) from error

    @classmethod
    def _open(cls, path: Path, folder: str) -> Catalog:
        made = cls()
        made._file = _File(path, folder)
        try:
            made.rows, made.facts, made.erased = made._file.load()
        except BaseException:
            made._file.close()
            raise
        made._saved = made.facts
        return made

    def put(self, row: Row) -> None:
        """Add or replace a row."""
        self.rows[row.path] = row
        self._changed.add(row.path)

    def drop(self, path: str) -> None:
        """Forget a row."""
        if self.rows.pop(path, None) is not None:
            self._changed.add(path)

    def next_number(self) -> int:
        """Return a number that no row has."""
        self.facts = self.facts._replace(number=self.facts.number + 1)
        return self.facts.number

    def add_erased(self, ids: Iterable[bytes]) -> None:
        """Note erasures that were carried into the own packs."""
        fresh = [one for one in ids if one not in self.erased]
        self.erased.update(fresh)
        self._added += fresh

    def flush(self) -> None:
        """Make everything up to now outlive the process. Raises CannotWrite."""
        file = self._file
        if file is not None and (self._changed or self._added or self.facts != self._saved):
            try:
                try:
                    file.save({path: self.rows.get(path) for path in self._changed}, self.facts, self._added)
                except sqlite3.OperationalError:
                    raise
                except sqlite3.DatabaseError:
                    self._begin_again(file)
            except (OSError, sqlite3.Error) as error:
                raise CannotWrite(path=file.path, detail=getattr(error, "strerror", None) or str(error)) from error
        self._saved, self._added = self.facts, []
        self._changed.clear()

    def _begin_again(self, damaged: _File) -> None:
        damaged.close()
        _remove(damaged.path)
        self._file = _File(damaged.path, damaged.folder)
        self._file.save(dict(self.rows), self.facts, self.erased)

    def close(self) -> None:
        """Close the file; what was not flushed is forgotten."""
        if self._file is not None:
            self._file.close()


class _File:
    """The rows of one folder in the database of all."""

    def __init__(self, path: Path, folder: str) -> None:
        self.path = path
        self.folder = folder
        if not path.exists():
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            version = self._db.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError("another version made it")
            self._db.executescript(f"pragma synchronous = normal; {_TABLES} pragma user_version = {_VERSION};")
        except BaseException:
            self._db.close()
            raise

    def load(self) -> tuple[dict[str, Row], Facts, set[bytes]]:
        """Return everything. Raises sqlite3.Error and _UNREADABLE."""
        found = self._db.execute("select row from packs where folder = ?", (self.folder,)).fetchall()
        rows = [_row(blob) for (blob,) in found]
        facts = self._db.execute("select row from facts where folder = ?", (self.folder,)).fetchone()
        erased = self._db.execute("select id from erased where folder = ?", (self.folder,)).fetchall()
        return (
            {row.path: row for row in rows},
            Facts(*_unpacked(facts[0])) if facts else Facts(),
            {identity for (identity,) in erased},
        )

    def save(self, rows: dict[str, Row | None], facts: Facts, erased: Iterable[bytes]) -> None:
        """Write what changed in one transaction. Raises sqlite3.Error."""
        run = self._db.executemany
        self._db.execute("begin immediate")
        try:
            gone = [(self.folder, os.fsencode(path)) for path, row in rows.items() if row is None]
            run("delete from packs where folder = ? and path = ?", gone)
            kept = [(self.folder, os.fsencode(path), _packed(row)) for path, row in rows.items() if row is not None]
            run("insert or replace into packs values (?, ?, ?)", kept)
            run("insert or ignore into erased values (?, ?)", [(self.folder, one) for one in erased])
            run("insert or replace into facts values (?, ?)", [(self.folder, _packed(facts))])
            self._db.execute("commit")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("rollback")
            raise

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


_UNREADABLE: Final = (ValueError, TypeError, msgpack.UnpackException)


def _row(blob: bytes) -> Row:
    row = Row(*_unpacked(blob))
    return row._replace(runs=tuple(Run(*run) for run in row.runs))


def _unpacked(blob: bytes) -> Any:
    return msgpack.unpackb(blob, use_list=False, unicode_errors="surrogateescape")


def _packed(row: Row | Facts) -> bytes:
    """Names of files may be any bytes; Python holds those that are no text as surrogates."""
    packed: bytes = msgpack.packb(row, unicode_errors="surrogateescape")
    return packed


def _remove(path: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
