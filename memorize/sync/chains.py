"""Runs of events that name each other: a writer's events form a chain, each with the id of the one before.

So the id of a run's last event commits to all of them, and a run names a set of events exactly, twins or not, in the
space of one id. Nothing of a header is looked at but its place in the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgpack

from memorize.ids import ID_BYTES, RANDOM_BYTES
from memorize.log.codec import K_LAMPORT, K_PREV, K_REPLICA, K_SEQ, K_WRITER

_SEQ_MAX: Final = 2**63 - 1
_UNREADABLE: Final = (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException)


class Link(NamedTuple):
    """Where an event stands: ``seq`` of its writer, after ``prev`` (empty at the first)."""

    replica: bytes
    writer: bytes
    seq: int
    prev: bytes
    lamport: int


class Run(NamedTuple):
    """Events ``low`` to ``high`` of a writer, each naming the one before; ``last`` is the id of the last."""

    writer: bytes
    low: int
    high: int
    last: bytes

    def is_sound(self) -> bool:
        """Tell whether the fields are what they should be; a run may come from anybody."""
        return (
            type(self.writer) is type(self.last) is bytes
            and len(self.writer) == RANDOM_BYTES
            and len(self.last) == ID_BYTES
            and type(self.low) is type(self.high) is int
            and 0 < self.low <= self.high <= _SEQ_MAX
        )


def link_of(header: bytes) -> Link | None:
    """Return the place that a raw header tells, None when it tells none. Total."""
    try:
        fields = msgpack.unpackb(header, raw=False, strict_map_key=False, unicode_errors="replace")
        get = fields.get
        link = Link(get(K_REPLICA, b""), get(K_WRITER), get(K_SEQ), get(K_PREV, b""), get(K_LAMPORT))
    except (*_UNREADABLE, AttributeError):
        return None
    sound = (
        type(link.replica) is type(link.writer) is type(link.prev) is bytes
        and len(link.writer) == RANDOM_BYTES
        and type(link.seq) is type(link.lamport) is int
        and 0 < link.seq <= _SEQ_MAX
    )
    return link if sound else None


def runs_of(links: Mapping[bytes, Link]) -> tuple[Run, ...]:
    """Return the runs that events make (id -> place), by writer and number."""
    ordered = sorted(links.items(), key=lambda item: (item[1].writer, item[1].seq, item[0]))
    runs: list[Run] = []
    by_last: dict[bytes, int] = {}
    for identity, link in ordered:
        at = by_last.pop(link.prev, None) if link.prev else None
        if at is not None and runs[at].writer == link.writer and runs[at].high == link.seq - 1:
            runs[at] = runs[at]._replace(high=link.seq, last=identity)
        else:
            at = len(runs)
            runs.append(Run(link.writer, link.seq, link.seq, identity))
        by_last[identity] = at
    return tuple(runs)
