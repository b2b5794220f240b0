"""Taking bodies out of files of the log, for an erasure: the one case in which a file of it is written anew.

A frame keeps its place, its length, its header and its signature, so whatever knows where it lies goes on knowing it,
and chains, counts and digests stay as they are. At any moment there is the old file or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from memorize.errors import CannotRead, CannotWrite
from memorize.ids import event_id
from memorize.log.files import Files, write_all
from memorize.log.frames import ERASED, EVENT, PREFIX_BYTES, TRAILER_BYTES, Frame, pack_frame
from memorize.log.segments import RECEIVED, SEGMENTS, SUFFIX, scan_segment
from memorize.paths import Home

BESIDE: Final = ".new"
LOCK_WAIT_S: Final = 5.0
_FOLDERS: Final = (SEGMENTS, RECEIVED)

# File name -> (offset, length) of frames.
Spots = Mapping[str, Sequence[tuple[int, int]]]


class Scrubbed(NamedTuple):
    """How many bodies were taken out of how many files."""

    bodies: int
    files: int


def without_bodies(data: bytes, ids: Collection[bytes], spots: Iterable[tuple[int, int]] = ()) -> tuple[bytes, int]:
    """Return a file's bytes without the bodies of these events, and how many were there.

    ``spots`` are places where such an event was once known to lie: one that is damaged now is emptied, too.
    """
    frames = scan_segment(data).frames
    made = bytearray(data)
    taken = 0
    for frame in frames:
        if frame.type == EVENT and not frame.flags & ERASED and event_id(frame.header) in ids:
            made[frame.offset : frame.offset + frame.length] = _emptied(data, frame)
            taken += 1
    starts = {frame.offset for frame in frames}
    for offset, length in spots:
        if offset in starts:
            continue
        start, end = offset + PREFIX_BYTES, offset + length - TRAILER_BYTES
        whole = any(frame.offset < offset + length and frame.offset + frame.length > offset for frame in frames)
        if not whole and end <= len(data) and data[start:end].strip(b"\0"):
            # The lengths at both ends stay, so that it is still seen as a damaged frame and not as a torn end.
            made[start:end] = bytes(end - start)
            taken += 1
    return bytes(made), taken


def _emptied(data: bytes, frame: Frame) -> bytes:
    marker = data[frame.offset : frame.offset + 8]
    empty = bytes(len(frame.body))
    return pack_frame(marker, EVENT, frame.flags | ERASED, frame.header, empty, frame.signature)


def scrub(home: Home, files: Files, ids: Collection[bytes], spots: Spots, wait_s: float = LOCK_WAIT_S) -> Scrubbed:
    """Take the bodies of these events out of every file of the log; return when none is there any more, durably.

    All files are looked through, because a copied file may hold an event a second time. The ingester's lock is held
    for one file at a time. Raises Busy, CannotRead and CannotWrite: then some files are done, and the rest is as it
    was.
    """
    bodies = done = 0
    with files.lock(f"{home.root}/locks/ingest", wait_s):
        names = _clear(home, files)
    for name in names:
        path, known = f"{home.root}/{name}", spots.get(name, ())
        if not _without(files, path, ids, known)[1]:
            continue
        with files.lock(f"{home.root}/locks/ingest", wait_s):
            taken = _rewrite(files, path, ids, known)
        bodies, done = bodies + taken, done + (taken > 0)
    for folder in _FOLDERS:
        # Also of what an earlier attempt renamed and could not make durable.
        try:
            files.sync_dir(f"{home.root}/{folder}")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CannotWrite(path=f"{home.root}/{folder}", detail=error.strerror or str(error)) from error
    return Scrubbed(bodies, done)


def _clear(home: Home, files: Files) -> list[str]:
    """Remove what an attempt left that was cut short, and return the names of the files. Under the lock."""
    found: list[str] = []
    for folder in _FOLDERS:
        directory = f"{home.root}/{folder}"
        try:
            names = files.names(directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CannotRead(path=directory, detail=error.strerror or str(error)) from error
        for name in names:
            if name.endswith(SUFFIX + BESIDE):
                try:
                    files.unlink(f"{directory}/{name}")
                except OSError as error:
                    raise CannotWrite(path=f"{directory}/{name}", detail=error.strerror or str(error)) from error
        found += [f"{folder}/{name}" for name in names if name.endswith(SUFFIX)]
    return sorted(found)


def _without(files: Files, path: str, ids: Collection[bytes], spots: Iterable[tuple[int, int]]) -> tuple[bytes, int]:
    try:
        data = files.pread(path, 0, -1)
    except FileNotFoundError:
        return b"", 0  # the index will miss it
    except OSError as error:
        raise CannotRead(path=path, detail=error.strerror or str(error)) from error
    return without_bodies(data, ids, spots)


def _rewrite(files: Files, path: str, ids: Collection[bytes], spots: Iterable[tuple[int, int]]) -> int:
    """Put a file without the bodies in the place of the file. Its name is made durable by the caller."""
    made, taken = _without(files, path, ids, spots)
    if not taken:
        return 0
    beside = path + BESIDE
    try:
        try:
            handle = files.create(beside)
            try:
                write_all(files, handle, made)
                # By it a rebuild tells when events were received.
                files.touch(beside, files.modified_ms(path))
                files.fsync(handle)
            finally:
                files.close(handle)
            if files.pread(beside, 0, -1) != made:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            files.rename(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                files.unlink(beside)
            raise
    except OSError as error:
        raise CannotWrite(path=path, detail=error.strerror or str(error)) from error
    return taken
