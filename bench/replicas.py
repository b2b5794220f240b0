"""Replicas of a large store that live in memory: any part of one row of a million events, without a disk.

The row is made once. A replica is a byte for each event, so that two of them that hold almost the same cost little
more than one; digests of ranges are differences of running sums.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from random import Random

import msgpack

from memorize.ids import event_id
from memorize.log.codec import K_LAMPORT, K_SEQ, K_WRITER
from memorize.sync.port import ID_SPACE, Envelope, Head, Key, Received, SetDigest, Span

_BODY_BYTES = 300


class Row:
    """All events there are: of several writers that took turns, in the order of (lamport, id)."""

    def __init__(self, events: int, writers: int = 20, seed: int = 2026) -> None:
        chance = Random(seed)
        self.writers = sorted(chance.randbytes(16) for _ in range(writers))
        self.salt = chance.randbytes(8)
        numbered = sorted((number // writers + 1, event_id(self.header(number)), number) for number in range(events))
        self.keys: list[Key] = [(lamport, identity) for lamport, identity, _ in numbered]
        self.numbers = [number for _, _, number in numbered]
        self.values = [int.from_bytes(identity, "big") for _, identity in self.keys]
        self.at = {identity: place for place, (_, identity) in enumerate(self.keys)}
        self.places = [0] * events
        for place, number in enumerate(self.numbers):
            self.places[number] = place

    def header(self, number: int) -> bytes:
        """Return the header of an event."""
        count = len(self.writers)
        fields = {K_WRITER: self.writers[number % count], K_SEQ: number // count + 1, K_LAMPORT: number // count + 1}
        packed: bytes = msgpack.packb({**fields, 99: self.salt})
        return packed

    def envelope(self, place: int) -> Envelope:
        """Return the event at a place of the order."""
        lamport, identity = self.keys[place]
        header = self.header(self.numbers[place])
        body = (identity * (_BODY_BYTES // len(identity) + 1))[:_BODY_BYTES]
        return Envelope(identity, lamport, header, body)


class Replica:
    """A ``sync.port.Holding``: those events of a row that ``held`` marks."""

    def __init__(self, row: Row, held: bytearray) -> None:
        self.row = row
        self.held = held
        self._sums: tuple[list[int], list[int]] | None = None

    def _running(self) -> tuple[list[int], list[int]]:
        if self._sums is None:
            counts = list(accumulate(self.held, initial=0))
            values = (value if held else 0 for value, held in zip(self.row.values, self.held, strict=True))
            self._sums = counts, list(accumulate(values, initial=0))
        return self._sums

    def _place(self, key: Key) -> int:
        return bisect_left(self.row.keys, key)

    def digest(self) -> SetDigest:
        counts, totals = self._running()
        return SetDigest(counts[-1], totals[-1] % ID_SPACE)

    def range_digest(self, low: Key, high: Key) -> SetDigest:
        counts, totals = self._running()
        start, end = self._place(low), self._place(high)
        return SetDigest(counts[end] - counts[start], (totals[end] - totals[start]) % ID_SPACE)

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        counts, _ = self._running()
        start, end = self._place(low), self._place(high)
        end = min(end, bisect_left(counts, counts[start] + limit, start, len(counts)))
        return [self.row.keys[place] for place in range(start, end) if self.held[place]][:limit]

    def bounds(self, low: Key, high: Key, parts: int) -> list[Key]:
        counts, _ = self._running()
        start, end = self._place(low), self._place(high)
        count = counts[end] - counts[start]
        wanted = sorted({counts[start] + count * part // parts for part in range(1, parts)} - {counts[start]})
        return [self.row.keys[bisect_left(counts, number, start, end) - 1] for number in wanted]

    def heads(self) -> list[Head]:
        heads = []
        for number, writer in enumerate(self.row.writers):
            seqs = self._of(number).rstrip(b"\0")
            if seqs and 0 not in seqs:
                last = (len(seqs) - 1) * len(self.row.writers) + number
                heads.append(Head(writer, len(seqs), self.row.keys[self.row.places[last]][1]))
        return heads

    def _of(self, writer: int) -> bytes:
        return bytes([self.held[place] for place in self.row.places[writer :: len(self.row.writers)]])

    def spans(self) -> Mapping[bytes, tuple[bytes, list[Span]]]:
        found = {}
        for number, writer in enumerate(self.row.writers):
            seqs = self._of(number)
            if any(seqs):
                found[writer] = (b"", [Span(writer, seqs.index(1) + 1, seqs.rindex(1) + 1)])
        return found

    def after(self, head: Head, limit_bytes: int) -> list[Envelope]:
        writer = self.row.writers.index(head.writer)
        places = self.row.places[writer :: len(self.row.writers)]
        if head.seq and (not self.held[places[head.seq - 1]] or self.row.keys[places[head.seq - 1]][1] != head.id):
            return []
        count = max(1, limit_bytes // (_BODY_BYTES + 100))
        return [self.row.envelope(place) for place in places[head.seq : head.seq + count] if self.held[place]]

    def of_spans(self, spans: Sequence[Span]) -> Iterator[Envelope]:
        for span in spans:
            places = self.row.places[self.row.writers.index(span.writer) :: len(self.row.writers)]
            yield from (self.row.envelope(place) for place in places[span.low - 1 : span.high] if self.held[place])

    def get(self, ids: Iterable[bytes]) -> Iterator[Envelope]:
        found = [self.row.at[identity] for identity in ids if identity in self.row.at]
        return (self.row.envelope(place) for place in found if self.held[place])

    def own(self, writers: Collection[bytes]) -> frozenset[bytes]:
        return frozenset()

    def receive(self, envelopes: Iterable[Envelope]) -> Received:
        new = known = bad = 0
        for envelope in envelopes:
            place = self._place(envelope.key)
            if place == len(self.held) or self.row.keys[place] != envelope.key:
                bad += 1
            elif self.held[place]:
                known += 1
            else:
                self.held[place] = 1
                new += 1
        if new:
            self._sums = None
        return Received(new=new, known=known, bad=bad)
