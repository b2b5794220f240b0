"""Which numbers of which writers are there: intervals instead of a table, so that ten million events fit."""

from __future__ import annotations

from typing import NamedTuple


class Gap(NamedTuple):
    """Numbers of a writer that no readable file holds, both ends included."""

    writer: bytes
    first: int
    last: int

    @property
    def name(self) -> str:
        """The name by which a loss is noted."""
        return f"{self.writer.hex()}:{self.first}-{self.last}"

    def holds(self, other: Gap) -> bool:
        """Tell whether the other one lies inside."""
        return self.writer == other.writer and self.first <= other.first and other.last <= self.last


class _Stretch:
    """Consecutive numbers; ``prev`` is what the first names as its predecessor, ``last`` the id of the last."""

    __slots__ = ("first", "last", "last_id", "prev")

    def __init__(self, first: int, last: int, prev: bytes, last_id: bytes) -> None:
        self.first, self.last, self.prev, self.last_id = first, last, prev, last_id


class Chains:
    """Collects stretches of numbers and tells what is missing between them."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._writers: dict[bytes, list[_Stretch]] = {}

    def add(self, writer: bytes, first: int, last: int, prev: bytes, last_id: bytes) -> bool:
        """Take note of the events ``first`` to ``last`` of a writer; False when they do not follow what is known."""
        known = self._writers.setdefault(writer, [])
        for stretch in reversed(known):
            if stretch.last + 1 == first:
                good = stretch.last_id == prev
                stretch.last, stretch.last_id = last, last_id
                return good
            if stretch.first <= first and last <= stretch.last:
                return True  # a copy, or a twin of which nothing can be said here
        known.append(_Stretch(first, last, prev, last_id))
        return first != 1 or prev == b""

    def last(self, writer: bytes) -> int:
        """Return the last number that is there of a writer, 0 when there is none."""
        return max((stretch.last for stretch in self._writers.get(writer, ())), default=0)

    def gaps(self) -> tuple[Gap, ...]:
        """Return every number between 1 and the last known one that is missing, writer by writer."""
        found: list[Gap] = []
        for writer, stretches in sorted(self._writers.items()):
            expected = 1
            for stretch in sorted(stretches, key=lambda one: one.first):
                if stretch.first > expected:
                    found.append(Gap(writer, expected, stretch.first - 1))
                expected = max(expected, stretch.last + 1)
        return tuple(found)
