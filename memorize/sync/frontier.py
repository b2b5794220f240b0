"""How far each writer's events are held, as two peers compare it: first by buckets of writers, then head by head."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from blake3 import blake3

from memorize.ids import RANDOM_BYTES
from memorize.sync.port import Head, Holding
from memorize.sync.wire import BUCKET_BYTES, BUCKETS

_EMPTY: Final = bytes(BUCKET_BYTES)
_SEQ_BYTES: Final = 8


class Frontier(NamedTuple):
    """``heads`` of writers that are held whole; ``torn``: those of which something is missing, or is there twice."""

    heads: Mapping[bytes, Head]
    torn: frozenset[bytes]


NOTHING: Final = Frontier({}, frozenset())


def frontier(holding: Holding) -> Frontier:
    """Return the frontier of a replica. Writers that malformed headers name are left to the comparison of ranges."""
    heads = {head.writer: head for head in holding.heads() if len(head.writer) == RANDOM_BYTES}
    torn = {writer for writer in holding.spans() if writer not in heads and len(writer) == RANDOM_BYTES}
    return Frontier(heads, frozenset(torn))


def buckets(mine: Frontier) -> bytes:
    """Return 4 bytes for each of 256 groups of writers, by the first byte of their ids."""
    parts: list[list[bytes]] = [[] for _ in range(BUCKETS)]
    for head in mine.heads.values():
        parts[head.writer[0]].append(head.writer + head.seq.to_bytes(_SEQ_BYTES, "big") + head.id)
    for writer in mine.torn:
        parts[writer[0]].append(writer)
    return b"".join(blake3(b"".join(sorted(part))).digest()[:BUCKET_BYTES] if part else _EMPTY for part in parts)


def differing(mine: bytes, theirs: bytes) -> frozenset[int]:
    """Return the buckets that are not equal."""
    places = range(0, BUCKETS * BUCKET_BYTES, BUCKET_BYTES)
    return frozenset(
        at // BUCKET_BYTES for at in places if mine[at : at + BUCKET_BYTES] != theirs[at : at + BUCKET_BYTES]
    )


def within(mine: Frontier, where: Collection[int]) -> Frontier:
    """Return the part of a frontier that lies in these buckets."""
    heads = {writer: head for writer, head in mine.heads.items() if writer[0] in where}
    return Frontier(heads, frozenset(writer for writer in mine.torn if writer[0] in where))


def lacking(mine: Frontier, theirs: Frontier) -> list[Head]:
    """Return the heads after which this side has more than the other one. Both parts are of the same buckets.

    A writer that is torn on either side is none of them, else everything of it would travel for one missing event.
    """
    found = []
    for writer, head in sorted(mine.heads.items()):
        known = theirs.heads.get(writer)
        if known is None and writer not in theirs.torn:
            found.append(Head(writer, 0, b""))
        elif known is not None and known.seq < head.seq:
            found.append(known)
    return found


def count(mine: Frontier, after: Iterable[Head]) -> int:
    """Return how many events lie after these heads."""
    return sum(mine.heads[head.writer].seq - head.seq for head in after)


def is_doubtful(mine: Frontier, theirs: Frontier) -> bool:
    """Tell whether heads alone will hardly make both sides equal."""
    forked = any(
        head.seq == theirs.heads[writer].seq and head.id != theirs.heads[writer].id
        for writer, head in mine.heads.items()
        if writer in theirs.heads
    )
    return bool(forked or mine.torn or theirs.torn)


def ahead(mine: Frontier, theirs: Frontier) -> frozenset[bytes]:
    """Return the writers of which the other side has events that this one lacks."""
    found = {head.writer for head in lacking(theirs, mine)}
    found.update(
        writer for writer, head in theirs.heads.items() if writer in mine.heads and _forks(head, mine.heads[writer])
    )
    return frozenset(found)


def _forks(one: Head, other: Head) -> bool:
    return one.seq == other.seq and one.id != other.id
