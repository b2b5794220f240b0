"""What one side has still to send: read from the holding only when there is room for it, so memory stays bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from memorize.limits import PEER_FRAME_BYTES_MAX
from memorize.sync import wire
from memorize.sync.port import Envelope, Head, Holding, Key
from memorize.sync.ranges import Rest

# Read at once by id, whatever their size: nothing stays open in the holding between two turns.
_TOGETHER: Final = 32
# Room for what surrounds the bytes of a piece, and for a frame that zstd makes larger instead of smaller.
_FRAME_EXTRA: Final = 8 * 1024

Fields = tuple[int, tuple[Any, ...]]


class Outgoing:
    """A queue of events, named by what is missing elsewhere: after a head, in a range, or by id."""

    def __init__(self, holding: Holding, frame_bytes: int) -> None:
        self.packed = False  # both sides can
        self._holding = holding
        self._frame_bytes = min(frame_bytes, PEER_FRAME_BYTES_MAX - _FRAME_EXTRA)
        self._sources: deque[Iterator[Envelope]] = deque()
        self._next: deque[Envelope] = deque()
        self._pieces: deque[Fields] = deque()
        self.sent = 0
        self.piece_bytes = 0

    def __bool__(self) -> bool:
        """Tell whether something is left; finds out by reading the next event."""
        return bool(self._pieces) or self._peek() is not None

    def after(self, head: Head) -> None:
        """Send a writer's events after a head."""
        self._sources.append(self._after(head))

    def rest(self, rest: Rest) -> None:
        """Send the events of a range, but for some."""
        self._sources.append(self._rest(rest))

    def ids(self, ids: Iterable[bytes]) -> None:
        """Send these events as far as they are held."""
        self._sources.append(self._ids(list(ids)))

    def frames(self, budget: int) -> Iterator[Fields]:
        """Yield kinds and fields of frames with at most about ``budget`` bytes of events; at least one frame."""
        while budget > 0 and (self._pieces or self._peek() is not None):
            if self._pieces:
                kind, fields = self._pieces.popleft()
                budget -= len(fields[0])
                self.piece_bytes += len(fields[0])
                yield kind, fields
                continue
            if wire.weight(self._next[0]) > self._frame_bytes:
                self._cut(self._next.popleft())
                continue
            batch, size = self._batch(min(budget, self._frame_bytes))
            budget -= size
            yield self._frame(batch)

    def _batch(self, room: int) -> tuple[list[Envelope], int]:
        batch: list[Envelope] = []
        size = 0
        while (following := self._peek()) is not None:
            heavier = size + wire.weight(following)
            if heavier > self._frame_bytes or (batch and heavier > room):
                break
            batch.append(self._next.popleft())
            size = heavier
        self.sent += len(batch)
        return batch, size

    def _frame(self, batch: list[Envelope]) -> Fields:
        if self.packed:
            return wire.PACKED, (wire.pack_records(batch),)
        return wire.EVENTS, ([wire.record(one) for one in batch],)

    def _cut(self, envelope: Envelope) -> None:
        raw = wire.pack_record(envelope)
        for start in range(0, len(raw), self._frame_bytes):
            end = start + self._frame_bytes
            self._pieces.append((wire.PIECE, (raw[start:end], end < len(raw))))
        self.sent += 1

    def _peek(self) -> Envelope | None:
        while not self._next:
            if not self._sources:
                return None
            found = next(self._sources[0], None)
            if found is None:
                self._sources.popleft()
            else:
                self._next.append(found)
        return self._next[0]

    def _after(self, head: Head) -> Iterator[Envelope]:
        while found := self._holding.after(head, self._frame_bytes):
            yield from found
            # Events of a writer without a gap: each has the next number. Were it not so, the next call gives none.
            head = Head(head.writer, head.seq + len(found), found[-1].id)

    def _rest(self, rest: Rest) -> Iterator[Envelope]:
        low: Key = rest.low
        while found := self._holding.keys(low, rest.high, _TOGETHER):
            yield from list(self._holding.get([identity for _, identity in found if identity not in rest.known]))
            lamport, identity = found[-1]
            low = (lamport, identity + b"\0")

    def _ids(self, ids: list[bytes]) -> Iterator[Envelope]:
        for start in range(0, len(ids), _TOGETHER):
            yield from list(self._holding.get(ids[start : start + _TOGETHER]))
