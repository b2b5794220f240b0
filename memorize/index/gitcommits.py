"""The first commit of a repository: along loose objects, and along the commit graph that ``git gc`` writes.

Packs are not read. A repository without a remote has its commits loose until the first ``gc``, and in the graph after
it; a clone has them packed, but a remote as well, which says more.
"""

from __future__ import annotations

import re
import struct
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Final

_COMMIT_BYTES_MAX: Final = 64 * 1024
_GRAPH_STEPS_MAX: Final = 200_000
_GRAPH_BYTES_MAX: Final = 32 * 1024 * 1024
_NO_PARENT: Final = 0x70000000
_KNOWN_MAX: Final = 64

# (common directory, a commit seen at HEAD) -> first commit: the next look needs to go no further back than that.
_known: dict[tuple[str, str], str] = {}


def first_commit(common: str, head: str, loose_max: int) -> str:
    """Return the first commit before ``head`` along first parents; "" when it cannot be reached cheaply.

    At most ``loose_max`` loose objects are read. A shallow clone has none: what looks like its first commit is not.
    """
    directory = Path(common)
    if not head or (directory / "shallow").exists():
        return ""
    commit = head
    for _ in range(loose_max):
        found = _known.get((common, commit), "")
        parent = "" if found else _parent(str(directory / "objects" / commit[:2] / commit[2:]))
        if parent is None:
            found = _graph(directory / "objects" / "info" / "commit-graph").first(commit)
        elif not parent:
            found = found or commit
        if found:
            if len(_known) >= _KNOWN_MAX:
                _known.pop(next(iter(_known)))
            _known[common, head] = found
            return found
        if parent is None:
            return ""
        commit = parent
    return ""


@lru_cache(maxsize=4096)
def _parent(path: str) -> str | None:
    """Return the first parent of a loose commit, "" when it has none; None when it is packed, broken or no commit."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as a string it is the key of the cache
            raw = zlib.decompressobj().decompress(file.read(_COMMIT_BYTES_MAX), _COMMIT_BYTES_MAX)
    except (OSError, zlib.error):
        return None
    kind, _, content = raw.partition(b"\0")
    if not kind.startswith(b"commit "):
        return None
    found = re.search(rb"^parent ([0-9a-f]+)$", content.partition(b"\n\n")[0], re.MULTILINE)
    return found[1].decode("ascii") if found else ""


class _Graph:
    """A commit graph file (git's ``gitformat-commit-graph``), or nothing when there is none that can be used."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._chunks: dict[bytes, int] = {}
        self._size = {1: 20, 2: 32}.get(data[5], 0) if len(data) > 8 and data[:5] == b"CGPH\x01" else 0
        if self._size and data[7] == 0:  # a graph that builds on others is left alone
            for at in range(8, 8 + 12 * data[6], 12):
                name, offset = struct.unpack_from(">4sQ", data, at)
                self._chunks[name] = offset
        self._usable = self._chunks.keys() >= {b"OIDF", b"OIDL", b"CDAT"}

    def first(self, commit: str) -> str:
        """Return the first commit before one, "" when the graph does not know it."""
        if not self._usable:
            return ""
        try:
            at = self._find(bytes.fromhex(commit))
            for _ in range(_GRAPH_STEPS_MAX if at >= 0 else 0):
                width = self._size + 16
                parent = struct.unpack_from(">I", self._data, self._chunks[b"CDAT"] + at * width + self._size)[0]
                if parent == _NO_PARENT:
                    start = self._chunks[b"OIDL"] + at * self._size
                    return self._data[start : start + self._size].hex()
                at = parent
        except (struct.error, ValueError, IndexError):
            pass
        return ""

    def _find(self, wanted: bytes) -> int:
        fanout, names, size = self._chunks[b"OIDF"], self._chunks[b"OIDL"], self._size
        low = struct.unpack_from(">I", self._data, fanout + 4 * (wanted[0] - 1))[0] if wanted[0] else 0
        high = struct.unpack_from(">I", self._data, fanout + 4 * wanted[0])[0]
        while low < high:
            middle = (low + high) // 2
            found = self._data[names + middle * size : names + (middle + 1) * size]
            if found == wanted:
                return int(middle)
            if found < wanted:
                low = middle + 1
            else:
                high = middle
        return -1


def _graph(path: Path) -> _Graph:
    try:
        with path.open("rb") as file:
            data = file.read(_GRAPH_BYTES_MAX + 1)
        return _Graph(data if len(data) <= _GRAPH_BYTES_MAX else b"")
    except (OSError, struct.error):
        return _Graph(b"")
