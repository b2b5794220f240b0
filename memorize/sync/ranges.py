"""Finds the differences of two sets of events by digests of ranges of their common order. No I/O, no memory of its own.

A message is a row of adjacent ranges, each with nothing (equal, or no matter), a fingerprint, or all its ids. A
differing fingerprint is answered with finer ones, or with ids where few are held; ids are answered with what the other
side lacks. Every answer stands alone, so ranges may come twice, late, or never.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from blake3 import blake3

from memorize.ids import ID_BYTES
from memorize.sync.port import HIGHEST, LOWEST, Holding, Key, SetDigest
from memorize.sync.wire import FINGERPRINT_BYTES, LAMPORT_MAX, Garbled

BRANCH: Final = 16
# A wider first step saves two turns for a million events, and costs 8 KB.
FIRST: Final = 256
LIST_MAX: Final = 32
# Bounds need not be events: so much of an id tells a cut from its neighbours.
_BOUND_BYTES: Final = 6
_FINGERPRINT_COST: Final = 32
_BOUND_COST: Final = 14


class Range(NamedTuple):
    """Keys from ``low`` up to, not including, ``high``, and what one side tells of its events there.

    ``told`` None: nothing; bytes: the fingerprint; a tuple: all ids.
    """

    low: Key
    high: Key
    told: bytes | tuple[bytes, ...] | None

    @property
    def cost(self) -> int:
        """About how many bytes it takes in a frame."""
        if isinstance(self.told, tuple):
            return _BOUND_COST + len(self.told) * (ID_BYTES + 2)
        return _FINGERPRINT_COST if self.told else _BOUND_COST


class Rest(NamedTuple):
    """Events to send: all that are held from ``low`` up to ``high``, but for some ids."""

    low: Key
    high: Key
    known: frozenset[bytes]


class Answer(NamedTuple):
    """What a side says to ranges: ranges of its own, ids that it lacks, and what it has to send."""

    ranges: list[Range]
    wants: list[bytes]
    rests: list[Rest]


def fingerprint(digest: SetDigest) -> bytes:
    """Return 16 bytes for a set; equal ones are compared once more by the whole digest, at the end."""
    raw = digest.events.to_bytes(8, "big") + digest.total.to_bytes(ID_BYTES, "big")
    return blake3(raw).digest()[:FINGERPRINT_BYTES]


def first(holding: Holding) -> list[Range]:
    """Return the ranges by which an exchange begins."""
    return split(holding, LOWEST, HIGHEST, FIRST)


def split(holding: Holding, low: Key, high: Key, parts: int) -> list[Range]:
    """Return fingerprints of about equal parts of a range, or its ids when there are few."""
    mine = holding.keys(low, high, LIST_MAX + 1)
    if len(mine) <= LIST_MAX:
        return [Range(low, high, tuple(identity for _, identity in mine))]
    found = holding.bounds(low, high, parts)
    cuts = _cuts([(lamport, identity[:_BOUND_BYTES]) for lamport, identity in found], low, high)
    if len(cuts) < len(found):  # ids that begin alike: none by chance
        cuts = _cuts(found, low, high)
    edges = [low, *cuts, high]
    return [Range(start, end, fingerprint(holding.range_digest(start, end))) for start, end in pairwise(edges)]


def _cuts(keys: Iterable[Key], low: Key, high: Key) -> list[Key]:
    return [key for key in sorted(set(keys)) if low < key < high]


def answer(holding: Holding, theirs: Sequence[Range], budget: int) -> Answer:
    """Return what to say to ranges, in at most about ``budget`` bytes; what does not fit is told by one fingerprint.

    The first range is always answered in full, so that every message brings both sides further. Ranges may overlap.
    """
    said = Answer([], [], [])
    spent = 0
    for position, one in enumerate(theirs):
        if spent > budget:
            low = min(each.low for each in theirs[position:])
            high = max(each.high for each in theirs[position:])
            said.ranges.append(Range(low, high, fingerprint(holding.range_digest(low, high))))
            break
        ranges, wants, rests = _one(holding, one)
        said.ranges.extend(ranges)
        said.wants.extend(wants)
        said.rests.extend(rests)
        spent += sum([each.cost for each in ranges]) + len(wants) * (ID_BYTES + 2) + (not position)
    return said


def _one(holding: Holding, theirs: Range) -> Answer:
    low, high, told = theirs
    if told is None:
        return Answer([], [], [])
    if isinstance(told, bytes):
        mine = holding.range_digest(low, high)
        if fingerprint(mine) == told:
            return Answer([], [], [])
        return Answer(split(holding, low, high, BRANCH), [], [])
    return _to_ids(holding, low, high, told)


def _to_ids(holding: Holding, low: Key, high: Key, told: tuple[bytes, ...]) -> Answer:
    listed = frozenset(told)
    # A few more than could all be listed: with fewer than that, these are all.
    mine = [identity for _, identity in holding.keys(low, high, len(listed) + LIST_MAX)]
    lacking = listed.difference(mine)
    if lacking and len(mine) == len(listed) + LIST_MAX:
        lacking = lacking.difference(envelope.id for envelope in holding.get(lacking))
    rests = [] if listed.issuperset(mine) else [Rest(low, high, listed)]
    return Answer([], sorted(lacking), rests)


# -- as fields of a frame -----------------------------------------------------------------------------------------


def to_frames(told: Iterable[Range], room: int) -> Iterator[tuple[int, bytes, list[Any]]]:
    """Yield the fields of frames of about ``room`` bytes that hold these ranges; they need not ascend."""
    part: list[Range] = []
    size = 0
    for one in told:
        if part and (size + one.cost > room or one.low < part[-1].high):
            yield to_fields(part)
            part, size = [], 0
        part.append(one)
        size += one.cost
    if part:
        yield to_fields(part)


def to_fields(ranges: Sequence[Range]) -> tuple[int, bytes, list[Any]]:
    """Return ascending ranges as the fields of a frame; gaps between them become ranges of which nothing is told."""
    start = position = ranges[0].low
    items: list[Any] = []
    for low, high, told in ranges:
        if low != position:
            items.append([low[0] - position[0], low[1], None])
        step = None if high == HIGHEST else high[0] - low[0]
        items.append([step, b"" if step is None else high[1], told])
        position = high
    return (start[0], start[1], items)


def from_fields(lamport: int, identity: bytes, items: Sequence[Any]) -> list[Range]:
    """Return the ranges of which something is told. Raises Garbled when they do not ascend."""
    position: Key = (lamport, identity)
    found = []
    for step, prefix, told in items:
        high: Key = HIGHEST if step is None else (position[0] + step, prefix)
        if not position < high or (high != HIGHEST and high[0] > LAMPORT_MAX):
            raise Garbled("ranges that do not ascend")
        if told is not None:
            found.append(Range(position, high, tuple(told) if isinstance(told, list) else told))
        position = high
    return found
