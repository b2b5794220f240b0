"""A disk in memory that knows what is durable and what is not, and can be cut off power at any moment.

A file's bytes become durable by a sync of the file, a name by a sync of its directory; nothing else does, which is
less than any real file system promises. Until then a power cut may lose or keep each of them by itself: of the bytes
all, half, all but one, or their content (zeros); of the changes to one name any later ones (they cannot overtake each
other); changes to different names in any combination.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

ROOT = 1
PARENT = "/disk"


class Killed(BaseException):
    """The process was killed: nothing of it runs any more."""


class _File:
    def __init__(self, current: bytes = b"", durable: bytes = b"") -> None:
        self.current, self.durable = current, durable

    def copy(self) -> _File:
        return _File(self.current, self.durable)


class _Dir:
    def __init__(self) -> None:
        self.current: dict[str, int] = {}
        self.durable: dict[str, int] = {}
        self.pending: list[tuple[str, int]] = []  # (name, node), 0 for a removal

    def reach(self) -> set[int]:
        return {*self.current.values(), *self.durable.values(), *(number for _, number in self.pending)}

    def copy(self) -> _Dir:
        made = _Dir()
        made.current, made.durable, made.pending = dict(self.current), dict(self.durable), list(self.pending)
        return made


class Site(NamedTuple):
    """One place of the program that syncs: the function, its line, and for a directory which one."""

    function: str
    line: int
    what: str


class Disk:
    """The ``Files`` protocol in memory.

    ``before`` is called ahead of every change with its name. ``skip`` is a place whose syncs do nothing. ``kill_at``
    is the number of the change (1 = the first) ahead of which the process dies.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, _File | _Dir] = {ROOT: _Dir()}
        self.handles: dict[int, int] = {}
        self.before: Callable[[str], None] | None = None
        self.skip: Site | None = None
        self.sites: set[Site] = set()
        self.kill_at = 0
        self.changes = 0
        self._next = ROOT
        self.make_dir(PARENT)
        self.sync_dir("/")

    def copy(self) -> Disk:
        """Return the disk as it is, without what is attached to it: what a killed process leaves."""
        made = Disk.__new__(Disk)
        made.__dict__.update(self.__dict__)
        made.nodes = {number: node.copy() for number, node in self.nodes.items()}
        made.handles, made.before, made.kill_at, made.changes, made.sites = {}, None, 0, 0, set()
        return made

    # -- the tree ---------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> int:
        number = ROOT
        for name in filter(None, path.split("/")):
            node = self.nodes[number]
            if not isinstance(node, _Dir):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            if name not in node.current:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            number = node.current[name]
        return number

    def _dir(self, path: str) -> _Dir:
        node = self.nodes[self._find(path)]
        if not isinstance(node, _Dir):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _file(self, number: int) -> _File:
        node = self.nodes[number]
        if not isinstance(node, _File):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return node

    def _place(self, path: str) -> tuple[_Dir, str]:
        head, _, name = path.rpartition("/")
        return self._dir(head or "/"), name

    def _change(self, what: str) -> None:
        self.changes += 1
        if self.kill_at and self.changes >= self.kill_at:
            raise Killed
        if self.before is not None:
            self.before(what)

    def _set(self, directory: _Dir, name: str, number: int) -> None:
        directory.pending.append((name, number))
        if number:
            directory.current[name] = number
        else:
            del directory.current[name]

    def _skipped(self, what: str) -> bool:
        frame = sys._getframe(2)
        site = Site(frame.f_code.co_qualname, frame.f_lineno, what)
        if frame.f_globals is not globals():
            self.sites.add(site)
        return site == self.skip

    def tree(self) -> dict[str, bytes]:
        """Return path -> bytes of every file that can be reached now."""
        found: dict[str, bytes] = {}
        todo = [("", ROOT)]
        while todo:
            path, number = todo.pop()
            node = self.nodes[number]
            if isinstance(node, _File):
                found[path] = node.current
            else:
                todo += [(f"{path}/{name}", child) for name, child in node.current.items()]
                found[path + "/"] = b""
        return found

    # -- Files --------------------------------------------------------------------------------------------------------

    def names(self, directory: str) -> list[str]:
        return list(self._dir(directory).current)

    def sizes(self, directory: str) -> dict[str, int]:
        found = {name: self.nodes[number] for name, number in self._dir(directory).current.items()}
        return {name: len(node.current) for name, node in found.items() if isinstance(node, _File)}

    def read(self, path: str, limit: int) -> bytes:
        return self._file(self._find(path)).current[:limit]

    def pread(self, path: str, offset: int, length: int) -> bytes:
        data = self._file(self._find(path)).current
        return data[offset:] if length < 0 else data[offset : offset + length]

    def create(self, path: str) -> int:
        directory, name = self._place(path)
        if name in directory.current:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._change("create")
        number = self._new(_File())
        self._set(directory, name, number)
        return self._open(number)

    def _new(self, node: _File | _Dir) -> int:
        self._next += 1
        self.nodes[self._next] = node
        return self._next

    def _open(self, number: int) -> int:
        handle = max(self.handles, default=2) + 1
        self.handles[handle] = number
        return handle

    def reopen(self, path: str) -> int:
        return self._open(self._find(path))

    def write(self, handle: int, data: bytes) -> int:
        self._change("write")
        self._file(self.handles[handle]).current += data
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        self._change("truncate")
        node = self._file(self.handles[handle])
        node.current = node.current[:size]

    def fdatasync(self, handle: int) -> None:
        self._sync(handle, self._skipped("fdatasync"))

    def fsync(self, handle: int) -> None:
        self._sync(handle, self._skipped("fsync"))

    def _sync(self, handle: int, skipped: bool) -> None:
        self._change("sync")
        if not skipped:
            node = self._file(self.handles[handle])
            node.durable = node.current

    def close(self, handle: int) -> None:
        self.handles.pop(handle, None)

    def sync_dir(self, directory: str) -> None:
        name = directory.rpartition("/")[2]
        skipped = self._skipped(f"sync_dir {name}")
        node = self._dir(directory)
        self._change("sync_dir")
        if not skipped:
            node.durable, node.pending = dict(node.current), []

    def rename(self, source: str, target: str) -> None:
        (old, name), (new, other) = self._place(source), self._place(target)
        number = self._find(source)
        self._change("rename")
        self._set(old, name, 0)
        self._set(new, other, number)

    def unlink(self, path: str) -> None:
        directory, name = self._place(path)
        self._find(path)
        self._change("unlink")
        self._set(directory, name, 0)

    def make_dir(self, path: str) -> None:
        done = ""
        for name in filter(None, path.split("/")):
            directory = self._dir(done or "/")
            done += f"/{name}"
            if name not in directory.current:
                self._change("make_dir")
                self._set(directory, name, self._new(_Dir()))

    def modified_ms(self, path: str) -> int:
        self._find(path)
        return 1_796_000_000_000

    def touch(self, path: str, wall_ms: int) -> None:
        self._find(path)

    def place(self, path: str) -> tuple[int, int, int]:
        return (1, self._find(path), 0)

    def lock(self, path: str, wait_s: float) -> AbstractContextManager[object]:
        return nullcontext()

    # -- power cuts ----------------------------------------------------------------------------------------------------

    def cuts(self, limit: int, seed: int = 0) -> Iterator[Disk]:
        """Yield the disks that a power cut now may leave, each once.

        All of them when there are no more than ``limit`` combinations; else every combination that differs in one
        thing (two, from a limit of 100 on) from losing everything and from keeping everything, and some at random;
        below a limit of 10 only one of the two, by ``seed``.
        """
        units = self._units()
        seen: set[frozenset[tuple[str, bytes]]] = set()
        for choice in _choices([len(options) for options in units.values()], limit, seed):
            made = self._cut({unit: options[pick] for (unit, options), pick in zip(units.items(), choice, strict=True)})
            key = frozenset(made.tree().items())
            if key not in seen:
                seen.add(key)
                yield made

    def _units(self) -> dict[tuple[int, str], Sequence[bytes | int]]:
        """Return what a power cut decides, each with its outcomes: the first loses it, the last keeps it."""
        units: dict[tuple[int, str], Sequence[bytes | int]] = {}
        named = {to for node in self.nodes.values() if isinstance(node, _Dir) for to in node.reach()}
        for number, node in self.nodes.items():
            if isinstance(node, _File):
                if node.durable != node.current and number in named:
                    units[number, ""] = _torn(node.durable, node.current)
            else:
                for name in dict.fromkeys(name for name, _ in node.pending):
                    outcomes = [node.durable.get(name, 0)] + [to for changed, to in node.pending if changed == name]
                    units[number, name] = list(dict.fromkeys(outcomes[:-1])) + outcomes[-1:]
        return units

    def _cut(self, chosen: Mapping[tuple[int, str], bytes | int]) -> Disk:
        made = self.copy()
        for number, node in made.nodes.items():
            if isinstance(node, _File):
                kept = chosen.get((number, ""), node.current)
                assert isinstance(kept, bytes)
                node.current = node.durable = kept
            else:
                entries = {name: node.durable.get(name, 0) for name in [*node.durable, *node.current]}
                entries |= {name: int(to) for (at, name), to in chosen.items() if at == number and name}
                node.current = {name: to for name, to in entries.items() if to}
                node.durable, node.pending = dict(node.current), []
        return made


def _torn(durable: bytes, current: bytes) -> list[bytes]:
    """Return what may be left of a file: what was durable first, everything last."""
    outcomes = [durable]
    if current.startswith(durable):
        new = len(current) - len(durable)
        outcomes += [current[: len(durable) + new // 2], current[:-1], durable + bytes(new)]
    return [*dict.fromkeys(one for one in outcomes if one != current), current]


def _choices(sizes: list[int], limit: int, seed: int) -> Iterator[tuple[int, ...]]:
    total = 1
    for size in sizes:
        total *= size
    if total <= limit:
        yield from itertools.product(*(range(size) for size in sizes))
        return
    together = 2 if limit >= 100 else 1
    bases = [[0] * len(sizes), [size - 1 for size in sizes]]
    for base in bases if limit >= 10 else bases[seed % 2 : seed % 2 + 1]:
        for units in itertools.combinations(range(len(sizes)), together):
            for picks in itertools.product(*(range(sizes[unit]) for unit in units)):
                choice = list(base)
                for unit, pick in zip(units, picks, strict=True):
                    choice[unit] = pick
                yield tuple(choice)
    chance = random.Random(seed)
    for _ in range(limit):
        yield tuple(chance.randrange(size) for size in sizes)
