from __future__ import annotations

import contextlib
import random
from itertools import pairwise

import msgpack
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from memorize.limits import PEER_FRAME_BYTES_MAX
from memorize.sync import wire
from memorize.sync.handshake import read_greeting
from memorize.sync.ranges import from_fields
from memorize.sync.wire import Decoder, Frame, Garbled, encode, parse
from tests.sync.peers import Pen

_WRITER, _ID = b"w" * 16, b"i" * 32
FRAMES = (
    Frame(wire.HELLO, 1, (b"greeting",)),
    Frame(wire.PROOF, 2, (_ID,)),
    Frame(wire.ROUND, 3, (2**64 - 1, _ID, bytes(1024))),
    Frame(wire.HEADS, 4, ([[_WRITER, 1, _ID]], [_WRITER])),
    Frame(wire.RANGES, 5, (0, b"", [[5, b"abc", b"f" * 16], [1, b"", [_ID]], [None, b"", None]])),
    Frame(wire.WANT, 6, ([_ID, _ID],)),
    Frame(wire.EVENTS, 7, ([[b"header", None, b""], [b"header", b"body", b"s" * 64]],)),
    Frame(wire.PACKED, 8, (b"packed",)),
    Frame(wire.PIECE, 9, (b"piece", True)),
    Frame(wire.TURN, 10, (False, 0, _ID)),
    Frame(wire.END, 11, (True, 7, _ID, False)),
    Frame(wire.ERROR, 12, (3, "key", "다른 열쇠")),
    Frame(wire.NEWS, 13, ()),
)


def decoded(data: bytes, cuts: list[int]) -> list[Frame]:
    decoder, found = Decoder(), []
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        decoder.feed(data[start:end])
        found += list(decoder.frames())
    return found


@given(st.lists(st.sampled_from(FRAMES), max_size=20), st.lists(st.integers(0, 10**6), max_size=20))
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(frames: list[Frame], cuts: list[int]) -> None:
    assert decoded(b"".join(map(encode, frames)), cuts) == frames


@given(st.binary(max_size=400))
def test_random_bytes_are_frames_or_garbled_and_nothing_else(data: bytes) -> None:
    for raw in (data, len(data).to_bytes(4, "big") + b"\1" + data[1:]):
        decoder = Decoder()
        decoder.feed(raw)
        with contextlib.suppress(Garbled):
            for frame in decoder.frames():
                assert isinstance(frame, Frame)
    for read in (parse, read_greeting, wire.unpack_records, wire.unpack_record):
        with contextlib.suppress(Garbled):
            read(data)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers(0, 9), inner, max_size=3),
    max_leaves=12,
)


@given(st.integers(1, 14), st.lists(_ANY, max_size=5))
def test_fields_of_the_wrong_kind_are_garbled(kind: int, fields: list[object]) -> None:
    try:
        frame = parse(msgpack.packb([kind, 1, *fields]))
    except Garbled:
        return
    if kind == wire.RANGES:
        with contextlib.suppress(Garbled):
            from_fields(*frame.fields)
    assert frame.kind == kind


@given(st.sampled_from(FRAMES), st.randoms(use_true_random=False))
def test_a_frame_with_a_flipped_bit_is_a_frame_or_garbled(frame: Frame, chance: random.Random) -> None:
    data = bytearray(encode(frame))
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    decoder = Decoder()
    decoder.feed(bytes(data))
    with contextlib.suppress(Garbled):
        list(decoder.frames())


def test_a_frame_that_is_too_large_is_refused_before_it_has_come() -> None:
    decoder = Decoder(limit=1_000)
    decoder.feed((1_001).to_bytes(4, "big") + b"\1")
    with pytest.raises(Garbled):
        list(decoder.frames())


def test_another_version_is_refused_and_a_later_program_may_add_fields_and_kinds() -> None:
    decoder = Decoder()
    decoder.feed(encode(FRAMES[0]).replace(b"\0\0\0\x0e\1", b"\0\0\0\x0e\2", 1))
    with pytest.raises(Garbled, match="version 2"):
        list(decoder.frames())
    assert parse(msgpack.packb([wire.WANT, 6, [_ID], "later", {}])) == Frame(wire.WANT, 6, ([_ID],))
    assert parse(msgpack.packb([99, 7, {"later": [1]}])) == Frame(99, 7)


def test_a_packed_frame_that_unpacks_to_more_than_a_frame_is_refused() -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(64 * PEER_FRAME_BYTES_MAX))
    streamed = zstandard.ZstdCompressor().compressobj()
    endless = streamed.compress(bytes(64 * PEER_FRAME_BYTES_MAX)) + streamed.flush()
    for data in (bomb, endless):
        with pytest.raises(Garbled):
            wire.unpack_records(data)


def test_an_event_keeps_its_bytes_and_its_place_on_the_way() -> None:
    event = Pen(lamport=41).write("순서")
    for one in (event, event._replace(body=None), event._replace(signature=b"s" * 64)):
        (whole,) = wire.unpack_records(wire.pack_records([one]))
        assert wire.envelope_of(whole) == one
        assert wire.envelope_of(wire.unpack_record(wire.pack_record(one))) == one
    assert wire.envelope_of([b"\xc1", None, b""]).lamport == 0
