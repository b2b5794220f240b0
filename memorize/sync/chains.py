"""Runs of events that name each other: a writer's events form a chain, each with the id of the one before.

So the id of a run's last event commits to all of them, and a run names a set of events exactly, twins or not, in the
space of one id. Nothing of a header is looked at but its place in the chain.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

import msgpack

from memorize.ids import ID_BYTES, RANDOM_BYTES
from memorize.log.codec import K_LAMPORT, K_PREV, K_REPLICA, K_SEQ, K_WRITER, UNREADABLE

_SEQ_MAX: Final = 2**63 - 1


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
    """Return the place that a raw header tells, None when it names no writer or no number. Total.

    Of what else cannot be used the empty value is taken, as ``log.codec`` does.
    """
    try:
        fields = msgpack.unpackb(header, raw=False, strict_map_key=False, unicode_errors="replace")
        writer, seq, lamport = fields.get(K_WRITER), fields.get(K_SEQ), fields.get(K_LAMPORT)
        replica, prev = fields.get(K_REPLICA), fields.get(K_PREV)
    except (*UNREADABLE, AttributeError):
        return None
    if type(writer) is not bytes or len(writer) != RANDOM_BYTES or not _is_number(seq) or not seq:
        return None
    return Link(
        replica if type(replica) is bytes and len(replica) == RANDOM_BYTES else b"",
        writer,
        seq,
        prev if type(prev) is bytes and len(prev) == ID_BYTES else b"",
        lamport if _is_number(lamport) else 0,
    )


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= _SEQ_MAX


class Chains:
    """Builds the runs of events that come in order, in memory for the runs alone. ``watched``: ids to remember."""

    def __init__(self, watched: Collection[bytes] = ()) -> None:
        """Begin with no event."""
        self._runs: list[Run] = []
        self._by_last: dict[bytes, int] = {}
        # The last but one of a run: where two events name the same one before, the second begins a run there.
        self._by_second: dict[bytes, int] = {}
        self._seconds: dict[int, bytes] = {}
        self._forks: dict[int, int] = {}
        self._watched = watched
        self._places: dict[bytes, tuple[int, int]] = {}

    def add(self, identity: bytes, link: Link) -> None:
        """Add an event; one that does not come right after the one before it begins a run of its own."""
        at = self._by_last.pop(link.prev, None) if link.prev else None
        if at is not None and self._runs[at].writer == link.writer and self._runs[at].high == link.seq - 1:
            low = self._runs[at].low
            self._by_second.pop(self._seconds.get(at, b""), None)
            self._by_second[link.prev], self._seconds[at] = at, link.prev
        else:
            at, low = len(self._runs), link.seq
            self._runs.append(Run(link.writer, low, low, identity))
            parent = self._by_second.get(link.prev)
            if parent is not None and self._runs[parent].high == link.seq:
                self._forks[at] = parent
        self._runs[at] = Run(link.writer, low, link.seq, identity)
        self._by_last[identity] = at
        if identity in self._watched:
            self._places[identity] = (at, link.seq)

    def runs(self) -> tuple[Run, ...]:
        """Return the runs, by writer and number."""
        return tuple(sorted(self._runs))

    def holds(self, run: Run) -> bool:
        """Tell whether every event of a run was added. The id of its last must be one of the watched."""
        at, number = self._places.get(run.last, (-1, 0))
        if at < 0 or number != run.high:
            return False
        while self._runs[at].low > run.low and at in self._forks:
            at = self._forks[at]
        return self._runs[at].low <= run.low
