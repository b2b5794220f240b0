"""The file ``meter.sqlite``: what models were asked on this machine, and which windows failed. The log has none of it.

Every access opens it, does one transaction and closes it, so that any number of workers and faces can use it at once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from memorize.errors import Busy, CannotWrite, MeterDamaged

_BUSY_S: Final = 10.0
_VERSION: Final = 1
_TABLES: Final = f"""
create table if not exists calls(
  n integer primary key, day integer not null, at_ms integer not null, extractor text not null, model text not null,
  purpose text not null, project text not null, window blob not null, tokens_in integer not null,
  tokens_out integer not null, cost_usd_micro integer, milliseconds integer not null, outcome text not null
);
create index if not exists calls_day on calls(day);
create table if not exists windows(
  key blob primary key, lane text not null, project text not null, failures integer not null, kind text not null,
  detail text not null, at_ms integer not null
) without rowid;
create table if not exists lanes(lane text primary key, failures integer not null, skip integer not null) without rowid;
create table if not exists refusals(day integer primary key, text text not null);
pragma user_version = {_VERSION};
"""
_BROKEN: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_TAKEN: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class MeterFile:
    """The file; it is made, private, when something is first written to it."""

    def __init__(self, path: Path) -> None:
        """Nothing is read or written yet."""
        self.path = path

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """Give a connection, None while there is no file. Raises Busy, CannotWrite, MeterDamaged."""
        if not self.path.exists():
            yield None
            return
        with self._problems(), closing(self._open()) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give a connection in a transaction that is durable afterwards. Raises Busy, CannotWrite, MeterDamaged."""
        with self._problems():
            self._make()
            with closing(self._open()) as connection:
                connection.execute("begin immediate")
                try:
                    yield connection
                except BaseException:
                    connection.execute("rollback")
                    raise
                connection.execute("commit")

    def _make(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if os.name == "posix" and os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, uri=True, timeout=_BUSY_S, isolation_level=None)
        try:
            if connection.execute("pragma user_version").fetchone()[0] < _VERSION:
                connection.executescript(f"begin immediate;{_TABLES}commit;")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in _TAKEN:
                raise Busy(what="meter", seconds=int(_BUSY_S)) from error
            if code in _BROKEN or "no such" in str(error):
                raise MeterDamaged(path=self.path, detail=error) from error
            raise CannotWrite(path=self.path, detail=error) from error
        except OSError as error:
            raise CannotWrite(path=self.path, detail=error.strerror or error) from error
