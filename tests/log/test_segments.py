from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from memorize.errors import CannotRead
from memorize.ids import event_id
from memorize.log import segments
from memorize.log.chain import Chain, Link, Origin
from memorize.log.codec import Bad
from memorize.log.files import RealFiles
from memorize.log.frames import ERASED, EVENT, FOOTER, pack_frame
from memorize.log.identity import Identity
from memorize.log.segments import (
    HEADER_BYTES,
    SegmentWriter,
    frame_event,
    fresh_header,
    last_frame,
    make_footer,
    pack_footer,
    pack_header,
    parse_footer,
    parse_header,
    read_event,
    read_segment,
    scan_segment,
    seal,
    segment_name,
)
from memorize.model import Draft
from tests.counts import count
from tests.log.fakes import FailingFiles, frame_event_ids

NAMES = Identity(b"s" * 16, b"d" * 16, b"r" * 16, b"w" * 16, b"b" * 16, "", (0, 0, 0))
HEADER = fresh_header(NAMES.store, NAMES.replica, NAMES.writer, 1, 1_796_000_000_000)


def chain() -> Chain:
    return Chain(NAMES, Link(0, b"", 0), lambda value: value)


def made(number: int, marker: bytes = HEADER.marker):
    origin = Origin(b"n" * 16, b"", 1, 1)
    drafts = [Draft("observed.note", {"text": f"기억 {n} " * 5}, n) for n in range(number)]
    return chain().events(drafts, origin, {}, marker)


def a_file(number: int, sealed: bool = False) -> bytes:
    pairs = made(number)
    data = pack_header(HEADER) + b"".join(frame for _, frame in pairs)
    if sealed:
        data += pack_footer(HEADER.marker, make_footer((event.id for event, _ in pairs), 1, number))
    return data


def texts(found) -> list[str]:
    from memorize.log.segments import frame_event

    return [frame_event(frame).payload["text"] for frame in found.frames if frame.type == EVENT]


def test_a_segment_header_is_96_bytes_and_comes_back():
    raw = pack_header(HEADER)
    assert len(raw) == HEADER_BYTES == 96
    assert parse_header(raw) == HEADER
    assert parse_header(raw[:-1]) is None


def test_no_flipped_bit_passes_in_a_segment_header():
    raw = pack_header(HEADER)
    for bit in range(len(raw) * 8):
        broken = bytearray(raw)
        broken[bit // 8] ^= 1 << bit % 8
        assert parse_header(bytes(broken)) is None


def test_one_flipped_bit_anywhere_costs_at_most_one_event_and_is_named():
    data = a_file(40, sealed=True)
    whole = texts(scan_segment(data))
    assert len(whole) == 40
    seeds = random.Random(3)
    for _ in range(count("flipped bits in segments", quick=300, full=3_000)):
        bit = seeds.randrange(len(data) * 8)
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        found = scan_segment(bytes(broken))
        left = texts(found)
        assert len(left) >= 39
        assert [text for text in whole if text in left] == left
        assert any(damage.offset <= bit // 8 < damage.offset + damage.length for damage in found.damages)
        assert len(found.damages) == 1


def test_every_bit_of_a_small_segment_can_flip():
    data = a_file(3)
    for bit in range(0, len(data) * 8, 1 if count("bits apart", quick=7, full=1) == 1 else 7):
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        found = scan_segment(bytes(broken))
        assert len(texts(found)) == (3 if bit // 8 < HEADER_BYTES else 2)
        assert len(found.damages) == 1


def test_every_prefix_of_a_segment_gives_only_whole_events():
    data = a_file(4, sealed=True)
    whole = texts(scan_segment(data))
    for size in range(len(data) + 1):
        found = scan_segment(data[:size])
        left = texts(found)
        assert left == whole[: len(left)]
        if size >= HEADER_BYTES:
            assert found.damages == []
            assert found.end + found.torn == size
        assert (found.footer is not None) == (size == len(data))


@pytest.mark.parametrize("size", [1, 8, 96, 100, 333, 4096])
def test_zeros_anywhere_leave_every_event_that_they_do_not_touch(size):
    data = a_file(12, sealed=True)
    full = scan_segment(data)
    spans = [(frame.offset, frame.offset + frame.length) for frame in full.frames]
    for begin in range(0, len(data) - size, count("bytes between zeroed ranges", quick=61, full=7)):
        broken = data[:begin] + bytes(size) + data[begin + size :]
        found = scan_segment(broken)
        spared = [n for n, (start, end) in enumerate(spans) if end <= begin or start >= begin + size]
        assert {frame.offset for frame in found.frames} >= {full.frames[n].offset for n in spared}
        assert found.damages or found.torn or broken == data


def test_a_lost_header_does_not_hide_the_events():
    data = a_file(5, sealed=True)
    for broken in (bytes(96) + data[96:], bytes(120) + data[120:], os.urandom(96) + data[96:]):
        found = scan_segment(broken)
        assert found.header is None
        assert len(texts(found)) >= 4
        assert found.damages[0].reason == "segment header"
        assert found.footer is not None


def test_bytes_after_the_footer_are_damage_and_events_among_them_are_kept():
    data = a_file(2, sealed=True)
    late = made(3)[2][1]
    for extra in (b"garbage", bytes(50), late, late[:10], b"x" + late):
        found = scan_segment(data + extra)
        assert found.footer is not None
        assert [(d.offset, d.length, d.reason) for d in found.damages] == [
            (len(data), len(extra), "bytes after the footer")
        ]
        assert found.torn == 0
        assert len(texts(found)) == 2 + (late in extra)


def test_reading_from_an_offset_gives_what_follows_it(tmp_path: Path):
    data = a_file(6, sealed=True)
    path = tmp_path / "segment.mzs"
    path.write_bytes(data)
    offsets = [frame.offset for frame in scan_segment(data).frames]
    for n, offset in enumerate(offsets):
        found = read_segment(RealFiles(), str(path), offset)
        assert [frame.offset for frame in found.frames] == offsets[n:]
        assert (found.damages, found.end, found.torn) == ([], len(data), 0)
    path.write_bytes(bytes(96) + data[96:])
    found = read_segment(RealFiles(), str(path), offsets[2])
    assert [frame.offset for frame in found.frames] == offsets[2:]


def test_one_event_is_read_by_its_place(tmp_path: Path):
    pairs = made(3)
    data = pack_header(HEADER) + b"".join(frame for _, frame in pairs)
    path = tmp_path / "기억.mzs"
    path.write_bytes(data)
    frame = scan_segment(data).frames[1]
    assert read_event(path, frame.offset, frame.length) == pairs[1][0]
    with pytest.raises(Bad):
        read_event(path, frame.offset + 1, frame.length)
    with pytest.raises(Bad):
        read_event(path, frame.offset, frame.length + 5)
    with pytest.raises(Bad):
        read_event(path, len(data) + 10, frame.length)
    with pytest.raises(CannotRead, match="none"):
        read_event(tmp_path / "none", 0, 10)
    with pytest.raises(CannotRead):
        read_event(path, 0, 10, FailingFiles(1, errno.EIO))


def test_an_erased_event_is_read_without_its_payload(tmp_path: Path):
    event, frame = made(1)[0]
    header = scan_segment(pack_header(HEADER) + frame).frames[0].header
    raw = pack_frame(HEADER.marker, EVENT, ERASED, header, b"")
    path = tmp_path / "segment.mzs"
    path.write_bytes(pack_header(HEADER) + raw)
    assert read_event(path, HEADER_BYTES, len(raw)) == event._replace(payload=None)


def test_the_footer_keeps_count_range_and_sum_of_ids():
    ids = [event_id(b"a"), event_id(b"b"), b"\xff" * 32]
    footer = make_footer(ids, 5, 7)
    total = sum(int.from_bytes(i, "big") for i in ids) % 2**256
    assert footer == (3, 5, 7, total.to_bytes(32, "big"))
    found = scan_segment(pack_header(HEADER) + pack_footer(HEADER.marker, footer))
    assert found.footer == footer
    assert found.frames == []
    for raw in (b"", b"\xc0", b"\x80", b"\x84\x00\x01\x01\x02\x02\x03\x03\x04"):
        assert parse_footer(raw) is None


def test_a_writer_makes_the_file_durable_before_its_first_event(tmp_path: Path):
    files = FailingFiles()
    writer = SegmentWriter.create(files, str(tmp_path), HEADER)
    assert files.calls[:4] == ["create", "write", "fsync", "sync_dir"]
    writer.close()


def test_a_segment_is_written_resumed_sealed_and_read(tmp_path: Path):
    pairs = made(4)
    writer = SegmentWriter.create(RealFiles(), str(tmp_path), HEADER)
    assert writer.append(pairs[0][1] + pairs[1][1]) == HEADER_BYTES
    writer.sync()
    writer.close()
    path = tmp_path / segment_name(NAMES.writer, 1)
    assert path.stat().st_mode & 0o777 == 0o600
    last = last_frame(RealFiles(), str(path), path.stat().st_size, HEADER.marker)
    assert last is not None
    assert last.offset == HEADER_BYTES + len(pairs[0][1])
    writer = SegmentWriter.resume(RealFiles(), str(path), HEADER, path.stat().st_size)
    writer.append(pairs[2][1] + pairs[3][1])
    writer.sync()
    writer.seal()
    found = scan_segment(path.read_bytes())
    assert found.damages == []
    assert found.footer == make_footer((event.id for event, _ in pairs), 1, 4)
    assert frame_event_ids(path) == [event.id for event, _ in pairs]
    end = last_frame(RealFiles(), str(path), path.stat().st_size, HEADER.marker)
    assert end is not None
    assert end.type == FOOTER


def test_sealing_cuts_a_torn_end_and_keeps_damage(tmp_path: Path):
    pairs = made(3)
    broken = bytearray(pairs[1][1])
    broken[40] ^= 1
    path = tmp_path / segment_name(NAMES.writer, 1)
    path.write_bytes(pack_header(HEADER) + pairs[0][1] + bytes(broken) + pairs[2][1] + pairs[0][1][:30])
    size = path.stat().st_size
    SegmentWriter.resume(RealFiles(), str(path), HEADER, size).seal()
    found = scan_segment(path.read_bytes())
    assert found.footer is not None
    assert found.footer[:3] == (2, 1, 3)
    assert [damage.length for damage in found.damages] == [len(broken)]
    assert found.torn == 0


def sealed_whole(data: bytes) -> bytes:
    """What sealing makes of a file, by one look at all of it."""
    found = scan_segment(data)
    if found.header is None or found.footer_at >= 0:
        return data
    events = [frame for frame in found.frames if frame.type == EVENT]
    seqs = [frame_event(frame).header.seq for frame in (events[:1] + events[-1:])]
    footer = make_footer((event_id(frame.header) for frame in events), min(seqs, default=0), max(seqs, default=0))
    return data[: len(data) - found.torn] + pack_footer(found.header.marker, footer)


def hurt(data: bytes, chance: random.Random) -> bytes:
    """The file as it is, cut short, with bytes lost inside, changed or zeroed."""
    raw = bytearray(data)
    at, width = chance.randrange(len(raw)), chance.randrange(1, 400)
    match chance.randrange(6):
        case 1:
            del raw[at:]
        case 2:
            del raw[at : at + width]
        case 3:
            raw[at] ^= 1 << chance.randrange(8)
        case 4:
            raw[at : at + width] = bytes(len(raw[at : at + width]))
        case 5:
            raw += bytes(width) if at % 2 else raw[HEADER_BYTES : HEADER_BYTES + width]
    return bytes(raw)


@pytest.mark.parametrize("piece", [64, 700, 1024 * 1024])
def test_sealing_in_pieces_gives_what_one_look_at_all_gives(tmp_path: Path, monkeypatch, piece):
    monkeypatch.setattr(segments, "_PIECE_BYTES", piece)
    chance = random.Random(piece)
    whole = a_file(12)
    path = tmp_path / segment_name(NAMES.writer, 1)
    for number in range(count("files sealed in pieces", 150, 1500)):
        data = whole if number == 0 else hurt(a_file(12, sealed=number % 5 == 0), chance)
        path.write_bytes(data)
        handle = RealFiles().reopen(str(path))
        seal(RealFiles(), str(path), handle)
        RealFiles().close(handle)
        assert path.read_bytes() == sealed_whole(data)


class Watched(RealFiles):
    """Remembers the most that was read at once."""

    most = 0

    def pread(self, path: str, offset: int, length: int) -> bytes:
        data = super().pread(path, offset, length)
        self.most = max(self.most, len(data))
        return data


def test_sealing_an_undamaged_file_reads_little_at_once_but_a_large_event(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(segments, "_PIECE_BYTES", 4096)
    files, path = Watched(), tmp_path / segment_name(NAMES.writer, 1)
    path.write_bytes(a_file(200))
    handle = files.reopen(str(path))
    seal(files, str(path), handle)
    files.close(handle)
    assert files.most == 4096
    assert path.stat().st_size > 10 * 4096

    large = chain().events(
        [Draft("observed.note", {"text": "큰 기억 " * 9000})], Origin(b"n" * 16, b"", 1, 1), {}, HEADER.marker
    )
    data = a_file(3) + large[0][1]
    path.write_bytes(data)
    handle = files.reopen(str(path))
    seal(files, str(path), handle)
    files.close(handle)
    assert path.read_bytes() == sealed_whole(data)
    found = scan_segment(path.read_bytes())
    assert found.footer is not None
    assert found.footer.events == 4


def test_a_name_is_never_used_twice(tmp_path: Path):
    SegmentWriter.create(RealFiles(), str(tmp_path), HEADER).close()
    with pytest.raises(FileExistsError):
        SegmentWriter.create(RealFiles(), str(tmp_path), HEADER)
    assert parse_header((tmp_path / segment_name(NAMES.writer, 1)).read_bytes()) == HEADER


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, "short"])
@pytest.mark.parametrize("at", range(1, 5))
def test_a_segment_that_cannot_be_made_leaves_nothing(tmp_path: Path, at, error):
    files = FailingFiles(at, error)
    with pytest.raises(OSError):
        SegmentWriter.create(files, str(tmp_path), HEADER)
    assert list(tmp_path.iterdir()) == []
    assert "close" in files.calls or at == 1


def test_rollback_returns_to_what_was_durable(tmp_path: Path):
    pairs = made(2)
    files = FailingFiles()
    writer = SegmentWriter.create(files, str(tmp_path), HEADER)
    writer.append(pairs[0][1])
    writer.sync()
    files.at, files.error = len(files.calls) + 1, "short"
    with pytest.raises(OSError):
        writer.append(pairs[1][1])
    writer.rollback()
    assert writer.size == HEADER_BYTES + len(pairs[0][1])
    writer.close()
    assert frame_event_ids(tmp_path / writer.name) == [pairs[0][0].id]
