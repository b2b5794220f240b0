"""The tool between the folders: late, in no order, in parts, twice, under other names, and from the past.

In the end it has carried everything: then every folder holds what the tool takes for the truth. Until then nothing it
does may cost an event.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from tests.sync.simulator.folder import GONE, HOLLOW, SHUT, THERE, Disk, File, MemoryFolder, Watch

# How tools call the copy that lost, or that they could not tell from the other one.
_CONFLICTS: Final = (
    "{stem}.sync-conflict-20261130-101500-ABCDEFG{suffix}",
    "{stem} (기기's conflicted copy 2026-11-30){suffix}",
    "{stem} (Case Conflict){suffix}",
    "{stem}-DESKTOP-한글{suffix}",
    "{stem} 2{suffix}",
    "{stem} (1){suffix}",
    "{stem}_conflict-20261130-101500{suffix}",
    "{stem}{suffix}.orig",
)
_TEMPORARY: Final = (
    ".syncthing.{name}.tmp",
    "~syncthing~{name}.tmp",
    ".{name}.Xy12Zw",
    "{name}.partial",
    "{name}.!sync",
)
_JUNK: Final = (".DS_Store", "desktop.ini", "Thumbs.db", "._읽기", ".stfolder", "빈 폴더/.keep", "notes.mzp")
_MTIMES: Final = (0, 1, 4_102_444_800, -1)


class Change(NamedTuple):
    """One change that a tool has still to bring to one folder; ``data`` None: the file goes."""

    path: str
    data: bytes | None


class Carrier:
    """Keeps the folders of all replicas alike, sooner or later."""

    def __init__(self, random: Random, count: int) -> None:
        self.random = random
        self.disks = [Disk() for _ in range(count)]
        self.truth: dict[str, bytes] = {}
        self.past: dict[str, bytes] = {}
        self._due: list[list[Change]] = [[] for _ in range(count)]

    def folder(self, number: int, owns: Callable[[str], bool]) -> MemoryFolder:
        """Return the folder as replica ``number`` uses it."""
        watch = Watch(
            lambda path, data: self._created(number, path, data),
            lambda path: self._deleted(number, path),
            self.step,
        )
        return MemoryFolder(self.disks[number], watch, self.random, owns)

    def add(self) -> int:
        """Begin to carry to one more machine; it gets everything that is there."""
        self.disks.append(Disk())
        self._due.append([Change(path, data) for path, data in self.truth.items()])
        return len(self.disks) - 1

    def _created(self, origin: int, path: str, data: bytes) -> None:
        self.truth[path] = self.past[path] = data
        self._tell(origin, Change(path, data))

    def _deleted(self, origin: int, path: str) -> None:
        self.truth.pop(path, None)
        self._tell(origin, Change(path, None))

    def _tell(self, origin: int, change: Change) -> None:
        for number, due in enumerate(self._due):
            if number != origin:
                due.append(change)

    # -- carrying -------------------------------------------------------------------------------------------------

    def step(self) -> str:
        """Carry something somewhere, or do what tools do instead. Return what it was."""
        ready = [number for number, due in enumerate(self._due) if due and self.disks[number].state == THERE]
        if not ready:
            return "the carrier has nothing to do"
        number = self.random.choice(ready)
        due, disk = self._due[number], self.disks[number]
        chosen = self.random.choice(due).path
        position = next(at for at, change in enumerate(due) if change.path == chosen)
        change = due[position]
        if change.data is None:
            due.pop(position)
            disk.files.pop(change.path, None)
            return f"{change.path} disappears from folder {number}"
        done = self._bring(number, change.path, change.data)
        if done:
            due.pop(position)
        return f"{change.path} {'arrives' if done else 'begins to arrive'} in folder {number}"

    def _bring(self, number: int, path: str, data: bytes) -> bool:
        """Bring a file, or a part or another name of it; return whether that was all."""
        files, mtime = self.disks[number].files, self.random.choice(_MTIMES)
        way = self.random.random()
        part = data[: self.random.randint(0, len(data))]
        if way < 0.12:
            files[path] = File(part, mtime)
            return False
        if way < 0.18:
            files[_within(path, self.random.choice(_TEMPORARY))] = File(part, mtime)
            return False
        if way < 0.24:
            copy = self._other_name(path)
            files[copy] = File(data, mtime)
            self._created(number, copy, data)
            return self.random.random() < 0.5 and path.endswith(".mzp")
        if way < 0.30:
            files[path] = File(data, mtime, stub=True)
            return False
        files[path] = File(data, mtime)
        return True

    def _other_name(self, path: str) -> str:
        head, _, name = path.rpartition("/")
        stem, _, suffix = name.rpartition(".")
        way = self.random.random()
        if way < 0.15:
            return f"{head}/{name.upper()}"
        if way < 0.3:
            return f"{self.random.choice(('', 'backup/', head.rpartition('/')[0] + '/'))}{name}"
        other = self.random.choice(_CONFLICTS).format(stem=stem, suffix=f".{suffix}")
        return f"{head}/{unicodedata.normalize(self.random.choice(('NFC', 'NFD')), other)}"

    def settle(self) -> bool:
        """Carry everything that is left, whole and under its name; return whether any folder changed."""
        changed = False
        for number, disk in enumerate(self.disks):
            disk.state, disk.flaky = THERE, False
            self._due[number].clear()
            wanted = {path: File(data, self.random.choice(_MTIMES)) for path, data in self.truth.items()}
            if {path: file.data for path, file in disk.files.items()} != self.truth or any(
                file.stub for file in disk.files.values()
            ):
                disk.files, changed = wanted, True
        return changed

    # -- what else happens to folders -----------------------------------------------------------------------------

    def junk(self) -> str:
        """Leave something in a folder that is no pack, or hardly one."""
        number = self.random.randrange(len(self.disks))
        base = self.random.choice([path.rpartition("/")[0] for path in self.truth] or [""])
        path = f"{base}/{self.random.choice(_JUNK)}".lstrip("/")
        data = self.random.randbytes(self.random.choice((0, 1, 40, 200)))
        packs = [one for one in self.truth.values() if one]
        if packs and self.random.random() < 0.5:
            whole = bytearray(self.random.choice(packs))
            whole[self.random.randrange(len(whole))] ^= 1 << self.random.randrange(8)
            data, path = bytes(whole), f"{path}.{self.random.randrange(1000)}.mzp"
        self.put(number, path, data)
        return f"junk in folder {number}: {path}"

    def put(self, number: int, path: str, data: bytes) -> None:
        """Have somebody put a file into a folder who is no replica."""
        self.disks[number].files[path] = File(data)
        self._created(number, path, data)

    def remove(self, path: str) -> None:
        """Have a person remove a file everywhere."""
        if self.truth.pop(path, None) is not None:
            self._tell(-1, Change(path, None))

    def resurrect(self) -> str:
        """Bring back a file that was deleted, everywhere: somebody took it out of the tool's history."""
        gone = [path for path in self.past if path not in self.truth]
        if not gone:
            return "nothing to bring back"
        path = self.random.choice(gone)
        self.truth[path] = self.past[path]
        self._tell(-1, Change(path, self.past[path]))
        return f"{path} is brought back"

    def wipe(self, number: int, *, everywhere: bool) -> str:
        """Empty a folder: by a hand whose deletions the tool carries on, or so that the tool restores it."""
        disk = self.disks[number]
        for path in list(disk.files):
            del disk.files[path]
            if everywhere:
                self._deleted(number, path)
        if not everywhere:
            self._due[number] = [Change(path, data) for path, data in self.truth.items()]
        return f"folder {number} is wiped, {'and so are all' if everywhere else 'and filled again'}"

    def unmount(self, number: int) -> str:
        """Take a folder away, or bring it back as it was."""
        disk = self.disks[number]
        disk.state = self.random.choice((GONE, HOLLOW, SHUT)) if disk.state == THERE else THERE
        return f"folder {number} is {disk.state}"

    def copies(self) -> list[bytes]:
        """Return the content of every file that will be everywhere in the end."""
        return list(self.truth.values())


def _within(path: str, form: str) -> str:
    head, _, name = path.rpartition("/")
    return f"{head}/{form.format(name=name)}".lstrip("/")
