"""Frames between peers (docs/format.md, "Peer protocol"): 4 bytes of length, a version byte, a msgpack array.

Whatever comes in is data of somebody else: it is a well-formed frame, or ``Garbled`` is raised and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgpack

from memorize.ids import ID_BYTES, RANDOM_BYTES, event_id
from memorize.limits import PEER_FRAME_BYTES_MAX, RELAY_BODY_BYTES_MAX, RELAY_HEADER_BYTES_MAX
from memorize.log.codec import K_LAMPORT, UNREADABLE
from memorize.sync.port import Envelope

VERSION: Final = 1

# Kinds of frames. Add, never change the meaning; a new one needs a capability.
HELLO: Final = 1
PROOF: Final = 2
ROUND: Final = 3
HEADS: Final = 4
RANGES: Final = 5
WANT: Final = 6
EVENTS: Final = 7
PACKED: Final = 8
PIECE: Final = 9
TURN: Final = 10
END: Final = 11
ERROR: Final = 12
NEWS: Final = 13

BUCKETS: Final = 256
BUCKET_BYTES: Final = 4
FINGERPRINT_BYTES: Final = 16
TEXT_CHARS_MAX: Final = 500
_PREFIX: Final = struct.Struct(">IB")
_INT_MAX: Final = 2**64 - 1
LAMPORT_MAX: Final = 2**63 - 1

_pack: Callable[[object], bytes] = msgpack.Packer(use_bin_type=True).pack


class Garbled(Exception):  # noqa: N818 - called for what it says of the bytes
    """These bytes are no frame of this protocol."""


class Frame(NamedTuple):
    """One frame. ``number`` counts the frames of its sender from 1; an error names the number that it answers."""

    kind: int
    number: int
    fields: tuple[Any, ...] = ()


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame."""
    body = _pack((frame.kind, frame.number, *frame.fields))
    return _PREFIX.pack(len(body) + 1, VERSION) + body


class Decoder:
    """Makes frames of bytes that come in pieces of any size."""

    def __init__(self, limit: int = PEER_FRAME_BYTES_MAX) -> None:
        self.limit = limit  # of the frames that are still to come; may be changed between two of them
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes in."""
        self._data += data

    def frames(self) -> Iterator[Frame]:
        """Yield the frames that are whole. Raises Garbled; what follows such bytes cannot be understood any more."""
        while len(self._data) >= _PREFIX.size:
            length, version = _PREFIX.unpack_from(self._data)
            if not 1 < length <= self.limit:
                raise Garbled(f"a frame of {length} bytes")
            if version != VERSION:
                raise Garbled(f"a frame of version {version}")
            if len(self._data) < length + 4:
                return
            raw = bytes(self._data[_PREFIX.size : length + 4])
            del self._data[: length + 4]
            yield parse(raw)


def parse(raw: bytes) -> Frame:
    """Return the frame in these bytes, without length and version. Fields that are not known yet are left out."""
    try:
        found = msgpack.unpackb(raw, raw=False, use_list=True, strict_map_key=False)
    except UNREADABLE as error:
        raise Garbled(f"not msgpack: {error}") from None
    if type(found) is not list or len(found) < 2 or not _is_count(found[0]) or not _is_count(found[1]):
        raise Garbled("no frame")
    kind, number, *fields = found
    shape = _SHAPES.get(kind)
    if shape is None:
        return Frame(kind, number)
    if len(fields) < len(shape) or not all(check(value) for check, value in zip(shape, fields, strict=False)):
        raise Garbled(f"a frame of kind {kind} with other fields than it should have")
    more = _LATER.get(kind, ())
    known = fields[len(shape) : len(shape) + len(more)]
    sound = len(known) == len(more) and all(check(value) for check, value in zip(more, known, strict=True))
    return Frame(kind, number, tuple(fields[: len(shape)] + (known if sound else [])))


# -- what fields are ----------------------------------------------------------------------------------------------


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _INT_MAX


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_text(value: object) -> bool:
    return type(value) is str and len(value) <= TEXT_CHARS_MAX


def _is_bytes(value: object) -> bool:
    return type(value) is bytes


def _sized(size: int) -> Callable[[object], bool]:
    return lambda value: type(value) is bytes and len(value) == size


_is_id = _sized(ID_BYTES)
_is_writer = _sized(RANDOM_BYTES)


def _all(check: Callable[[Any], bool]) -> Callable[[object], bool]:
    return lambda value: type(value) is list and all(check(item) for item in value)


def _is_head(value: object) -> bool:
    return (
        type(value) is list
        and len(value) == 3
        and _is_writer(value[0])
        and _is_count(value[1])
        and value[1] > 0
        and _is_id(value[2])
    )


def _is_range(value: object) -> bool:
    if type(value) is not list or len(value) != 3:
        return False
    step, prefix, told = value
    return (
        (step is None or _is_count(step))
        and type(prefix) is bytes
        and len(prefix) <= ID_BYTES
        and (told is None or (type(told) is bytes and len(told) == FINGERPRINT_BYTES) or _are_ids(told))
    )


_are_ids = _all(_is_id)


def _is_record(value: object) -> bool:
    return (
        type(value) is list
        and len(value) == 3
        and type(value[0]) is bytes
        and (value[1] is None or type(value[1]) is bytes)
        and type(value[2]) is bytes
    )


_SHAPES: Final[dict[int, tuple[Callable[[object], bool], ...]]] = {
    HELLO: (_is_bytes,),
    PROOF: (_is_id,),
    ROUND: (_is_count, _is_id, _sized(BUCKETS * BUCKET_BYTES)),
    HEADS: (_all(_is_head), _all(_is_writer)),
    RANGES: (_is_count, _is_bytes, _all(_is_range)),
    WANT: (_are_ids,),
    EVENTS: (_all(_is_record),),
    PACKED: (_is_bytes,),
    PIECE: (_is_bytes, _is_flag),
    TURN: (_is_flag, _is_count, _is_id),
    END: (_is_flag, _is_count, _is_id, _is_flag),
    ERROR: (_is_count, _is_text, _is_text),
    NEWS: (),
}

# Fields that came later, behind those: left out where the other side does not send them, or as something else.
_LATER: Final[dict[int, tuple[Callable[[object], bool], ...]]] = {PROOF: (_sized(RANDOM_BYTES),)}


# -- events -------------------------------------------------------------------------------------------------------

# An event may be larger than a frame: its record then goes in pieces. The record's own msgpack takes a few bytes more.
RECORD_BYTES_MAX: Final = RELAY_HEADER_BYTES_MAX + RELAY_BODY_BYTES_MAX + 1024
_RECORD_EXTRA: Final = 16


def weight(envelope: Envelope) -> int:
    """Return about how many bytes an event takes in a frame."""
    return len(envelope.header) + len(envelope.body or b"") + len(envelope.signature) + _RECORD_EXTRA


def record(envelope: Envelope) -> tuple[bytes, bytes | None, bytes]:
    """Return an event as it travels. Its id and place in the order are not told: whoever gets it finds them itself."""
    return (envelope.header, envelope.body, envelope.signature)


def envelope_of(fields: Sequence[Any]) -> Envelope:
    """Return the event of a record."""
    header, body, signature = fields
    return Envelope(event_id(header), _lamport(header), header, body, signature)


def _lamport(header: bytes) -> int:
    """Return the Lamport number as ``log.codec`` reads it; 0 when there is none that could be used."""
    try:
        fields = msgpack.unpackb(header, raw=False, strict_map_key=False)
        found = fields.get(K_LAMPORT, 0)
    except (*UNREADABLE, AttributeError):
        return 0
    return found if type(found) is int and 0 <= found <= LAMPORT_MAX else 0


def pack_records(envelopes: Sequence[Envelope]) -> bytes:
    """Return events as the inside of a packed frame."""
    import zstandard  # only where events are exchanged

    return zstandard.ZstdCompressor(level=3).compress(_pack([record(one) for one in envelopes]))


def unpack_records(data: bytes) -> list[Any]:
    """Return the records inside a packed frame. Raises Garbled, also when they are larger than a frame may be."""
    import zstandard

    try:
        raw = zstandard.ZstdDecompressor().decompress(data, max_output_size=PEER_FRAME_BYTES_MAX)
        if len(raw) > PEER_FRAME_BYTES_MAX:
            raise Garbled("a packed frame that is too large")
        found = msgpack.unpackb(raw, raw=False)
    except (*UNREADABLE, zstandard.ZstdError, MemoryError) as error:
        raise Garbled(f"a packed frame: {error}") from None
    if not _all(_is_record)(found):
        raise Garbled("a packed frame that holds no events")
    records: list[Any] = found
    return records


def pack_record(envelope: Envelope) -> bytes:
    """Return one event as the bytes that pieces are cut of."""
    return _pack(record(envelope))


def unpack_record(data: bytes) -> list[Any]:
    """Return the record that pieces made. Raises Garbled."""
    try:
        found = msgpack.unpackb(data, raw=False)
    except UNREADABLE as error:
        raise Garbled(f"pieces: {error}") from None
    if not _is_record(found):
        raise Garbled("pieces that make no event")
    whole: list[Any] = found
    return whole
