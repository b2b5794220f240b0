"""Every call to the disk fails once, or from then on for ever; afterwards every capture is there exactly once."""

from __future__ import annotations

import contextlib
import errno
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from memorize.clock import FixedClock
from memorize.errors import Problem
from memorize.log import ingest
from memorize.log.files import RealFiles
from memorize.log.segments import read_segment
from memorize.log.spool import pending, put_batch, put_capture
from memorize.model import Draft
from memorize.paths import Home
from tests.counts import count
from tests.log.fakes import Death, FailingFiles, MemoryProjection, events_on_disk, ingester, segments

CLOCK = FixedClock(mono=1_000 * 10**9)
ERRORS = [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE, "short"]
TEXTS = ["하나", "둘", "셋", "넷", "batch 0", "batch 1"]
STEP = count("calls between the failing ones", quick=3, full=1)


def prepare(home: Home, index: MemoryProjection) -> None:
    """Leave a segment that is nearly full, a capture that was written and not indexed, and more in the spool."""
    put_capture(home, "claude", "Stop", TEXTS[0].encode(), CLOCK._replace(mono=1))
    ingester(home, index, clock=CLOCK).run()
    put_capture(home, "claude", "Stop", TEXTS[1].encode(), CLOCK._replace(mono=2))
    index.failures = [sqlite3.OperationalError("database is locked")]
    with pytest.raises(sqlite3.OperationalError):
        ingester(home, index, clock=CLOCK).run()
    for n in (2, 3):
        put_capture(home, "claude", "Stop", TEXTS[n].encode(), CLOCK._replace(mono=n + 1))
    drafts = [Draft("memory.formed", {"text": TEXTS[4]}), Draft("memory.formed", {"text": TEXTS[5]}, 1, (0,))]
    put_batch(home, drafts, CLOCK._replace(mono=5))
    put_capture(home, "memorize", "batch", b"never readable", CLOCK._replace(mono=6))


def run(home: Home, index: MemoryProjection, files: RealFiles | None = None) -> None:
    ingester(home, index, files, CLOCK).run()


def check(home: Home, index: MemoryProjection) -> None:
    for _ in range(2):
        run(home, index)
    assert pending(home) == []
    assert sorted(index.texts()) == sorted(TEXTS)
    written = Counter((e.header.nonce, e.header.ordinal) for e in events_on_disk(segments(home)))
    assert set(written.values()) == {1}
    assert len(list((home.spool / "bad").iterdir())) == 1
    again = MemoryProjection()
    run(home, again)
    assert again.events == index.events
    numbers = Counter((e.header.writer, e.header.seq) for e in index.events)
    assert set(numbers.values()) == {1}
    found = [read_segment(RealFiles(), str(path)) for path in segments(home)]
    assert [scan.damages for scan in found] == [[]] * len(found)
    assert sum(scan.footer is None for scan in found) <= 1


@pytest.fixture(autouse=True)
def small_segments(monkeypatch) -> None:
    """Make every batch need a new segment, so that sealing and creating are among the calls."""
    monkeypatch.setattr(ingest, "SEGMENT_BYTES_MAX", 900)
    monkeypatch.setattr(ingest, "BATCH_BYTES_MAX", 200)
    monkeypatch.setattr(ingest, "INGEST_BATCH_FILES_MAX", 2)


def calls(tmp_path: Path) -> int:
    home, index, files = Home(tmp_path / "none"), MemoryProjection(), FailingFiles()
    prepare(home, index)
    run(home, index, files)
    check(home, index)
    assert {"create", "write", "fsync", "fdatasync", "sync_dir", "rename", "unlink", "truncate"} - set(files.calls) <= {
        "truncate"
    }
    return len(files.calls)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("forever", [False, True], ids=["once", "for ever"])
def test_a_failure_at_any_call_loses_nothing_and_doubles_nothing(tmp_path: Path, error, forever):
    first = 1 + ERRORS.index(error) % STEP
    for at in range(first, calls(tmp_path) + 1, STEP):
        home, index = Home(tmp_path / f"홈 {at}"), MemoryProjection()
        prepare(home, index)
        with contextlib.suppress(Problem):  # some calls may fail without anybody having to know
            run(home, index, FailingFiles(at, error, forever))
        check(home, index)


def test_a_death_at_any_call_loses_nothing_and_doubles_nothing(tmp_path: Path):
    for at in range(1, calls(tmp_path) + 1):
        home, index = Home(tmp_path / f"홈 {at}"), MemoryProjection()
        prepare(home, index)
        with pytest.raises(Death):
            run(home, index, FailingFiles(at, Death, forever=True))
        check(home, index)


def test_a_death_in_the_middle_of_any_append_loses_nothing_and_doubles_nothing(tmp_path: Path):
    class Torn(FailingFiles):
        """Dies in a write, after a part of the bytes."""

        def write(self, handle: int, data: bytes) -> int:
            self.calls.append("write")
            if self.calls.count("write") == at:
                RealFiles.write(self, handle, data[: seeds.randrange(len(data))])
                raise Death
            return RealFiles.write(self, handle, data)

    seeds = random.Random(4)
    for n in range(count("deaths in an append", quick=25, full=400)):
        at = 1 + n % 6
        home, index = Home(tmp_path / f"홈 {n}"), MemoryProjection()
        prepare(home, index)
        with contextlib.suppress(Death):
            run(home, index, Torn())
        check(home, index)


def test_any_series_of_failures_and_deaths_loses_nothing_and_doubles_nothing(tmp_path: Path):
    seeds = random.Random(9)
    for n in range(count("series of failures", quick=20, full=300)):
        home, index = Home(tmp_path / f"홈 {n}"), MemoryProjection()
        prepare(home, index)
        for _ in range(seeds.randint(2, 6)):
            error = seeds.choice([*ERRORS, Death])
            files = FailingFiles(seeds.randint(1, 60), error, seeds.random() < 0.4)
            with contextlib.suppress(Problem, Death):
                run(home, index, files)
        check(home, index)


@pytest.mark.parametrize("error", [errno.ENOSPC, "short"])
def test_a_full_disk_that_empties_later_costs_nothing(tmp_path: Path, error):
    home, index = Home(tmp_path / "home"), MemoryProjection()
    prepare(home, index)
    for at in range(1, 40, 3):
        try:
            run(home, index, FailingFiles(at, error, forever=True))
        except Problem:
            continue
    check(home, index)


def test_a_failed_sync_gives_up_the_segment_and_the_writer(tmp_path: Path):
    home, index = Home(tmp_path / "home"), MemoryProjection()
    put_capture(home, "claude", "Stop", b"1", CLOCK._replace(mono=1))
    one = ingester(home, index, clock=CLOCK)
    one.run()
    writer = one.identity.writer
    put_capture(home, "claude", "Stop", b"2", CLOCK._replace(mono=2))
    files = FailingFiles()
    ingester(home, MemoryProjection(), files, CLOCK)

    class NoSync(FailingFiles):
        def fdatasync(self, handle: int) -> None:
            if not failed:
                failed.append(1)
                raise OSError(errno.EIO, "input/output error")

    failed: list[int] = []
    two = ingester(home, index, NoSync(), CLOCK)
    # Recovery has nothing to sync here, so the failing call is that of the append.
    two.run()
    assert failed == [1]
    assert two.identity.writer != writer
    assert two.identity.notes[-1].what == "writing failed: input/output error"
    assert index.texts() == ["1", "2"]
    found = [read_segment(RealFiles(), str(path)) for path in segments(home)]
    assert sorted(scan.footer is not None for scan in found) == [False, True]


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("locked"), sqlite3.DatabaseError("malformed"), OSError(5, "x")]
)
def test_a_projection_that_fails_leaves_the_spool_and_a_good_segment(tmp_path: Path, error):
    home, index = Home(tmp_path / "home"), MemoryProjection()
    put_capture(home, "claude", "Stop", "글".encode(), CLOCK)
    index.failures = [error]
    one = ingester(home, index, clock=CLOCK)
    with pytest.raises(type(error)):
        one.run()
    assert len(pending(home)) == 1
    assert len(events_on_disk(segments(home))) == 2
    report = one.run()
    assert (report.recovered, report.events, report.known, report.files) == (2, 0, 1, 1)
    assert index.texts() == ["글"]
    assert len(events_on_disk(segments(home))) == 2


def test_a_file_that_cannot_be_removed_is_known_the_next_time(tmp_path: Path):
    class Sticky(FailingFiles):
        def unlink(self, path: str) -> None:
            if "/spool/" in path:
                raise OSError(errno.EACCES, "not yours")
            super().unlink(path)

    home, index = Home(tmp_path / "home"), MemoryProjection()
    put_capture(home, "claude", "Stop", b"1", CLOCK)
    for _ in range(3):
        assert ingester(home, index, Sticky(), CLOCK).run().files == 1
    assert index.texts() == ["1"]
    assert len(events_on_disk(segments(home))) == 2


def test_one_unreadable_spool_file_stays_and_stops_nobody(tmp_path: Path):
    class BadSector(FailingFiles):
        def read(self, path: str, limit: int) -> bytes:
            if path.endswith(bad):
                raise OSError(errno.EIO, "input/output error")
            return super().read(path, limit)

    home, index = Home(tmp_path / "home"), MemoryProjection()
    for n in range(3):
        put_capture(home, "claude", "Stop", b"%d" % n, CLOCK._replace(mono=n))
    bad = pending(home)[1]
    report = ingester(home, index, BadSector(), CLOCK).run()
    assert (report.files, report.unread, report.left) == (2, 1, 1)
    assert pending(home) == [bad]
    ingester(home, index, clock=CLOCK).run()
    assert sorted(index.texts()) == ["0", "1", "2"]
