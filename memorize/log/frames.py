"""Frames: how events lie in a file, and how to find the next one after damage (docs/format.md).

``marker(8) total(4) type(1) flags(1) headerlen(2) crc32(4) header body total(4)``, big-endian. The crc covers every
byte of the frame but the marker and itself, so no single flipped bit can turn a frame into another one. The marker is
random for each file: no payload can contain it by accident.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from zlib import crc32

from memorize.limits import RELAY_BODY_BYTES_MAX, RELAY_HEADER_BYTES_MAX

MARKER_BYTES: Final = 8
PREFIX_BYTES: Final = 20
TRAILER_BYTES: Final = 4
OVERHEAD_BYTES: Final = PREFIX_BYTES + TRAILER_BYTES
SIGNATURE_BYTES: Final = 64
FRAME_BYTES_MAX: Final = OVERHEAD_BYTES + RELAY_HEADER_BYTES_MAX + RELAY_BODY_BYTES_MAX + SIGNATURE_BYTES

# Types. A reader keeps and skips what it does not know.
EVENT: Final = 1
FOOTER: Final = 2

# Flags.
ERASED: Final = 1  # the body is not there: zeros as long as it was, or nothing; the header still verifies
SIGNED: Final = 2  # the last 64 bytes before the trailer are an Ed25519 signature over the id

_PREFIX: Final = struct.Struct(">8sIBBHI")
_COVERED: Final = struct.Struct(">IBBH")
_U32: Final = struct.Struct(">I")


class Frame(NamedTuple):
    """One frame of a file. ``length`` is that of the whole frame."""

    offset: int
    length: int
    type: int
    flags: int
    header: bytes
    body: bytes
    signature: bytes = b""


class Damage(NamedTuple):
    """Bytes of a file that are no frame, though frames follow or were promised."""

    offset: int
    length: int
    reason: str


class Scan(NamedTuple):
    """What a stretch of a file holds. ``end`` is where the last good frame ends.

    ``torn`` is the number of bytes behind ``end`` that are the beginning of a frame cut short, or zeros: what a crash
    leaves of an append. Bytes at the end that are neither are damage.
    """

    frames: list[Frame]
    damages: list[Damage]
    end: int
    torn: int


def pack_frame(marker: bytes, kind: int, flags: int, header: bytes, body: bytes, signature: bytes = b"") -> bytes:
    """Return the bytes of a frame; ``signature`` is given exactly when ``flags`` has SIGNED."""
    total = OVERHEAD_BYTES + len(header) + len(body) + len(signature)
    covered, trailer = _COVERED.pack(total, kind, flags, len(header)), _U32.pack(total)
    crc = crc32(trailer, crc32(signature, crc32(body, crc32(header, crc32(covered)))))
    return b"".join((marker, covered, _U32.pack(crc), header, body, signature, trailer))


def parse_frame(data: bytes, pos: int, marker: bytes) -> Frame | None:
    """Return the frame at ``pos``, or None when there is no whole and undamaged one."""
    size = len(data)
    if pos + OVERHEAD_BYTES > size:
        return None
    found, total, kind, flags, header_len, crc = _PREFIX.unpack_from(data, pos)
    end = pos + total
    signature_len = SIGNATURE_BYTES if flags & SIGNED else 0
    if found != marker or end > size or not OVERHEAD_BYTES + header_len + signature_len <= total <= FRAME_BYTES_MAX:
        return None
    rest = data[pos + PREFIX_BYTES : end]
    if crc32(rest, crc32(data[pos + 8 : pos + 16])) != crc or _U32.unpack_from(data, end - TRAILER_BYTES)[0] != total:
        return None
    body_end = len(rest) - TRAILER_BYTES - signature_len
    signature = rest[body_end : body_end + signature_len] if signature_len else b""
    return Frame(pos, total, kind, flags, rest[:header_len], rest[header_len:body_end], signature)


def scan(data: bytes, marker: bytes, start: int = 0, base: int = 0) -> Scan:
    """Return every frame of ``data`` from ``start`` on; offsets in the answer count from ``base``. Never raises."""
    frames: list[Frame] = []
    damages: list[Damage] = []
    pos, size = start, len(data)
    while pos < size:
        frame = parse_frame(data, pos, marker)
        if frame is None:
            following = _next_frame(data, pos + 1, marker)
            if following < 0:
                break
            damages.append(Damage(base + pos, following - pos, _reason(data, pos, following, marker)))
            pos = following
            continue
        frames.append(frame._replace(offset=base + pos) if base else frame)
        pos += frame.length
    torn_at = _torn_at(data, pos, marker)
    if pos < torn_at:
        damages.append(Damage(base + pos, torn_at - pos, _reason(data, pos, torn_at, marker)))
    return Scan(frames, damages, base + pos, size - torn_at)


def marker_at_end(data: bytes) -> bytes:
    """Return the marker of the last frame, found by its trailing length; empty when the end is no frame."""
    if len(data) < OVERHEAD_BYTES:
        return b""
    pos = len(data) - _U32.unpack_from(data, len(data) - TRAILER_BYTES)[0]
    if pos < 0:
        return b""
    marker = data[pos : pos + MARKER_BYTES]
    frame = parse_frame(data, pos, marker)
    return marker if frame is not None and pos + frame.length == len(data) else b""


def frame_at_end(data: bytes, marker: bytes, base: int = 0) -> Frame | None:
    """Return the last frame of a file of which ``data`` is the end; None when the end is damaged or out of reach."""
    if len(data) < OVERHEAD_BYTES:
        return None
    pos = len(data) - _U32.unpack_from(data, len(data) - TRAILER_BYTES)[0]
    frame = parse_frame(data, pos, marker) if pos >= 0 else None
    if frame is None or pos + frame.length != len(data):
        return None
    return frame._replace(offset=base + pos)


def _next_frame(data: bytes, pos: int, marker: bytes) -> int:
    while (pos := data.find(marker, pos)) >= 0:
        if parse_frame(data, pos, marker) is not None:
            return pos
        pos += 1
    return -1


def _torn_at(data: bytes, pos: int, marker: bytes) -> int:
    """Return where the remains of a cut append begin; the size of ``data`` when its end is none."""
    size = len(data)
    if pos >= size:
        return size
    if _is_zero(data, pos):
        return pos
    at = pos
    while at >= 0:
        if _is_cut(data, at, marker):
            return at
        at = data.find(marker, at + 1)
    return size


def _is_cut(data: bytes, pos: int, marker: bytes) -> bool:
    left = len(data) - pos
    if left < MARKER_BYTES:
        return data[pos:] == marker[:left]
    if data[pos : pos + MARKER_BYTES] != marker:
        return False
    if left < MARKER_BYTES + 4:
        return True
    if left >= OVERHEAD_BYTES and _U32.unpack_from(data, len(data) - TRAILER_BYTES)[0] == left:
        return False  # a whole frame whose first length was damaged
    total = _U32.unpack_from(data, pos + MARKER_BYTES)[0]
    # The file may have grown before its bytes arrived: a cut frame can be filled up with zeros.
    return bool(total > left and total <= FRAME_BYTES_MAX)


def _is_zero(data: bytes, pos: int) -> bool:
    return not data[pos:].strip(b"\0")


def _reason(data: bytes, pos: int, end: int, marker: bytes) -> str:
    piece = data[pos:end]
    if not piece.strip(b"\0"):
        return "zeros"
    return "damaged frame" if piece.startswith(marker) else "no frame"
