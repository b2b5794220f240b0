"""The one place where trouble with the index file becomes a problem that tells what to do.

SQLite keeps no checksums: a damaged page may be refused, or give values that were never written. So what SQLite says
is sorted here, and an odd value that reading the index gives is taken for damage, too: the index is derived, and making
it anew costs time only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgpack

from memorize.errors import CannotWrite, IndexBusy, IndexDamaged, Problem

BUSY_S: Final = 10.0
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
# Trouble with the disk or the rights, not with what the file holds.
_OUTSIDE: Final = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
    }
)
# A page that should be there is not: the file was cut.
_SHORT: Final = sqlite3.SQLITE_IOERR_SHORT_READ
# What reading a value that nobody wrote ends in.
_ODD: Final = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, msgpack.UnpackException)
_ROOMS: Final = ("memorize.index", "memorize.recall")


def problem(error: sqlite3.Error, path: Path) -> Problem:
    """Return what an error of SQLite means: busy, a disk that refuses, else a damaged index."""
    full = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = full & 0xFF
    if code in _BUSY:
        return IndexBusy(path=path)
    if code in _OUTSIDE and full != _SHORT:
        return CannotWrite(path=path, detail=error)
    return IndexDamaged(path=path, detail=error)


def is_damage(error: BaseException) -> bool:
    """Tell whether an error may come from a damaged index, so that one should make it anew and try again."""
    if isinstance(error, IndexDamaged):
        return True
    if isinstance(error, sqlite3.ProgrammingError):
        return False  # a mistake of ours
    if isinstance(error, sqlite3.Error):
        return isinstance(problem(error, Path()), IndexDamaged)
    return isinstance(error, _ODD) and any(name.startswith(_ROOMS) for name in _modules(error.__traceback__))


def _modules(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        yield str(traceback.tb_frame.f_globals.get("__name__", ""))
        traceback = traceback.tb_next


@contextmanager
def guard(path: Path) -> Iterator[None]:
    """Turn what SQLite says inside into a problem: IndexDamaged, Busy or CannotWrite."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        raise problem(error, path) from error


class GuardedCursor(sqlite3.Cursor):
    """A cursor that raises problems. Rows are looped over by SQLite's own loop."""

    connection: GuardedConnection

    def execute(self, sql: str, parameters: Any = (), /) -> GuardedCursor:
        """Run a statement."""
        with self.connection.guard():
            super().execute(sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> GuardedCursor:
        """Run a statement with each of the parameters."""
        with self.connection.guard():
            super().executemany(sql, parameters)
        return self

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        with self.connection.guard():
            return super().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return the next rows."""
        with self.connection.guard():
            return super().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        with self.connection.guard():
            return super().fetchall()

    def __iter__(self) -> Any:
        """Yield the rows that are left."""
        with self.connection.guard():
            yield from super().__iter__()


class GuardedConnection(sqlite3.Connection):
    """A connection for reading: whatever is asked through it raises problems. ``path`` is named in them."""

    path: Path = Path()

    def guard(self) -> AbstractContextManager[None]:
        """Return what turns errors of SQLite into problems."""
        return guard(self.path)

    def cursor(self, factory: Any = GuardedCursor) -> Any:
        """Return a guarded cursor."""
        return super().cursor(factory)
