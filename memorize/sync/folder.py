"""A folder that some tool carries to other machines, as sync sees it. Files are made whole, once, and never changed.

There are no locks, no state and nothing that grows in it. Names, times and absence mean nothing; only content does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from typing import Final, NamedTuple, Protocol

from memorize.ids import random_id
from memorize.limits import PACK_BYTES_MAX
from memorize.log.files import Files, write_all

TOP: Final = "memorize"
# Syncthing leaves files with this beginning alone and clears them away after a day; Dropbox, OneDrive and Nextcloud
# ignore the ending.
_BESIDE: Final = "~syncthing~mz-"
_BESIDE_END: Final = ".tmp"
_DEPTH_MAX: Final = 6
_READ_S: Final = 30.0
_STUCK_MAX: Final = 2
_BLOCK: Final = 1024 * 1024
# What the tools and systems leave while they work, or for themselves. Conflict copies are not among them: they hold
# whole files.
_SKIPPED_STARTS: Final = (".", "~", "thumbs.db", "desktop.ini")
_SKIPPED_ENDS: Final = (".tmp", ".partial", ".!sync", ".bts", ".part", ".crdownload", ".icloud", ".swp", "~", ".lock")
_RECALLED: Final = 0x0040_0000 | 0x0004_0000 | 0x1000  # Windows: recall on data access, on open; offline
_NOT_DURABLE: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF})
_DATALESS: Final = 0x4000_0000  # macOS


class Entry(NamedTuple):
    """A file. ``path``: below ``memorize`` in the folder, with slashes. ``stub``: its content is elsewhere for now."""

    path: str
    size: int
    stub: bool = False


class Listing(NamedTuple):
    """What is in the folder. ``hidden``: beginnings of paths below which nothing could be listed just now."""

    entries: list[Entry]
    hidden: tuple[str, ...] = ()


class Folder(Protocol):
    """The files below ``memorize`` in a sync folder. Every method raises OSError."""

    def place(self) -> int:
        """Return a number of the file system that the folder lies on. Raises FileNotFoundError when there is none."""
        ...

    def listing(self) -> Listing:
        """Return all files but obvious temporaries; none when ``memorize`` is not there, OSError when it is hidden."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file. FileNotFoundError: it is gone. Any other OSError: its content cannot be had now."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Make a file that appears whole and durable, and prove it by reading it. After an error there is none."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; one that is gone already is no error."""
        ...


class RealFolder:
    """A directory of this machine. ``outbox``: a directory in the state directory, where files are made."""

    def __init__(self, root: str, outbox: str, files: Files, read_s: float = _READ_S) -> None:
        """Nothing is read or written yet. ``read_s``: how long a file's content may take to come."""
        self.root = root
        self._top = f"{root}/{TOP}"
        self._outbox = outbox
        self._files = files
        self._read_s = read_s
        self._stuck: list[threading.Thread] = []

    def place(self) -> int:
        """Return the device number of the folder."""
        found = os.stat(self.root)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a folder", self.root)
        return found.st_dev

    def listing(self) -> Listing:
        """Return all files. A directory that vanishes meanwhile is no error."""
        self.place()
        found: list[tuple[str, os.stat_result]] = []
        hidden: list[str] = []
        try:
            self._refuse_link(self._top)
            self._walk("", 0, found, hidden)
        except FileNotFoundError:
            return Listing([])
        # Some file systems tell of no blocks at all; then nothing can be concluded from it.
        tells = any(getattr(status, "st_blocks", 0) for _, status in found)
        return Listing([Entry(path, status.st_size, _is_stub(status, tells)) for path, status in found], tuple(hidden))

    def _walk(self, prefix: str, depth: int, found: list[tuple[str, os.stat_result]], hidden: list[str]) -> None:
        with os.scandir(f"{self._top}/{prefix}") as entries:
            for entry in entries:
                if skipped(entry.name):
                    continue
                # What vanished between listing and asking is as good as not listed.
                with contextlib.suppress(FileNotFoundError):
                    path = f"{prefix}{entry.name}"
                    if entry.is_file(follow_symlinks=False):
                        found.append((path, entry.stat(follow_symlinks=False)))
                    elif depth < _DEPTH_MAX and entry.is_dir(follow_symlinks=False):
                        try:
                            self._walk(f"{path}/", depth + 1, found, hidden)
                        except FileNotFoundError:
                            raise
                        except OSError:
                            hidden.append(f"{path}/")

    def read(self, path: str) -> bytes:
        """Return a file, at most so much of it that it is seen to be too large. The wait for it is bounded.

        A placeholder may block for ever, in the kernel: then the thread that reads stays behind and ends with it.
        """
        self._stuck = [thread for thread in self._stuck if thread.is_alive()]
        if len(self._stuck) >= _STUCK_MAX:
            raise TimeoutError(errno.ETIMEDOUT, "other files do not come either")
        outcome: list[bytes | BaseException] = []

        def work() -> None:
            try:
                outcome.append(_content(f"{self._top}/{path}"))
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=work, name="memorize-read", daemon=True)
        thread.start()
        thread.join(self._read_s)
        if not outcome:
            self._stuck.append(thread)
            raise TimeoutError(errno.ETIMEDOUT, f"no content came within {self._read_s:g} s")
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        return outcome[0]

    def create(self, path: str, data: bytes) -> None:
        """Make a file: beside, synced, renamed, the directory synced, read again."""
        directory = self._directory(path)
        target = f"{self._top}/{path}"
        self._sweep(directory)
        beside = f"{self._outbox}/{random_id().hex()}"
        try:
            self._write(beside, data)
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, "there is such a file", target)
            try:
                self._files.rename(beside, target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                near = f"{directory}/{_BESIDE}{random_id().hex()[:16]}{_BESIDE_END}"
                try:
                    self._write(near, data)
                    self._files.rename(near, target)
                finally:
                    self._forget(near)
        finally:
            self._forget(beside)
        self._sync(directory)
        if self.read(path) != data:
            self._forget(target)
            raise OSError(errno.EIO, "what was written reads back as something else", target)

    def delete(self, path: str) -> None:
        """Remove a file."""
        target = f"{self._top}/{path}"
        self._refuse_links(path)
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(target)
            self._sync(os.path.dirname(target))

    def _write(self, path: str, data: bytes) -> None:
        handle = self._files.create(path)
        try:
            for start in range(0, len(data), _BLOCK):
                write_all(self._files, handle, data[start : start + _BLOCK])
            self._files.fsync(handle)
        finally:
            self._files.close(handle)

    def _sync(self, directory: str) -> None:
        """Make names durable where the file system knows how; if they vanish, they are published again."""
        try:
            self._files.sync_dir(directory)
        except OSError as error:
            if error.errno not in _NOT_DURABLE:
                raise

    def _forget(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._files.unlink(path)

    def _directory(self, path: str) -> str:
        """Return the directory of a file, made and durable. The folder itself is never made: it may not be mounted."""
        self.place()
        self._files.make_dir(self._outbox)
        directory = os.path.dirname(f"{self._top}/{path}")
        if not os.path.isdir(directory):
            self._refuse_links(path)
            self._files.make_dir(directory)
            above = os.path.dirname(directory)
            while len(above) >= len(self.root):
                self._sync(above)
                above = os.path.dirname(above)
        self._refuse_links(path)
        return directory

    def _sweep(self, directory: str) -> None:
        """Remove what a publisher that was killed has left. Only one publishes at a time."""
        for name in self._files.names(self._outbox):
            self._forget(f"{self._outbox}/{name}")
        for name in self._files.names(directory):
            if name.startswith(_BESIDE) and name.endswith(_BESIDE_END):
                self._forget(f"{directory}/{name}")

    def _refuse_links(self, path: str) -> None:
        """Some tools carry symbolic links too: nobody else decides where files are made or removed."""
        parts = [TOP, *path.split("/")[:-1]]
        for count in range(1, len(parts) + 1):
            self._refuse_link("/".join([self.root, *parts[:count]]))

    def _refuse_link(self, path: str) -> None:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, "it is a symbolic link", path)


def skipped(name: str) -> bool:
    """Tell whether a name is one that tools and systems give to what is not finished, or to things of their own."""
    folded = name.lower()
    return folded.startswith(_SKIPPED_STARTS) or folded.endswith(_SKIPPED_ENDS)


def _is_stub(status: os.stat_result, tells: bool) -> bool:
    if getattr(status, "st_file_attributes", 0) & _RECALLED or getattr(status, "st_flags", 0) & _DATALESS:
        return True
    return tells and status.st_size > 0 and getattr(status, "st_blocks", 1) == 0


def _content(path: str) -> bytes:
    flags = os.O_RDONLY
    for name in ("O_CLOEXEC", "O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    handle = os.open(path, flags)
    try:
        parts = []
        left = PACK_BYTES_MAX + 1
        while left > 0 and (part := os.read(handle, min(left, _BLOCK))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(handle)
    return b"".join(parts)
