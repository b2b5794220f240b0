"""What is lost is named by number and id, told once more after it was noted only as a remark, and never overlooked."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorize.clock import FixedClock
from memorize.ids import event_id
from memorize.log import losses
from memorize.log import verify as verify_room
from memorize.log.chain_check import Gap
from memorize.log.files import RealFiles
from memorize.log.segments import frame_event, scan_segment, seal
from memorize.log.spool import put_capture
from memorize.log.verify import verify
from memorize.paths import Home
from tests.log.fakes import MemoryProjection, ingester, segments


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state 상태")
    projection = MemoryProjection()
    for number in range(5):
        put_capture(home, "claude", "Stop", f"기억 {number}".encode(), FixedClock())
    work = ingester(home, projection)
    work.run()
    work.close()
    return home


def _flip(home: Home, place: int) -> tuple[bytes, Gap]:
    """Flip a bit in the body of an event; return its id, and its number as a gap."""
    (path,) = segments(home)
    raw = bytearray(path.read_bytes())
    frame = scan_segment(bytes(raw)).frames[place]
    event = frame_event(frame)
    raw[frame.offset + frame.length - 9] ^= 1
    path.write_bytes(raw)
    return event_id(frame.header), Gap(event.header.writer, event.header.seq, event.header.seq)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("sealed", [False, True])
def test_a_lost_event_is_told_once_with_its_number_and_id(home: Home, deep: bool, sealed: bool) -> None:
    if sealed:
        (path,) = segments(home)
        handle = RealFiles().reopen(str(path))
        seal(RealFiles(), str(path), handle)
        RealFiles().close(handle)
    identity, gap = _flip(home, 2)
    report = verify(home, deep)
    assert [(hurt.id, hurt.lost) for hurt in report.damages] == [(identity, gap)]
    assert report.missing == ()
    assert report.exit == verify_room.DATA_MISSING


def test_a_loss_that_was_noted_is_no_alarm_any_more_and_the_next_one_is(home: Home) -> None:
    _flip(home, 2)
    assert verify(home, repair=True, now_ms=1234).exit == verify_room.DATA_MISSING
    report = verify(home)
    assert (report.exit, report.fresh) == (verify_room.CLEAN, ())
    assert report.noted == {report.damages[0].name: 1234}
    _flip(home, 1)
    report = verify(home)
    assert report.exit == verify_room.DATA_MISSING


def test_numbers_that_an_index_knew_are_missing_until_they_are_back(home: Home) -> None:
    (path,) = segments(home)
    whole = path.read_bytes()
    last = frame_event(scan_segment(whole).frames[-1])
    path.write_bytes(whole[: scan_segment(whole).frames[-1].offset])
    assert verify(home).exit == verify_room.CLEAN
    gone = Gap(last.header.writer, last.header.seq, last.header.seq)
    losses.see(home, RealFiles(), [gone])
    assert verify(home).missing == (gone,)
    assert verify(home, deep=True).exit == verify_room.DATA_MISSING
    path.write_bytes(whole)
    assert verify(home).exit == verify_room.CLEAN


@pytest.mark.parametrize("deep", [False, True])
def test_numbers_that_came_back_from_another_device_are_missing_no_more(home: Home, deep: bool) -> None:
    (path,) = segments(home)
    frames = scan_segment(path.read_bytes()).frames
    first, last = frame_event(frames[0]), frame_event(frames[-1])
    gone = Gap(first.header.writer, first.header.seq, last.header.seq)
    losses.see(home, RealFiles(), [gone])
    home.identity.unlink()
    received = home.root / "received" / path.name
    path.rename(received)
    assert verify(home, deep).exit == verify_room.CLEAN
    received.unlink()
    assert verify(home, deep).missing == (gone,)


def test_a_receipt_of_losses_that_cannot_be_read_counts_for_none(home: Home) -> None:
    losses.see(home, RealFiles(), [Gap(b"w" * 16, 3, 4)])
    (home.receipts / "losses.json").write_bytes(b'{"seen": [[1]]}')
    assert losses.load(home, RealFiles()) == losses.Losses()
    assert verify(home).exit == verify_room.CLEAN
