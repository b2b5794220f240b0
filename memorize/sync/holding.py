"""The events of this state directory, as exchange asks for them: answered from the index, read from the segments."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from memorize.ids import event_id
from memorize.index import holdings
from memorize.log.files import Files
from memorize.log.frames import ERASED, EVENT, MARKER_BYTES, parse_frame
from memorize.model import Envelope, Key, Received
from memorize.paths import Home
from memorize.sync.port import Head, SetDigest, Span

# So many events are looked up, and read, at once.
_PAGE: Final = 512
# Frames that lie closer than this are read together, at most so much at once.
_GAP_BYTES: Final = 16 * 1024
_READ_BYTES_MAX: Final = 1024 * 1024


class StoreHolding:
    """``port.Holding`` on an index and a log. Every question raises what the index raises.

    An event whose frame is damaged, or gone since it was looked up, is left out of what is returned.
    """

    def __init__(
        self,
        home: Home,
        files: Files,
        connect: Callable[[], sqlite3.Connection],
        receive: Callable[[Iterable[Envelope]], Received],
    ) -> None:
        """``connect`` returns a connection to the index as it is now; ``receive`` is the way into the log."""
        self._root = str(home.root)
        self._files = files
        self._connect = connect
        self.receive = receive

    def digest(self) -> SetDigest:
        """Return the set digest."""
        return SetDigest(*holdings.everything(self._connect()))

    def range_digest(self, low: Key, high: Key) -> SetDigest:
        """Return the digest of the events from ``low`` up to, not including, ``high``."""
        return SetDigest(*holdings.digest(self._connect(), low, high))

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        """Return the first ``limit`` keys of a range in ascending order."""
        return holdings.keys(self._connect(), low, high, limit)

    def bounds(self, low: Key, high: Key, parts: int) -> list[Key]:
        """Return at most ``parts - 1`` keys that cut a range into about equally large parts, ascending."""
        return holdings.bounds(self._connect(), low, high, parts)

    def heads(self) -> list[Head]:
        """Return the head of every writer whose events are held whole, in order of the writer."""
        return [Head(*row) for row in holdings.heads(self._connect())]

    def spans(self) -> Mapping[bytes, tuple[bytes, list[Span]]]:
        """Return writer -> (replica, runs of numbers that are held), for every writer. See ``twins``, too."""
        found = holdings.runs(self._connect())
        return {
            writer: (replica, [Span(writer, low, high) for low, high in runs])
            for writer, (replica, runs) in found.items()
        }

    def twins(self) -> list[Key]:
        """Return the keys of the events that share writer and number with another one; a span does not tell them apart.

        They come of a state directory that was copied or restored.
        """
        return holdings.twins(self._connect())

    def wanted(self) -> list[Key]:
        """Return the keys of the events of which only the header is known, though nobody erased them."""
        return holdings.wanted(self._connect())

    def after(self, head: Head, limit_bytes: int) -> list[Envelope]:
        """Return events of a writer after a head in order, at most about so many bytes of them and at least one.

        Empty when this replica does not hold exactly that event, or none after it. seq 0: from the beginning.
        """
        connection = self._connect()
        if head.seq and not holdings.holds(connection, head.writer, head.seq, head.id):
            return []
        found: list[Envelope] = []
        for envelope in self._of_run(head.writer, head.seq + 1, 2**63):
            found.append(envelope)
            limit_bytes -= len(envelope.header) + len(envelope.body or b"")
            if limit_bytes <= 0:
                break
        return found

    def of_spans(self, spans: Sequence[Span]) -> Iterator[Envelope]:
        """Return the events in these runs, twins included, by number, then by (lamport, id)."""
        for writer, low, high in spans:
            yield from self._of_run(writer, low, high)

    def _of_run(self, writer: bytes, low: int, high: int) -> Iterator[Envelope]:
        while True:
            found = holdings.frames_of(self._connect(), writer, low, high, _PAGE)
            if len(found) == _PAGE:
                # The last number may go on: a page ends before it, unless it is all of one number.
                whole = [frame for frame in found if frame.seq < found[-1].seq]
                last = found[-1].seq
                found = whole or holdings.frames_of(self._connect(), writer, last, last, 2**31)
                yield from self._read(found)
                low = last if whole else last + 1
                continue
            yield from self._read(found)
            return

    def get(self, ids: Iterable[bytes]) -> Iterator[Envelope]:
        """Return these events as far as they are held."""
        waiting = iter(ids)
        while page := list(islice(waiting, _PAGE)):
            yield from self._read(holdings.frames(self._connect(), page))

    def own(self, writers: Collection[bytes]) -> frozenset[bytes]:
        """Return those of the writers whose events this state directory wrote itself, in whatever incarnation."""
        return holdings.own(self._connect()) & frozenset(writers)

    # -- the log ----------------------------------------------------------------------------------------------------

    def _read(self, frames: Sequence[holdings.Frame]) -> Iterator[Envelope]:
        """Read frames and return their events in the given order."""
        found: dict[bytes, Envelope] = {}
        for block in _blocks(frames):
            found.update(self._block(block))
        return (found[frame.id] for frame in frames if frame.id in found)

    def _block(self, block: Sequence[holdings.Frame]) -> Iterator[tuple[bytes, Envelope]]:
        """Read frames of one file that lie close together."""
        start = block[0].offset
        end = block[-1].offset + block[-1].length
        try:
            data = self._files.pread(f"{self._root}/{block[0].file}", start, end - start)
        except OSError:
            return
        for place in block:
            at = place.offset - start
            frame = parse_frame(data, at, data[at : at + MARKER_BYTES])
            if frame is None or frame.type != EVENT or event_id(frame.header) != place.id:
                continue
            body = None if place.erased or frame.flags & ERASED else frame.body
            yield place.id, Envelope(place.id, place.lamport, frame.header, body, frame.signature)


def _blocks(frames: Iterable[holdings.Frame]) -> Iterator[list[holdings.Frame]]:
    """Bundle frames that can be read with one call."""
    block: list[holdings.Frame] = []
    for frame in sorted(frames, key=lambda one: (one.file, one.offset)):
        if block:
            last = block[-1]
            near = frame.file == last.file and frame.offset - last.offset - last.length <= _GAP_BYTES
            if not near or frame.offset + frame.length - block[0].offset > _READ_BYTES_MAX:
                yield block
                block = []
        block.append(frame)
    if block:
        yield block
