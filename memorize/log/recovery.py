"""What a run of the ingester does first: index what is on disk and not indexed, and find the end of the own chain.

It never makes the set of readable events smaller: only the remains of an append that was cut short are removed, and
only at the end of an own segment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from memorize.clock import Clock
from memorize.errors import Busy, CannotRead, CannotWrite, IndexDamaged
from memorize.log.chain import Link
from memorize.log.codec import Bad
from memorize.log.files import Files
from memorize.log.frames import ERASED, EVENT, FOOTER, Damage, Frame
from memorize.log.identity import Identity, make_dirs, note_progress, renew_replica, renew_writer
from memorize.log.segments import (
    HEADER_BYTES,
    RECEIVED,
    SEGMENTS,
    SUFFIX,
    SegmentHeader,
    SegmentScan,
    SegmentWriter,
    frame_event,
    last_frame,
    parse_header,
    read_segment,
    seal,
)
from memorize.model import Event, Stored
from memorize.paths import Home

# One transaction of the index; a whole segment at once would be felt by readers.
CHUNK_EVENTS_MAX: Final = 4096


class IndexAhead(Exception):  # noqa: N818 - a state of the index, not a mistake
    """The index knows more of a file than there is: a part of the log was lost. Rebuild the index, then run again.

    The replica was renewed when the file is an own one, so that no number is given out twice.
    """

    def __init__(self, file: str, offset: int, size: int) -> None:
        """Name the file, the offset that is indexed and the size that it has (0 when it is gone)."""
        super().__init__(f"{file} is indexed up to {offset} but has {size} bytes")
        self.file = file
        self.offset = offset
        self.size = size


class Index(Protocol):
    """The part of the projection that recovery needs."""

    def offsets(self) -> Mapping[str, int]:
        """Return file name -> indexed end offset."""
        ...

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        """Index events and advance offsets in one transaction."""
        ...


class Recovered(NamedTuple):
    """The state to go on from. ``active`` is None when the next event needs a new segment."""

    identity: Identity
    active: SegmentWriter | None
    link: Link
    events: int
    damages: list[tuple[str, Damage]]
    unreadable: list[str]


class Recovery:
    """One look at the disk, under the lock of the ingester."""

    def __init__(self, home: Home, files: Files, clock: Clock, index: Index) -> None:
        """Nothing is read before ``run``."""
        self._home = home
        self._files = files
        self._clock = clock
        self._index = index
        self._events = 0
        self._damages: list[tuple[str, Damage]] = []
        self._unreadable: list[str] = []

    def run(self, identity: Identity, kept: SegmentWriter | None) -> Recovered:
        """Index what is new on disk and return where the chain goes on.

        ``kept`` is the segment that this process still has open; it is returned when nobody else has touched it.
        Raises CannotRead, CannotWrite, IndexAhead, and what the index raises.
        """
        sizes = self._sizes()
        offsets = dict(self._index.offsets())
        self._check_not_ahead(identity, sizes, offsets)
        for name in sorted(sizes):
            if offsets.get(name, 0) < sizes[name]:
                sizes[name] = self._catch_up(name, offsets.get(name, 0), sizes[name])
        identity, active, link = self._resume(identity, sizes, kept)
        if not identity.swept:
            identity = self._seal_others(identity, sizes, active)
        return Recovered(identity, active, link, self._events, self._damages, self._unreadable)

    # -- the index ------------------------------------------------------------------------------------------------

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for folder in (SEGMENTS, RECEIVED):
            directory = f"{self._home.root}/{folder}"
            try:
                found = self._files.sizes(directory)
            except FileNotFoundError:
                # Somebody removed the folder; what the index knows of it makes the caller rebuild.
                make_dirs(self._home, self._files)
                found = {}
            except OSError as error:
                raise CannotRead(path=directory, detail=error.strerror or str(error)) from error
            sizes |= {f"{folder}/{name}": size for name, size in found.items() if name.endswith(SUFFIX)}
        return sizes

    def _check_not_ahead(self, identity: Identity, sizes: Mapping[str, int], offsets: Mapping[str, int]) -> None:
        for name, offset in offsets.items():
            size = sizes.get(name, 0)
            if offset > size:
                if name.startswith(f"{SEGMENTS}/{identity.writer.hex()}-"):
                    self._renew(identity, "its segment is shorter than it was", replica=True)
                raise IndexAhead(name, offset, size)

    def _catch_up(self, name: str, done: int, size: int) -> int:
        """Index what follows ``done`` in a file; return the size that the file has then."""
        own = name.startswith(SEGMENTS)
        try:
            found = self._read(name, done)
            if size <= HEADER_BYTES and (found.header is None or not own):
                return size  # its creation was cut short; it holds nothing
            if done > HEADER_BYTES:
                self._check_place(name, found, done)
            size = self._settle(name, found, size)
        except (CannotRead, CannotWrite):
            # An input error is never the end of a file. A received file must not stop the own captures.
            if own:
                raise
            self._unreadable.append(name)
            return size
        self._damages += [(name, damage) for damage in found.damages]
        self._apply(name, found.frames, size)
        return size

    def _read(self, name: str, start: int = 0) -> SegmentScan:
        path = f"{self._home.root}/{name}"
        try:
            return read_segment(self._files, path, start)
        except OSError as error:
            raise CannotRead(path=path, detail=error.strerror or str(error)) from error

    def _check_place(self, name: str, found: SegmentScan, done: int) -> None:
        """Never trust a place to which the index is said to reach when what follows looks wrong: look at the whole.

        A damaged index must not have sound events taken for the remains of a cut one.
        """
        if not found.torn and not (found.damages and found.damages[0].offset == done):
            return
        whole = self._read(name)
        places = {frame.offset for frame in whole.frames} | {damage.offset for damage in whole.damages} | {whole.end}
        if done not in places and done != whole.footer_at:
            raise IndexDamaged(path=self._home.index, detail=f"it ends at {done} of {name}, where nothing begins")

    def _settle(self, name: str, found: SegmentScan, size: int) -> int:
        """Cut what a crash left at the end of a file and make the rest durable, before anybody relies on it."""
        path, own = f"{self._home.root}/{name}", name.startswith(SEGMENTS)
        try:
            handle = self._files.reopen(path)
            try:
                if found.torn and found.footer_at < 0 and (own or found.header is not None):
                    size -= found.torn
                    self._files.truncate(handle, size)
                self._files.fdatasync(handle)
            finally:
                self._files.close(handle)
            if own:
                # Whoever made the file may have died before its name was durable. Received ones have events only then.
                self._files.sync_dir(f"{self._home.root}/{SEGMENTS}")
        except OSError as error:
            raise CannotWrite(path=path, detail=error.strerror or str(error)) from error
        return size

    def _apply(self, name: str, frames: Sequence[Frame], end: int) -> None:
        received = self._clock.wall_ms()
        stored: list[Stored] = []
        for frame in frames:
            if frame.type != EVENT:
                continue
            try:
                bare = bool(frame.flags & ERASED)
                stored.append(Stored(frame_event(frame), name, frame.offset, frame.length, bare))
            except Bad as error:
                self._damages.append((name, Damage(frame.offset, frame.length, str(error))))
            if len(stored) >= CHUNK_EVENTS_MAX:
                self._index.apply(stored, {name: frame.offset + frame.length}, received)
                self._events += len(stored)
                stored = []
        self._index.apply(stored, {name: end}, received)
        self._events += len(stored)

    # -- the own chain --------------------------------------------------------------------------------------------

    def _resume(
        self, identity: Identity, sizes: Mapping[str, int], kept: SegmentWriter | None
    ) -> tuple[Identity, SegmentWriter | None, Link]:
        """Find the end of the writer's chain; whatever looks wrong there costs the writer, never an event."""
        if identity.active and f"{SEGMENTS}/{identity.active}" not in sizes:
            why = "the segment of this replica is gone"
            return self._renew(identity, why, replica=True), None, Link(0, b"", 0)
        names = sorted(name for name in sizes if name.startswith(f"{SEGMENTS}/{identity.writer.hex()}-"))
        if not names:
            return identity, None, Link(0, b"", 0)
        name = names[-1]
        path = f"{self._home.root}/{name}"
        try:
            if kept is not None and f"{SEGMENTS}/{kept.name}" == name and kept.is_there(sizes[name]):
                return identity, kept, Link(0, b"", 0)
            return self._end_of(identity, path, sizes[name])
        except OSError as error:
            raise CannotRead(path=path, detail=error.strerror or str(error)) from error

    def _end_of(self, identity: Identity, path: str, size: int) -> tuple[Identity, SegmentWriter | None, Link]:
        none = Link(0, b"", 0)
        header = parse_header(self._files.read(path, HEADER_BYTES))
        if header is None or header.writer != identity.writer:
            return self._renew(identity, "the header of its segment is damaged"), None, none
        if size == HEADER_BYTES:
            if identity.seq + 1 != header.first_seq:
                return self._renew(identity, "a new segment was not finished"), None, none
            link = Link(identity.seq, identity.last, 0)
            return identity, SegmentWriter.resume(self._files, path, header, size), link
        last, sealed = self._last_event(path, size, header)
        if last is None or last.header.writer != identity.writer:
            return self._renew(identity, "the end of its segment is damaged"), None, none
        if last.header.seq < identity.seq:
            return self._renew(identity, "its last events are gone", replica=True), None, none
        link = Link(last.header.seq, last.id, 0)
        active = None if sealed else SegmentWriter.resume(self._files, path, header, size)
        return identity, active, link

    def _last_event(self, path: str, size: int, header: SegmentHeader) -> tuple[Event | None, bool]:
        """Walk back over the footer and unknown frames to the last event; None when there is damage between."""
        end, sealed = size, False
        while end > HEADER_BYTES:
            frame = last_frame(self._files, path, end, header.marker)
            if frame is None:
                return None, sealed
            if frame.type == EVENT:
                with contextlib.suppress(Bad):
                    return frame_event(frame), sealed
                return None, sealed
            sealed = sealed or frame.type == FOOTER
            end = frame.offset
        return None, sealed

    def _renew(self, identity: Identity, why: str, replica: bool = False) -> Identity:
        renew = renew_replica if replica else renew_writer
        try:
            return renew(self._home, self._files, self._clock, identity, why)
        except OSError as error:
            raise CannotWrite(path=str(self._home.identity), detail=error.strerror or str(error)) from error

    def _seal_others(self, identity: Identity, sizes: Mapping[str, int], active: SegmentWriter | None) -> Identity:
        """Seal what earlier writers left open. What cannot be sealed now is tried again by the next run."""
        try:
            for name, size in sizes.items():
                if name.startswith(SEGMENTS) and (active is None or name != f"{SEGMENTS}/{active.name}"):
                    self._seal(f"{self._home.root}/{name}", size)
            swept = identity._replace(swept=True)
            note_progress(self._home, self._files, swept)
        except (OSError, Busy):
            return identity
        return swept

    def _seal(self, path: str, size: int) -> None:
        header = parse_header(self._files.read(path, HEADER_BYTES))
        if header is None:
            if size <= HEADER_BYTES:
                # Its creation was cut short: a segment gets its first event only after its header is durable.
                self._files.unlink(path)
            return
        frame = last_frame(self._files, path, size, header.marker)
        if frame is not None and frame.type == FOOTER:
            return
        handle = self._files.reopen(path)
        try:
            seal(self._files, path, handle)
        finally:
            self._files.close(handle)
