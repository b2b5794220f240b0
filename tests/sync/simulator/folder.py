"""A sync folder in memory, as one machine sees it: ``memorize.sync.folder.Folder`` without a disk."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from memorize.sync.folder import Entry, Listing, skipped

# The only names that a replica may give to a file: no case, no accent, no word that a system forbids.
NAME: Final = re.compile(r"[0-9a-f]{32}/[0-9a-f]{32}/[0-9]{1,2}-[0-9a-f]{16}\.mzp")

# States of a folder.
THERE: Final = "there"
GONE: Final = "gone"  # the path is missing
HOLLOW: Final = "hollow"  # an empty directory stands where the folder is mounted
SHUT: Final = "shut"  # listing it gives an input error
_PLACE: Final = 41
_ELSEWHERE: Final = 1


class File(NamedTuple):
    """A file: what it holds, its (meaningless) mtime, and whether its content is elsewhere for now."""

    data: bytes
    mtime: int = 0
    stub: bool = False


class Disk:
    """The files of one machine's folder. The carrier works on it directly, a replica through ``MemoryFolder``."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.below: dict[str, File] = {}  # what lies in the directory on which the folder is mounted
        self.state = THERE
        self.flaky = True  # now and then something fails that works the next time
        # What a replica did that no replica may do.
        self.faults: list[str] = []


class Watch(NamedTuple):
    """What the sync tool does when a replica makes or removes a file, and while it looks elsewhere."""

    created: Callable[[str, bytes], None]
    deleted: Callable[[str], None]
    meanwhile: Callable[[], object]


class MemoryFolder:
    """A ``Folder`` over a ``Disk``. ``owns`` tells which paths its replica may delete."""

    def __init__(self, disk: Disk, watch: Watch, random: Random, owns: Callable[[str], bool]) -> None:
        self.disk = disk
        self._watch = watch
        self._owns = owns
        self._random = random

    def place(self) -> int:
        """Return the number of the file system."""
        if self.disk.state == GONE:
            raise FileNotFoundError(errno.ENOENT, "the folder is not there")
        return _ELSEWHERE if self.disk.state == HOLLOW else _PLACE

    def listing(self) -> Listing:
        """Return what a listing finds, in no order; now and then a directory cannot be listed."""
        self.place()
        if self.disk.state == SHUT:
            raise OSError(errno.EIO, "input error")
        names = [path for path in self.files() if not any(map(skipped, path.split("/")))]
        self._random.shuffle(names)
        hidden: tuple[str, ...] = ()
        if names and self._fails(0.03):
            hidden = (self._random.choice(names).rpartition("/")[0] + "/",)
        found = [Entry(one, len(self.files()[one].data), self.files()[one].stub) for one in names]
        return Listing([entry for entry in found if not entry.path.startswith(hidden or ("\0",))], hidden)

    def read(self, path: str) -> bytes:
        """Return the content of a file; now and then it cannot be had, or something else happened since the listing."""
        self._look()
        if self._fails(0.1):
            self._watch.meanwhile()
        found = self.files().get(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "no such file")
        if found.stub:
            raise OSError(errno.EDEADLK, "the content is not on this machine")
        if self._fails(0.02):
            raise OSError(self._random.choice((errno.EIO, errno.ETIMEDOUT, errno.EACCES)), "not now")
        return found.data

    def create(self, path: str, data: bytes) -> None:
        """Make a file whole; now and then there is no room for it."""
        self._look()
        if not NAME.fullmatch(path):
            self.disk.faults.append(f"a file is called {path!r}")
        if path in self.files():
            self.disk.faults.append(f"{path} was made a second time")
        if self._fails(0.02):
            raise OSError(self._random.choice((errno.ENOSPC, errno.EIO)), "no room")
        self.files()[path] = File(data)
        if self.disk.state == THERE:
            self._watch.created(path, data)

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._look()
        if not self._owns(path):
            self.disk.faults.append(f"{path} was deleted by somebody whose it is not")
        if self._fails(0.02):
            raise PermissionError(errno.EACCES, "somebody holds it open")
        if self.files().pop(path, None) is not None and self.disk.state == THERE:
            self._watch.deleted(path)

    def _look(self) -> None:
        self.place()
        if self.disk.state == SHUT:
            raise OSError(errno.EIO, "input error")

    def _fails(self, share: float) -> bool:
        return self.disk.flaky and self._random.random() < share

    def files(self) -> dict[str, File]:
        """Return the files that lie where the folder should be."""
        return self.disk.below if self.disk.state == HOLLOW else self.disk.files
