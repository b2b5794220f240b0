"""One lock for one room: held by an open file, so that the death of its holder always frees it.

The file is never unlinked by us: a waiter would then hold the lock of a file that nobody else can see.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from types import TracebackType
from typing import Final, Self

from memorize.errors import BadHome, Busy, CannotWrite

_PAUSE_S: Final = 0.01
_BYTE: Final = 2**30  # Windows locks are mandatory: lock one byte far beyond the end, so that the file stays readable

if sys.platform == "win32":  # pragma: no cover - exercised on Windows only
    import msvcrt

    def _try(fd: int) -> bool:
        os.lseek(fd, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _drop(fd: int) -> None:
        os.lseek(fd, _BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _drop(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


class Lock:
    """An exclusive lock between processes, and between two ``Lock`` objects of one process."""

    def __init__(self, path: str | os.PathLike[str], wait_s: float = 0.0) -> None:
        """Name the file; ``wait_s`` is how long ``with`` waits before it raises ``Busy``."""
        self._path = os.fspath(path)
        self._wait_s = wait_s
        self._fd = -1

    @property
    def held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._fd >= 0

    def acquire(self, wait_s: float = 0.0) -> bool:
        """Take the lock, trying for ``wait_s`` seconds. False when another one has it. Raises OSError, BadHome."""
        waited = 0.0
        while not self._attempt():
            if waited >= wait_s:
                return False
            time.sleep(_PAUSE_S)
            waited += _PAUSE_S
        return True

    def release(self) -> None:
        """Let go; nothing happens when the lock is not held."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                _drop(fd)
            os.close(fd)

    def __enter__(self) -> Self:
        """Take the lock. Raises Busy after the wait given to the constructor, BadHome, CannotWrite."""
        try:
            got = self.acquire(self._wait_s)
        except OSError as error:
            raise CannotWrite(path=self._path, detail=error.strerror or str(error)) from error
        if not got:
            raise Busy(what=f"{os.path.basename(self._path)} lock", seconds=round(self._wait_s, 1))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go."""
        self.release()

    def _attempt(self) -> bool:
        if self._fd >= 0:
            return False
        fd = self._open()
        kept = False
        try:
            try:
                got = _try(fd)
            except OSError as error:
                raise BadHome(path=self._path, detail=f"file locks do not work there ({error.strerror})") from error
            kept = got and self._still_there(fd)
        finally:
            if not kept:
                os.close(fd)
        if kept:
            self._fd = fd
        return kept

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            # Some network and FUSE file systems lose the race between O_CREAT and another creator.
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            return os.open(self._path, flags, 0o600)

    def _still_there(self, fd: int) -> bool:
        """Tell whether the path still names the locked file; somebody may have deleted it meanwhile."""
        try:
            named = os.stat(self._path)
        except FileNotFoundError:
            return False
        own = os.fstat(fd)
        return (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)
