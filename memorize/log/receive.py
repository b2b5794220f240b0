"""The door for events that others wrote: verified, written whole to a file of ``received/``, synced, indexed.

Nothing is looked at but what an event promises of itself: twins, unknown kinds and what no reader understands are
kept like everything else. What does not verify is dropped and counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from memorize.clock import Clock
from memorize.errors import CannotWrite
from memorize.ids import random_id
from memorize.limits import SEGMENT_BYTES_MAX
from memorize.log.codec import Bad, decode
from memorize.log.files import Files
from memorize.log.frames import ERASED, EVENT, FOOTER, SIGNATURE_BYTES, SIGNED, pack_frame
from memorize.log.identity import Identity
from memorize.log.projection import Projection
from memorize.log.segments import (
    HEADER_BYTES,
    RECEIVED,
    SUFFIX,
    SegmentHeader,
    SegmentWriter,
    fresh_header,
    last_frame,
    parse_header,
    seal,
)
from memorize.model import Envelope, Event, Received, Stored
from memorize.paths import Home

BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
BATCH_EVENTS_MAX: Final = 4096
# What a frame can say of its header.
_HEADER_BYTES_MAX: Final = 0xFFFF


class _Item(NamedTuple):
    event: Event
    envelope: Envelope


class _Sorted(NamedTuple):
    """A batch as it will be written, in order; ``tally`` is what became of all of it. ``new``: not even known yet."""

    items: list[_Item]
    new: frozenset[bytes]
    tally: Received

    def tells_more_of(self, replica: bytes) -> bool:
        """Tell whether something of this replica is among it that nobody here knew."""
        return any(item.event.header.replica == replica and item.event.id in self.new for item in self.items)


def in_batches(envelopes: Iterable[Envelope], events_max: int = BATCH_EVENTS_MAX) -> Iterator[list[Envelope]]:
    """Cut a stream of events into batches that may be held in memory and indexed at once."""
    batch: list[Envelope] = []
    size = 0
    for envelope in envelopes:
        batch.append(envelope)
        size += len(envelope.header) + len(envelope.body or b"")
        if size >= BATCH_BYTES_MAX or len(batch) >= events_max:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def verified(envelope: Envelope) -> Event | None:
    """Return the event when it is what its id and its header promise, else None."""
    if len(envelope.header) > _HEADER_BYTES_MAX or len(envelope.signature) not in (0, SIGNATURE_BYTES):
        return None
    try:
        event = decode(envelope.header, envelope.body)
    except Bad:
        return None
    return event if event.id == envelope.id else None


class Door:
    """Takes in the events of others, under the ingester's lock and after recovery."""

    def __init__(self, home: Home, files: Files, clock: Clock, index: Projection) -> None:
        """Nothing is read or written yet."""
        self._files = files
        self._clock = clock
        self._index = index
        self._directory = str(home.received)
        self._open: tuple[SegmentHeader, str, int] | None = None  # header, name and size of the file in use

    def receive(self, envelopes: Iterable[Envelope], identity: Identity, renew: Callable[[], Identity]) -> Received:
        """Verify, write, sync and index events, batch by batch; return what became of them.

        ``renew`` gives this replica another name; it is called before anything of it is written that nobody here knew.
        Raises CannotWrite and what the index raises; then the batches before are in.
        """
        total = Received()
        for batch in in_batches(envelopes):
            found = self._sort(batch)
            if found.tells_more_of(identity.replica):
                identity = renew()
            if found.items:
                stored, end = self._write(found.items, identity)
                self._index.apply(stored, end, self._clock.wall_ms())
            total = total.plus(found.tally)
        return total

    def _sort(self, batch: Sequence[Envelope]) -> _Sorted:
        """Verify a batch and leave out what is known."""
        once: dict[bytes, _Item] = {}
        bad = 0
        for envelope in batch:
            event = verified(envelope)
            if event is None:
                bad += 1
                continue
            kept = once.get(event.id)
            if kept is None or (kept.envelope.body is None and envelope.body is not None):
                once[event.id] = _Item(event, envelope)
        known = self._index.bodies(once.keys())
        items = [item for item in once.values() if self._is_wanted(item, known)]
        refused = self._index.refused([item.event for item in items if item.envelope.body is not None])
        # What is known already is left as it is; only what is new is kept without the body that is erased here.
        items = [
            _stripped(item) if item.event.id in refused else item
            for item in items
            if item.event.id not in refused or item.event.id not in known
        ]
        items.sort(key=lambda item: item.event.order)
        bodies = sum(item.event.id in known for item in items)
        tally = Received(len(items) - bodies, bodies, len(batch) - bad - len(items), bad, len(refused))
        return _Sorted(items, frozenset(item.event.id for item in items if item.event.id not in known), tally)

    @staticmethod
    def _is_wanted(item: _Item, known: Mapping[bytes, bool]) -> bool:
        settled = known.get(item.event.id)
        return settled is None or (not settled and item.envelope.body is not None)

    def _write(self, items: Sequence[_Item], identity: Identity) -> tuple[list[Stored], dict[str, int]]:
        try:
            segment = self._segment(identity)
        except OSError as error:
            raise CannotWrite(path=self._directory, detail=error.strerror or str(error)) from error
        self._open = None
        frames = [_frame(segment.marker, item.envelope) for item in items]
        try:
            offset = segment.append(b"".join(frames))
            segment.sync()
        except OSError as error:
            # Nobody knows which of the bytes arrived. The events come again; this file takes no more.
            with contextlib.suppress(OSError):
                segment.rollback()
                segment.seal()
            raise CannotWrite(path=segment.path, detail=error.strerror or str(error)) from error
        finally:
            with contextlib.suppress(OSError):
                segment.close()
        self._open = (segment.header, segment.name, segment.size)
        file = f"{RECEIVED}/{segment.name}"
        stored = []
        for item, frame in zip(items, frames, strict=True):
            stored.append(Stored(item.event, file, offset, len(frame), item.envelope.body is None))
            offset += len(frame)
        return stored, {file: segment.size}

    # -- the file ---------------------------------------------------------------------------------------------------

    def _segment(self, identity: Identity) -> SegmentWriter:
        """Return a file with room whose end is sound. Raises OSError."""
        sizes = self._files.sizes(self._directory)
        found, self._open = self._open, None
        if found is None or sizes.get(found[1]) != found[2]:
            found = self._unsealed(sizes)
        if found is not None:
            header, name, size = found
            segment = SegmentWriter.resume(self._files, f"{self._directory}/{name}", header, size)
            if size < SEGMENT_BYTES_MAX - BATCH_BYTES_MAX:
                return segment
            segment.seal()
        header = fresh_header(identity.store, identity.replica, random_id(), 1, self._clock.wall_ms())
        return SegmentWriter.create(self._files, self._directory, header)

    def _unsealed(self, sizes: Mapping[str, int]) -> tuple[SegmentHeader, str, int] | None:
        """Return a file that can be gone on with; others that nobody sealed are sealed now.

        One without an event is left alone: its name need not be durable.
        """
        found = None
        for name, size in sorted(sizes.items()):
            if not name.endswith(SUFFIX) or not HEADER_BYTES < size < SEGMENT_BYTES_MAX:
                continue
            path = f"{self._directory}/{name}"
            try:
                header = parse_header(self._files.read(path, HEADER_BYTES))
                frame = last_frame(self._files, path, size, header.marker) if header is not None else None
                if header is None or (frame is not None and frame.type == FOOTER):
                    continue
                if frame is not None and found is None:
                    found = (header, name, size)
                else:
                    self._seal(path)
            except OSError:
                continue  # whoever reads it will say what is wrong with it
        return found

    def _seal(self, path: str) -> None:
        handle = self._files.reopen(path)
        try:
            seal(self._files, path, handle)
        finally:
            self._files.close(handle)


def _stripped(item: _Item) -> _Item:
    envelope = item.envelope._replace(body=None)
    return _Item(decode(envelope.header, None), envelope)


def _frame(marker: bytes, envelope: Envelope) -> bytes:
    flags = (ERASED if envelope.body is None else 0) | (SIGNED if envelope.signature else 0)
    return pack_frame(marker, EVENT, flags, envelope.header, envelope.body or b"", envelope.signature)
