"""Segments: append-only files of frames with a header of 96 bytes and, once they are sealed, a footer (docs/format.md).

A sealed segment is never opened for writing again, a name is never used twice, and nothing is preallocated.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterable
from typing import Final, NamedTuple
from zlib import crc32

import msgpack

from memorize.errors import CannotRead
from memorize.ids import event_id
from memorize.limits import FORMAT
from memorize.log.codec import Bad, decode
from memorize.log.files import Files, RealFiles, write_all
from memorize.log.frames import (
    ERASED,
    EVENT,
    FOOTER,
    FRAME_BYTES_MAX,
    MARKER_BYTES,
    PREFIX_BYTES,
    TRAILER_BYTES,
    Damage,
    Frame,
    Scan,
    frame_at_end,
    marker_at_end,
    pack_frame,
    parse_frame,
    scan,
)
from memorize.model import Event

HEADER_BYTES: Final = 96
MAGIC: Final = b"MZSEG\r\n\x1a"
SUFFIX: Final = ".mzs"
SEGMENTS: Final = "segments"
RECEIVED: Final = "received"

_HEADER: Final = struct.Struct(">8sHHHH16s16s16sQ8sQ4xI")
_ID_SPACE: Final = 2**256
_TAIL_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 1024 * 1024  # read at once while a segment is sealed
_FILES: Final = RealFiles()


class SegmentHeader(NamedTuple):
    """The first 96 bytes. ``created`` is wall time in ms, only for sealing by age."""

    format: int
    store: bytes
    replica: bytes
    writer: bytes
    first_seq: int
    marker: bytes
    created: int


class Footer(NamedTuple):
    """What a sealed segment says of itself. ``digest`` is the sum of the event ids mod 2^256: erasure keeps it."""

    events: int
    first_seq: int
    last_seq: int
    digest: bytes


class SegmentScan(NamedTuple):
    """A segment as read. ``header`` is None when it is damaged; events are found all the same.

    ``frames`` leaves the footer out; ``footer_at`` is its offset, -1 in an unsealed file. For ``end`` and ``torn`` see
    ``frames.Scan``.
    """

    header: SegmentHeader | None
    frames: list[Frame]
    damages: list[Damage]
    end: int
    torn: int
    footer: Footer | None
    footer_at: int


def segment_name(writer: bytes, first_seq: int) -> str:
    """Return the name of the segment of this writer that begins with this number."""
    return f"{writer.hex()}-{first_seq:08x}{SUFFIX}"


def pack_header(header: SegmentHeader) -> bytes:
    """Return the 96 bytes of a segment header."""
    raw = _HEADER.pack(
        MAGIC,
        header.format,
        HEADER_BYTES,
        PREFIX_BYTES,
        TRAILER_BYTES,
        header.store,
        header.replica,
        header.writer,
        header.first_seq,
        header.marker,
        header.created,
        0,
    )
    return raw[:-4] + struct.pack(">I", crc32(raw[:-4]))


def parse_header(data: bytes) -> SegmentHeader | None:
    """Return the header at the beginning of ``data``, or None when there is no undamaged one."""
    if len(data) < HEADER_BYTES:
        return None
    magic, number, *_, store, replica, writer, first_seq, marker, created, crc = _HEADER.unpack_from(data)
    if magic != MAGIC or crc32(data[: HEADER_BYTES - 4]) != crc:
        return None
    return SegmentHeader(number, store, replica, writer, first_seq, marker, created)


def scan_segment(data: bytes) -> SegmentScan:
    """Return everything that a whole segment file holds. Never raises."""
    header = parse_header(data)
    damages: list[Damage] = []
    if header is not None:
        found = scan(data, header.marker, HEADER_BYTES)
    else:
        damages.append(Damage(0, min(len(data), HEADER_BYTES), "segment header"))
        found = _scan_without_header(data)
    return _finish(header, damages, found, len(data))


def read_segment(files: Files, path: str, start: int = 0) -> SegmentScan:
    """Return what the segment at ``path`` holds from ``start`` on. Raises OSError.

    ``start`` must be 0 or the offset of a frame; the answer then tells nothing of what lies before it.
    """
    if start <= HEADER_BYTES:
        return scan_segment(files.pread(path, 0, -1))
    header = parse_header(files.pread(path, 0, HEADER_BYTES))
    if header is None:
        whole = scan_segment(files.pread(path, 0, -1))
        return whole._replace(
            frames=[frame for frame in whole.frames if frame.offset >= start],
            damages=[damage for damage in whole.damages if damage.offset >= start],
        )
    data = files.pread(path, start, -1)
    return _finish(header, [], scan(data, header.marker, 0, start), start + len(data))


def read_event(path: str | os.PathLike[str], offset: int, length: int, files: Files = _FILES) -> Event:
    """Return the event whose frame lies at ``offset``. Raises CannotRead when it cannot be read, Bad when damaged."""
    name = os.fspath(path)
    if offset < 0 or not 0 < length <= FRAME_BYTES_MAX:
        raise Bad(f"no event at {offset} of {name}")
    try:
        data = files.pread(name, offset, length)
    except OSError as error:
        raise CannotRead(path=name, detail=error.strerror or str(error)) from error
    frame = parse_frame(data, 0, data[:MARKER_BYTES])
    if frame is None or frame.length != length or frame.type != EVENT:
        raise Bad(f"no event at {offset} of {name}")
    return frame_event(frame)


def frame_event(frame: Frame) -> Event:
    """Return the event in a frame. Raises Bad when it does not verify."""
    return decode(frame.header, None if frame.flags & ERASED else frame.body)


def last_frame(files: Files, path: str, size: int, marker: bytes) -> Frame | None:
    """Return the last frame of a file of ``size`` bytes without reading the rest; None when its end is damaged."""
    wanted = min(_TAIL_BYTES, size - HEADER_BYTES)
    frame = frame_at_end(files.pread(path, size - wanted, wanted), marker, size - wanted)
    if frame is None and wanted < size - HEADER_BYTES:
        wanted = min(FRAME_BYTES_MAX, size - HEADER_BYTES)
        frame = frame_at_end(files.pread(path, size - wanted, wanted), marker, size - wanted)
    return frame


def make_footer(ids: Iterable[bytes], first_seq: int, last_seq: int) -> Footer:
    """Return the footer for a segment with these event ids."""
    count = total = 0
    for identity in ids:
        count += 1
        total += int.from_bytes(identity, "big")
    return Footer(count, first_seq, last_seq, (total % _ID_SPACE).to_bytes(32, "big"))


def pack_footer(marker: bytes, footer: Footer) -> bytes:
    """Return the frame of a footer."""
    fields = {0: footer.events, 1: footer.first_seq, 2: footer.last_seq, 3: footer.digest}
    return pack_frame(marker, FOOTER, 0, msgpack.packb(fields), b"")


def parse_footer(raw: bytes) -> Footer | None:
    """Return the footer in the header of a footer frame, or None when it is not readable."""
    try:
        fields = msgpack.unpackb(raw, raw=False, strict_map_key=False)
        count, first_seq, last_seq, digest = (fields[key] for key in range(4))
    except (ValueError, TypeError, KeyError, msgpack.UnpackException):
        return None
    if not (type(count) is type(first_seq) is type(last_seq) is int and type(digest) is bytes):
        return None
    return Footer(count, first_seq, last_seq, digest)


def _scan_without_header(data: bytes) -> Scan:
    """Try the markers that the file can still show, and keep the one with which most of it can be read."""
    candidates = {
        data[72:80],
        data[HEADER_BYTES : HEADER_BYTES + MARKER_BYTES],
        marker_at_end(data),
    }
    scans = [scan(data, marker, HEADER_BYTES) for marker in sorted(candidates) if len(marker) == MARKER_BYTES]
    whole = Scan([], [Damage(HEADER_BYTES, len(data) - HEADER_BYTES, "no frame")], HEADER_BYTES, 0)
    if len(data) <= HEADER_BYTES:
        whole = Scan([], [], len(data), 0)
    return max([*scans, whole], key=lambda found: (len(found.frames), found is whole))


def _finish(header: SegmentHeader | None, damages: list[Damage], found: Scan, size: int) -> SegmentScan:
    footer, footer_at = None, -1
    frames = found.frames
    for at, frame in enumerate(frames):
        if frame.type == FOOTER:
            footer, footer_at = parse_footer(frame.header), frame.offset
            end = frame.offset + frame.length
            if end < size:
                damages = [*damages, Damage(end, size - end, "bytes after the footer")]
                found = found._replace(torn=0, damages=[d for d in found.damages if d.offset < end])
            frames = frames[:at] + [late for late in frames[at + 1 :] if late.type != FOOTER]
            break
    return SegmentScan(header, frames, damages + found.damages, found.end, found.torn, footer, footer_at)


# -- writing ------------------------------------------------------------------------------------------------------


class SegmentWriter:
    """The active segment of a writer. Every method raises OSError; after that only ``rollback`` and ``close`` help."""

    def __init__(
        self, files: Files, path: str, header: SegmentHeader, handle: int, size: int, place: tuple[int, ...]
    ) -> None:
        """Take over an open file, which lies at this device and inode; ``create`` and ``resume`` make one."""
        self.files = files
        self.path = path
        self.header = header
        self.size = size
        self._synced = size
        self._handle = handle
        self._place = place

    @property
    def name(self) -> str:
        """The file's name."""
        return os.path.basename(self.path)  # noqa: PTH119

    @property
    def marker(self) -> bytes:
        """The 8 bytes with which every frame begins."""
        return self.header.marker

    def is_there(self, size: int) -> bool:
        """Tell whether the file is still the one that was opened, and of this size; an erasure puts another there."""
        return self.size == size and self.files.place(self.path)[:2] == self._place

    @classmethod
    def create(cls, files: Files, directory: str, header: SegmentHeader) -> SegmentWriter:
        """Create a segment and make it durable, so that its first event can rely on it."""
        path = f"{directory}/{segment_name(header.writer, header.first_seq)}"
        handle = files.create(path)
        try:
            write_all(files, handle, pack_header(header))
            files.fsync(handle)
            files.sync_dir(directory)
            place = files.place(path)[:2]
        except OSError:
            with contextlib.suppress(OSError):
                files.close(handle)
            with contextlib.suppress(OSError):
                files.unlink(path)
            raise
        return cls(files, path, header, handle, HEADER_BYTES, place)

    @classmethod
    def resume(cls, files: Files, path: str, header: SegmentHeader, size: int) -> SegmentWriter:
        """Go on with an unsealed segment whose last good frame ends at ``size``, which is its end."""
        place = files.place(path)[:2]
        return cls(files, path, header, files.reopen(path), size, place)

    def append(self, data: bytes) -> int:
        """Append frames with one call and return the offset at which they begin. Nothing is durable yet."""
        offset = self.size
        write_all(self.files, self._handle, data)
        self.size += len(data)
        return offset

    def sync(self) -> None:
        """Make everything appended durable."""
        self.files.fdatasync(self._handle)
        self._synced = self.size

    def rollback(self) -> None:
        """Cut the file back to what was durable before an append, a sync or a seal failed."""
        self.files.truncate(self._handle, self._synced)
        self.size = self._synced

    def seal(self) -> None:
        """Read the file once more, append its footer, make it durable and close it."""
        seal(self.files, self.path, self._handle)
        self.close()

    def close(self) -> None:
        """Close the file; an unsealed one can be resumed."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            self.files.close(handle)


def seal(files: Files, path: str, handle: int) -> None:
    """Append the footer to an open unsealed segment and make it durable. Raises OSError.

    The footer counts what can be read from the file now, so that it never promises what was lost before. The file is
    read in pieces as far as one frame follows the other, so that an undamaged one takes little memory.
    """
    header = parse_header(files.pread(path, 0, HEADER_BYTES))
    if header is None:
        return
    events = _Counted()
    at = _count(files, path, header.marker, events)
    data = files.pread(path, at, -1)
    rest = _finish(header, [], scan(data, header.marker, 0, at), at + len(data))
    if rest.footer_at >= 0:
        return
    if rest.torn:
        files.truncate(handle, at + len(data) - rest.torn)
    for frame in rest.frames:
        events.add(frame)
    write_all(files, handle, pack_footer(header.marker, events.footer()))
    files.fsync(handle)


class _Counted:
    """What a footer says, of the frames so far."""

    def __init__(self) -> None:
        self._ids: list[bytes] = []
        self._ends: list[Frame] = []  # the first and the last one

    def add(self, frame: Frame) -> None:
        if frame.type == EVENT:
            self._ids.append(event_id(frame.header))
            self._ends[1:] = [frame] if self._ends else []
            self._ends = self._ends or [frame]

    def footer(self) -> Footer:
        seqs = [number for frame in self._ends if (number := _seq(frame)) > 0]
        return make_footer(self._ids, min(seqs, default=0), max(seqs, default=0))


def _count(files: Files, path: str, marker: bytes, events: _Counted) -> int:
    """Add the frames that follow one another from the beginning, and return where something else does."""
    at, size = HEADER_BYTES, _PIECE_BYTES
    while True:
        data, pos = files.pread(path, at, size), 0
        while (frame := parse_frame(data, pos, marker)) is not None and frame.type != FOOTER:
            events.add(frame)
            pos += frame.length
        if pos:
            at, size = at + pos, _PIECE_BYTES
        elif len(data) == size < FRAME_BYTES_MAX:
            size = FRAME_BYTES_MAX  # it may be a large one
        else:
            return at


def _seq(frame: Frame) -> int:
    try:
        return frame_event(frame).header.seq
    except Bad:
        return 0


def fresh_header(store: bytes, replica: bytes, writer: bytes, first_seq: int, created: int) -> SegmentHeader:
    """Return the header of a new segment with a new random marker."""
    return SegmentHeader(FORMAT, store, replica, writer, first_seq, os.urandom(MARKER_BYTES), created)
