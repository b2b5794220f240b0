"""Every call of this room that touches the disk, so that a test can record it, refuse it or lose it.

Paths are plain strings: the ingester makes a dozen calls for each spool file, and ``pathlib`` would double their cost.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from contextlib import AbstractContextManager
from typing import Final, Protocol

from memorize.log.lock import Lock

_APPEND: Final = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_BUSY_WINERRORS: Final = frozenset({5, 32, 33})  # a scanner or an indexer has the file open for a moment
_BUSY_ATTEMPTS: Final = 20


class Files(Protocol):
    """The disk. Every method raises OSError when it fails, and then has done nothing that a reader can rely on."""

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, in no order."""
        ...

    def sizes(self, directory: str) -> dict[str, int]:
        """Return name -> bytes of the regular files in a directory."""
        ...

    def read(self, path: str, limit: int) -> bytes:
        """Return the first ``limit`` bytes of a file, fewer only at its end."""
        ...

    def pread(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes at ``offset``, fewer only at the end; to the end when ``length`` is negative."""
        ...

    def create(self, path: str) -> int:
        """Create a file that must not exist (mode 0600) and return a handle for appending."""
        ...

    def reopen(self, path: str) -> int:
        """Open an existing file and return a handle for appending."""
        ...

    def write(self, handle: int, data: bytes) -> int:
        """Append with one call and return how many bytes were taken; fewer than given means a failing disk."""
        ...

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file to ``size`` bytes."""
        ...

    def fdatasync(self, handle: int) -> None:
        """Make the file's bytes and its length durable."""
        ...

    def fsync(self, handle: int) -> None:
        """Make the file durable, through the drive's own cache where the platform can."""
        ...

    def close(self, handle: int) -> None:
        """Close a handle; makes nothing durable."""
        ...

    def sync_dir(self, directory: str) -> None:
        """Make creations, renames and removals in a directory durable (Windows cannot: nothing happens)."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename within one file system, replacing the target in one step."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a directory (mode 0700) and its parents where they are missing."""
        ...

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written, in ms since 1970."""
        ...

    def touch(self, path: str, wall_ms: int) -> None:
        """Set when the file was last written."""
        ...

    def place(self, path: str) -> tuple[int, int, int]:
        """Return device, inode and birth time (ms, 0 when unknown) of a directory."""
        ...

    def lock(self, path: str, wait_s: float) -> AbstractContextManager[object]:
        """Return the lock at ``path``; entering raises Busy after ``wait_s`` seconds, BadHome or CannotWrite."""
        ...


class RealFiles:
    """The operating system's disk."""

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(directory)

    def sizes(self, directory: str) -> dict[str, int]:
        """Return name -> bytes of the regular files."""
        with os.scandir(directory) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def read(self, path: str, limit: int) -> bytes:
        """Return the first ``limit`` bytes."""
        handle = os.open(path, _READ)
        try:
            data = os.read(handle, limit)
            if len(data) < limit:
                data = _read_on(handle, data, limit)
        finally:
            os.close(handle)
        return data

    def pread(self, path: str, offset: int, length: int) -> bytes:
        """Return ``length`` bytes at ``offset``."""
        handle = os.open(path, _READ)
        try:
            wanted = length if length >= 0 else max(0, os.fstat(handle).st_size - offset)
            os.lseek(handle, offset, os.SEEK_SET)
            return _read_on(handle, b"", wanted)
        finally:
            os.close(handle)

    def create(self, path: str) -> int:
        """Create a file for appending."""
        return os.open(path, _APPEND | os.O_CREAT | os.O_EXCL, 0o600)

    def reopen(self, path: str) -> int:
        """Open an existing file for appending."""
        return os.open(path, _APPEND)

    def write(self, handle: int, data: bytes) -> int:
        """Append with one call."""
        return os.write(handle, data)

    def truncate(self, handle: int, size: int) -> None:
        """Cut the file."""
        os.ftruncate(handle, size)

    def fdatasync(self, handle: int) -> None:
        """Make bytes and length durable."""
        if hasattr(os, "fdatasync"):
            os.fdatasync(handle)
        else:
            os.fsync(handle)

    def fsync(self, handle: int) -> None:
        """Make the file durable; on macOS through the drive's cache."""
        if sys.platform == "darwin":
            import fcntl

            with contextlib.suppress(OSError):  # not every file system knows it
                fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
                return
        os.fsync(handle)

    def close(self, handle: int) -> None:
        """Close a handle."""
        os.close(handle)

    def sync_dir(self, directory: str) -> None:
        """Make the directory's entries durable."""
        if os.name == "nt":
            return
        handle = os.open(directory, _READ)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, source: str, target: str) -> None:
        """Rename, replacing the target; retried while Windows says that somebody is looking at it."""
        for attempt in range(_BUSY_ATTEMPTS):
            try:
                os.replace(source, target)
                return
            except OSError as error:
                if getattr(error, "winerror", None) not in _BUSY_WINERRORS or attempt == _BUSY_ATTEMPTS - 1:
                    raise
            time.sleep(0.01)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents. ``os.makedirs`` would give the mode to the last one only."""
        parent = os.path.dirname(path)
        if parent != path and not os.path.isdir(parent):
            self.make_dir(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)

    def modified_ms(self, path: str) -> int:
        """Return when the file was last written."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def touch(self, path: str, wall_ms: int) -> None:
        """Set when the file was last written."""
        os.utime(path, ns=(wall_ms * 1_000_000, wall_ms * 1_000_000))

    def place(self, path: str) -> tuple[int, int, int]:
        """Return device, inode and birth time of a directory."""
        found = os.stat(path)
        return found.st_dev, found.st_ino, int(getattr(found, "st_birthtime", 0) * 1000)

    def lock(self, path: str, wait_s: float) -> Lock:
        """Return the lock at ``path``."""
        return Lock(path, wait_s)


def _read_on(handle: int, data: bytes, limit: int) -> bytes:
    parts = [data] if data else []  # one part alone is not copied when it is joined
    have = len(data)
    while have < limit:
        part = os.read(handle, limit - have)
        if not part:
            break
        parts.append(part)
        have += len(part)
    return b"".join(parts)


def write_all(files: Files, handle: int, data: bytes) -> None:
    """Append everything with one call. Raises OSError (ENOSPC) when the disk took only a part."""
    if files.write(handle, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def replace_file(files: Files, path: str, data: bytes) -> None:
    """Put a small file in the place of another: beside, fsync, rename, fsync of the directory. Raises OSError."""
    beside = path + ".new"
    directory = os.path.dirname(path)
    with contextlib.suppress(FileNotFoundError):
        files.unlink(beside)
    handle = files.create(beside)
    try:
        write_all(files, handle, data)
        files.fsync(handle)
    finally:
        files.close(handle)
    files.rename(beside, path)
    files.sync_dir(directory)
