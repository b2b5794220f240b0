"""Verification tells every damage, and repair never loses a readable event."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.clock import FixedClock
from memorize.log import verify as verify_room
from memorize.log.codec import Bad
from memorize.log.files import RealFiles
from memorize.log.frames import EVENT
from memorize.log.segments import frame_event, scan_segment, seal
from memorize.log.spool import Unreadable, put_capture
from memorize.log.verify import VerifyReport, verify
from memorize.model import Capture, Draft
from memorize.paths import Home
from tests.log.fakes import MemoryProjection, ingester, note, segments


def _filled(root: Path, count: int = 5, runs: int = 1) -> tuple[Home, MemoryProjection]:
    home = Home(root / "state dir 상태")
    projection = MemoryProjection()
    ingester(home, projection)
    for run in range(runs):
        for number in range(count):
            put_capture(home, "claude", "Stop", f"기억 {run} {number}".encode(), FixedClock())
        work = ingester(home, projection)
        work.run()
        work.close()
    return home, projection


def _ids(home: Home) -> set[bytes]:
    found = set()
    for path in segments(home):
        for frame in scan_segment(path.read_bytes()).frames:
            if frame.type == EVENT:
                try:
                    found.add(frame_event(frame).id)
                except Bad:
                    continue
    return found


def _seal(home: Home) -> None:
    path = segments(home)[-1]
    files = RealFiles()
    handle = files.reopen(str(path))
    seal(files, str(path), handle)
    files.close(handle)


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_log_is_clean_and_says_what_was_not_checked(tmp_path: Path, deep: bool) -> None:
    home, projection = _filled(tmp_path, runs=3)
    report = verify(home, deep=deep, offsets=projection.offsets())
    assert report.exit == verify_room.CLEAN
    assert report.events == 16
    assert (report.files, report.frames, report.torn, report.bad) == (1, 16, 0, 0)
    assert report.bytes == segments(home)[0].stat().st_size
    assert "the index" not in report.unchecked
    assert any("--deep" in line for line in report.unchecked) is not deep
    assert "the index" in verify(home).unchecked


@pytest.mark.parametrize("deep", [False, True])
def test_a_sealed_log_is_held_against_its_footer(tmp_path: Path, deep: bool) -> None:
    home, _ = _filled(tmp_path)
    _seal(home)
    assert (verify(home, deep).sealed, verify(home, deep).exit) == (1, 0)
    path = segments(home)[0]
    data = path.read_bytes()
    frames = scan_segment(data).frames
    cut = frames[2]
    path.write_bytes(data[: cut.offset] + data[cut.offset + cut.length :])
    report = verify(home, deep)
    assert report.exit == verify_room.DATA_MISSING
    assert any("1 of 6 events" in hurt.what for hurt in report.damages)


def test_a_missing_file_is_a_gap_of_its_writer(tmp_path: Path) -> None:
    home, _ = _filled(tmp_path)
    _seal(home)
    work = ingester(home, MemoryProjection())
    put_capture(home, "claude", "Stop", b"late", FixedClock())
    work.run()
    work.close()
    first, second = segments(home)
    first.unlink()
    for deep in (False, True):
        gap = verify(home, deep).missing[0]
        assert (gap.first, gap.last) == (1, 6)
        assert second.name.startswith(gap.writer.hex())


@pytest.mark.parametrize("deep", [False, True])
def test_every_flipped_bit_is_found(tmp_path: Path, deep: bool) -> None:
    home, _ = _filled(tmp_path, count=2)
    _seal(home)
    path = segments(home)[0]
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        report = verify(home, deep)
        assert report.exit == verify_room.DATA_MISSING, f"byte {at}"
        assert report.damages[0].file == f"segments/{path.name}"


def test_a_body_exchanged_with_a_right_crc_is_found_only_by_looking_deep(tmp_path: Path) -> None:
    from memorize.log.frames import pack_frame

    home, _ = _filled(tmp_path, count=3)
    path = segments(home)[0]
    data = path.read_bytes()
    found = scan_segment(data)
    frame = found.frames[1]
    assert found.header is not None
    forged = pack_frame(found.header.marker, EVENT, 0, frame.header, frame.body[:-1] + b"\x00")
    path.write_bytes(data[: frame.offset] + forged + data[frame.offset + frame.length :])
    assert verify(home).exit == verify_room.CLEAN
    report = verify(home, deep=True)
    assert report.exit == verify_room.DATA_MISSING
    assert report.damages[0].offset == frame.offset


def test_events_in_another_order_do_not_follow_each_other(tmp_path: Path) -> None:
    home, _ = _filled(tmp_path, count=3)
    other, _ = _filled(tmp_path / "other", count=3)
    path = segments(home)[0]
    data = path.read_bytes()
    found, foreign = scan_segment(data), scan_segment(segments(other)[0].read_bytes())
    assert found.header is not None
    from memorize.log.codec import encode_header
    from memorize.log.frames import pack_frame

    # the second event rewritten so that it names a stranger as its predecessor
    header = frame_event(found.frames[1]).header._replace(prev=frame_event(foreign.frames[0]).id)
    forged = pack_frame(found.header.marker, EVENT, 0, encode_header(header), found.frames[1].body)
    start, end = found.frames[1].offset, found.frames[2].offset
    path.write_bytes(data[:start] + forged + data[end:])
    report = verify(home, deep=True)
    assert [hurt.what for hurt in report.damages] == ["does not follow the event before it"] * 2


def test_an_index_that_knows_more_than_the_files_is_told(tmp_path: Path) -> None:
    home, projection = _filled(tmp_path)
    file, size = next(iter(projection.offsets().items()))
    assert verify(home, offsets={file: size + 10}).ahead[0].length == 10
    assert verify(home, offsets={file: size - 1}).ahead[0].what.endswith("no frame ends")
    assert verify(home, offsets={"segments/gone.mzs": 100}).exit == verify_room.DATA_MISSING
    assert verify(home, offsets={}).exit == verify_room.CLEAN


def test_a_torn_tail_is_no_damage_and_repair_cuts_it(tmp_path: Path) -> None:
    home, _ = _filled(tmp_path)
    path = segments(home)[0]
    data = path.read_bytes()
    before = _ids(home)
    frame = scan_segment(data).frames[-1]
    path.write_bytes(data + data[frame.offset : frame.offset + frame.length - 9])
    report = verify(home)
    assert (report.exit, report.torn) == (verify_room.CLEAN, frame.length - 9)
    mended = verify(home, repair=True)
    assert (mended.exit, mended.torn) == (verify_room.REPAIRED, 0)
    assert path.read_bytes() == data
    assert _ids(home) == before
    assert verify(home, repair=True).exit == verify_room.CLEAN


def test_repair_seals_a_damaged_active_segment_and_captures_go_on(tmp_path: Path) -> None:
    home, _ = _filled(tmp_path)
    path = segments(home)[0]
    data = bytearray(path.read_bytes())
    frame = scan_segment(bytes(data)).frames[2]
    data[frame.offset + 40] ^= 1
    path.write_bytes(data)
    before = _ids(home)
    report = verify(home, repair=True)
    assert report.exit == verify_room.DATA_MISSING
    assert "sealed" in report.repaired[0]
    assert _ids(home) == before
    projection = MemoryProjection()
    put_capture(home, "claude", "Stop", "다음".encode(), FixedClock())
    ingester(home, projection).run()
    assert len(segments(home)) == 2
    assert before < set(projection.stored)


def test_files_set_aside_come_back_when_they_can_be_read_now(tmp_path: Path) -> None:
    home, projection = _filled(tmp_path)

    def strict(capture: Capture) -> Sequence[Draft]:
        raise Unreadable("a later version of the agent")

    put_capture(home, "claude", "Stop", b"new form", FixedClock())
    (home.spool / "new" / "garbage").write_bytes(b"garbage")
    ingester(home, projection, normalise=strict).run()
    assert verify(home).bad == 2
    assert verify(home, repair=True, normalise=strict).repaired == ()
    report = verify(home, repair=True, normalise=note)
    assert (report.exit, report.bad, report.pending) == (verify_room.REPAIRED, 1, 1)
    assert ingester(home, projection).run().events == 1
    assert "new form" in projection.texts()


class _Unreadable(RealFiles):
    def pread(self, path: str, offset: int, length: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_what_cannot_be_read_is_never_called_clean(tmp_path: Path) -> None:
    home, _ = _filled(tmp_path)
    for repair in (False, True):
        report = verify(home, repair=repair, files=_Unreadable())
        assert report.exit == verify_room.CANNOT_READ
        assert report.unread[0].path.endswith(".mzs")
        assert (report.files, report.repaired) == (0, ())


def test_an_empty_home_is_clean(tmp_path: Path) -> None:
    report: VerifyReport = verify(Home(tmp_path / "nothing"))
    assert (report.exit, report.files, report.events) == (verify_room.CLEAN, 0, 0)


def _hurt(raw: bytearray, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(raw)))
    kind = data.draw(st.sampled_from(["flip", "zero", "cut", "garbage", "insert"]))
    if kind == "flip" and at < len(raw):
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "zero":
        raw[at : at + 30] = bytes(len(raw[at : at + 30]))
    elif kind == "cut":
        del raw[at:]
    elif kind == "garbage":
        raw += data.draw(st.binary(max_size=50))
    else:
        raw[at:at] = data.draw(st.binary(max_size=50))


def test_repair_never_makes_the_set_of_readable_events_smaller(tmp_path: Path) -> None:
    home, _ = _filled(tmp_path, count=3)
    path = segments(home)[0]
    sound = path.read_bytes()

    @given(st.data())
    def check(data: st.DataObject) -> None:
        raw = bytearray(sound)
        for _ in range(data.draw(st.integers(1, 3))):
            _hurt(raw, data)
        path.write_bytes(raw)
        before = _ids(home)
        first = verify(home, deep=True, repair=True)
        assert _ids(home) == before
        assert first.events == len(before)
        second = verify(home, deep=True, repair=True)
        assert second.repaired == ()
        assert (second.damages, second.missing) == (first.damages, first.missing)

    check()
