from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.log.frames import (
    ERASED,
    EVENT,
    FRAME_BYTES_MAX,
    OVERHEAD_BYTES,
    SIGNED,
    frame_at_end,
    marker_at_end,
    pack_frame,
    parse_frame,
    scan,
)
from tests.counts import count

MARKER = b"\x93mark\x00\xffz"

parts = st.tuples(st.integers(0, 255), st.integers(0, 255), st.binary(max_size=80), st.binary(max_size=80))


def packed(kind, flags, header, body):
    return pack_frame(MARKER, kind, flags, header, body, b"S" * 64 if flags & SIGNED else b"")


def file_of(number, size=40):
    frames = [
        pack_frame(MARKER, EVENT, 0, b"header %d" % n, f"본문 {n} ".encode() * (size // 8)) for n in range(number)
    ]
    return frames, b"".join(frames)


def bodies(found):
    return [frame.body for frame in found.frames]


@given(st.lists(parts, max_size=8))
def test_frames_come_back_as_they_went_in_unknown_types_and_flags_too(items):
    data = b"".join(packed(*item) for item in items)
    found = scan(data, MARKER)
    assert [(f.type, f.flags, f.header, f.body) for f in found.frames] == items
    assert (found.damages, found.end, found.torn) == ([], len(data), 0)
    assert b"".join(data[f.offset : f.offset + f.length] for f in found.frames) == data


@given(st.binary(max_size=300), st.binary(min_size=8, max_size=8))
def test_random_bytes_give_no_frame_and_no_error(data, marker):
    assert scan(data, marker).frames == []
    assert marker_at_end(data) == b""
    assert frame_at_end(data, marker) is None


def test_every_prefix_gives_only_whole_frames_and_no_damage():
    frames, data = file_of(4)
    ends = [sum(len(frame) for frame in frames[:n]) for n in range(5)]
    for size in range(len(data) + 1):
        found = scan(data[:size], MARKER)
        whole = sum(end <= size for end in ends) - 1
        assert len(found.frames) == whole
        assert found.damages == []
        assert found.end == ends[whole]
        assert found.end + found.torn == size


def test_zeros_behind_a_cut_frame_belong_to_what_a_crash_left():
    frames, data = file_of(3)
    start = len(data) - len(frames[-1])
    for size in range(start, len(data)):
        for zeros in (1, 24, 4096):
            found = scan(data[:size] + bytes(zeros), MARKER)
            assert len(found.frames) == 2
            assert found.end == start
            # Zeros may complete the frame to its length: then it is a damaged one, and named.
            assert found.torn + sum(damage.length for damage in found.damages) == size + zeros - start


def test_a_flipped_bit_costs_the_frame_that_holds_it_and_names_it():
    frames, data = file_of(60)
    starts = [sum(len(frame) for frame in frames[:n]) for n in range(len(frames))]
    seeds = random.Random(11)
    for _ in range(count("flipped bits in frames", quick=300, full=3_000)):
        bit = seeds.randrange(len(data) * 8)
        raw = bytearray(data)
        raw[bit // 8] ^= 1 << bit % 8
        found = scan(bytes(raw), MARKER)
        hit = max(n for n, start in enumerate(starts) if start <= bit // 8)
        assert [frame.offset for frame in found.frames] == [start for n, start in enumerate(starts) if n != hit]
        assert [(d.offset, d.length) for d in found.damages] == [(starts[hit], len(frames[hit]))]
        assert found.torn == 0


def test_a_range_of_zeros_costs_the_frames_that_it_touches():
    frames, data = file_of(30, size=200)
    starts = [sum(len(frame) for frame in frames[:n]) for n in range(len(frames))]
    seeds = random.Random(12)
    for _ in range(count("zeroed ranges", quick=100, full=1_000)):
        begin = seeds.randrange(len(data) - 1)
        end = min(len(data), begin + seeds.choice([1, 20, 512, 4096]))
        raw = data[:begin] + bytes(end - begin) + data[end:]
        found = scan(raw, MARKER)
        spared = [s for s, f in zip(starts, frames, strict=True) if raw[s : s + len(f)] == f]
        assert [frame.offset for frame in found.frames] == spared
        assert sum(damage.length for damage in found.damages) + found.torn == len(data) - sum(
            frame.length for frame in found.frames
        )


@pytest.mark.parametrize("garbage", [b"x", b"\xff" * 7, b"garbage " * 50, "쓰레기".encode() * 9, MARKER[1:] * 3])
def test_appended_garbage_is_damage_and_not_a_cut_append(garbage):
    _, data = file_of(3)
    found = scan(data + garbage, MARKER)
    assert len(found.frames) == 3
    assert [(d.offset, d.length) for d in found.damages] == [(len(data), len(garbage))]
    assert found.torn == 0


def test_damage_that_ends_like_the_beginning_of_a_marker_is_damage_to_its_last_byte():
    _, data = file_of(3)
    for left in range(1, 8):
        found = scan(data + b"garbage" + MARKER[:left], MARKER)
        assert [(d.offset, d.length) for d in found.damages] == [(len(data), 7 + left)]
        assert found.torn == 0


def test_the_marker_and_whole_frames_inside_a_payload_do_not_confuse_the_reader():
    inner = pack_frame(MARKER, EVENT, 0, b"inner header", b"inner")
    outer = pack_frame(MARKER, EVENT, 0, b"outer", MARKER * 5 + inner + inner[:30] + MARKER)
    last = pack_frame(MARKER, EVENT, 0, b"last", "끝".encode())
    data = outer + last
    assert [frame.header for frame in scan(data, MARKER).frames] == [b"outer", b"last"]
    broken = bytearray(data)
    broken[24] ^= 1  # in the outer header: what is found inside is at least a frame that verifies
    assert [frame.header for frame in scan(bytes(broken), MARKER).frames] == [b"inner header", b"last"]


def test_frames_between_two_damages_are_found():
    frames, data = file_of(5)
    raw = bytearray(data)
    raw[len(frames[0]) + 30] ^= 4
    raw[len(data) - len(frames[4]) - 30] ^= 4
    found = scan(bytes(raw), MARKER, base=96)
    assert bodies(found) == [scan(data, MARKER).frames[n].body for n in (0, 2, 4)]
    assert all(frame.offset >= 96 for frame in found.frames)
    assert [damage.reason for damage in found.damages] == ["damaged frame", "damaged frame"]


def test_a_length_beyond_every_limit_is_never_believed():
    raw = bytearray(pack_frame(MARKER, EVENT, 0, b"h", b"b"))
    raw[8:12] = (FRAME_BYTES_MAX + 1).to_bytes(4, "big")
    assert parse_frame(bytes(raw) + bytes(100), 0, MARKER) is None
    assert scan(bytes(raw), MARKER).damages != []


def test_a_signature_lies_between_body_and_trailer():
    frame = parse_frame(pack_frame(MARKER, EVENT, SIGNED, b"head", b"body", b"S" * 64), 0, MARKER)
    assert frame is not None
    assert (frame.header, frame.body, frame.signature) == (b"head", b"body", b"S" * 64)


def test_an_erased_body_is_a_flag_and_no_bytes():
    raw = pack_frame(MARKER, EVENT, ERASED, b"head", b"")
    assert len(raw) == OVERHEAD_BYTES + 4
    frame = parse_frame(raw, 0, MARKER)
    assert frame is not None
    assert (frame.flags, frame.body) == (ERASED, b"")


def test_the_last_frame_and_its_marker_are_found_from_the_end():
    frames, data = file_of(3)
    last = frame_at_end(data[-200:], MARKER, len(data) - 200)
    assert last is not None
    assert last.offset == len(data) - len(frames[-1])
    assert marker_at_end(data) == MARKER
    assert frame_at_end(data[:-1], MARKER) is None
