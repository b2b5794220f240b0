from __future__ import annotations

import errno
import random
import shutil
from pathlib import Path

import pytest

from memorize.clock import FixedClock
from memorize.errors import CannotRead, IndexDamaged
from memorize.log import recovery
from memorize.log.files import RealFiles
from memorize.log.recovery import IndexAhead
from memorize.log.segments import HEADER_BYTES, read_segment, scan_segment
from memorize.log.spool import pending, put_capture
from memorize.log.verify import CLEAN, verify
from memorize.paths import Home
from tests.counts import count
from tests.log.fakes import FailingFiles, MemoryProjection, events_on_disk, ingester, segments

CLOCK = FixedClock(mono=1_000 * 10**9)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "기억 state")


@pytest.fixture
def index() -> MemoryProjection:
    return MemoryProjection()


def put(home: Home, *texts: str) -> None:
    for n, text in enumerate(texts):
        put_capture(home, "claude", "Stop", text.encode(), CLOCK._replace(mono=n + 1))


def run(home: Home, index: MemoryProjection, *texts: str, files: RealFiles | None = None):
    put(home, *texts)
    return ingester(home, index, files, CLOCK).run()


def footers(home: Home) -> list[bool]:
    return sorted(read_segment(RealFiles(), str(path)).footer is not None for path in segments(home))


def test_an_index_that_was_deleted_is_filled_from_the_segments(home: Home, index: MemoryProjection, monkeypatch):
    monkeypatch.setattr(recovery, "CHUNK_EVENTS_MAX", 4)
    for n in range(10):
        run(home, index, f"{n}")
    fresh = MemoryProjection()
    report = run(home, fresh, "last")
    assert (report.recovered, report.events) == (11, 1)
    assert fresh.texts() == [*index.texts(), "last"]
    assert [len(events) for events in fresh.applied] == [4, 4, 3, 1]
    assert len(segments(home)) == 1


def test_a_torn_end_of_any_length_is_cut_and_the_capture_comes_again(home: Home, index: MemoryProjection):
    run(home, index, "처음")
    (path,) = segments(home)
    size = path.stat().st_size
    saved = MemoryProjection()
    saved.__dict__.update(
        {key: value.copy() if isinstance(value, dict) else value for key, value in vars(index).items()}
    )
    run(home, index, "두 번째 기억")
    whole = path.read_bytes()
    for end in range(size, len(whole), count("bytes between torn ends", quick=17, full=1)):
        path.write_bytes(whole[:end])
        again = MemoryProjection()
        again.__dict__.update({k: v.copy() if isinstance(v, dict) else v for k, v in vars(saved).items()})
        report = run(home, again, "두 번째 기억")
        assert report.damages == ()
        assert again.texts() == ["처음", "두 번째 기억"]
        assert read_segment(RealFiles(), str(path)).damages == []
        assert len(segments(home)) == 1
        assert [event.header.seq for event in events_on_disk([path])] == [1, 2, 3]


def test_the_recovered_end_is_made_durable_before_it_is_indexed(home: Home, index: MemoryProjection):
    run(home, index, "x")
    order: list[str] = []

    class Files(FailingFiles):
        def fdatasync(self, handle: int) -> None:
            order.append("sync")

    class Index(MemoryProjection):
        def apply(self, events, offsets, received_ms):
            order.append("apply")
            super().apply(events, offsets, received_ms)

    ingester(home, Index(), Files(), CLOCK).run()
    assert order == ["sync", "apply"]


@pytest.mark.parametrize("end", [bytes(1), bytes(4096), b""])
def test_zeros_at_the_end_are_cut(home: Home, index: MemoryProjection, end):
    run(home, index, "1")
    (path,) = segments(home)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + end)
    report = run(home, index)
    assert report.damages == ()
    assert path.stat().st_size == size


@pytest.mark.parametrize("end", [b"garbage", "쓰레기".encode() * 100])
def test_garbage_at_the_end_is_kept_and_costs_the_writer(home: Home, index: MemoryProjection, end):
    run(home, index, "1")
    (path,) = segments(home)
    data = path.read_bytes() + end
    path.write_bytes(data)
    report = run(home, index, "2")
    assert [damage.length for _, damage in report.damages] == [len(end)]
    assert path.read_bytes().startswith(data)
    assert footers(home) == [False, True]
    assert index.texts() == ["1", "2"]
    assert run(home, index, "3").damages == ()
    assert index.texts() == ["1", "2", "3"]


def test_a_flipped_bit_in_what_is_not_indexed_costs_at_most_one_event_and_is_named(home: Home, index: MemoryProjection):
    run(home, index, *(f"{n}" for n in range(12)))
    (path,) = segments(home)
    data = path.read_bytes()
    seeds = random.Random(8)
    for _ in range(count("flipped bits under the ingester", quick=25, full=400)):
        bit = seeds.randrange(len(data) * 8)
        broken = bytearray(data)
        broken[bit // 8] ^= 1 << bit % 8
        for other in segments(home):
            other.unlink()
        path.write_bytes(bytes(broken))
        fresh = MemoryProjection()
        report = run(home, fresh, "after")
        assert len(report.damages) == 1
        assert len(fresh.events) >= 13
        assert "after" in fresh.texts()
        kept = path.read_bytes()
        assert kept[: len(data)] == bytes(broken)
        assert len(scan_segment(kept).frames) >= 12


def test_damage_before_what_is_indexed_is_left_alone(home: Home, index: MemoryProjection):
    run(home, index, "1", "2")
    (path,) = segments(home)
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + 30] ^= 1
    path.write_bytes(bytes(data))
    run(home, index, "3")
    assert index.texts() == ["1", "2", "3"]
    assert path.read_bytes().startswith(bytes(data))


def test_an_index_that_knows_more_than_there_is_must_be_rebuilt(home: Home, index: MemoryProjection):
    run(home, index, "1")
    (path,) = segments(home)
    short = path.read_bytes()
    run(home, index, "2")
    first = ingester(home, index).identity
    path.write_bytes(short)
    put(home, "3")
    one = ingester(home, index, clock=CLOCK)
    for _ in range(3):
        with pytest.raises(IndexAhead) as caught:
            one.run()
    assert caught.value.file == f"segments/{path.name}"
    assert (caught.value.offset, caught.value.size) > (len(short), 0)
    renewed = ingester(home, index).identity
    assert renewed.replica != first.replica
    assert len(renewed.notes) == len(first.notes) + 1
    rebuilt = MemoryProjection()
    ingester(home, rebuilt, clock=CLOCK).run()
    assert rebuilt.texts() == ["1", "3"]
    assert pending(home) == []
    numbers = [(event.header.writer, event.header.seq) for event in rebuilt.events]
    assert len(set(numbers)) == len(numbers)


def test_a_segment_that_is_gone_renews_the_replica(home: Home, index: MemoryProjection):
    run(home, index, "1")
    first = ingester(home, index).identity
    segments(home)[0].unlink()
    fresh = MemoryProjection()
    run(home, fresh, "2")
    second = ingester(home, index).identity
    assert second.replica != first.replica
    assert second.store == first.store
    assert [event.kind for event in fresh.events] == ["device.hello", "observed.note"]


def test_a_state_directory_put_back_from_a_copy_goes_on_as_another_replica(home: Home, index: MemoryProjection):
    run(home, index, "1")
    first = ingester(home, index).identity
    copy = home.root.with_name("backup")
    shutil.copytree(home.root, copy)
    run(home, index, "2")
    shutil.rmtree(home.root)
    shutil.copytree(copy, home.root)
    restored = MemoryProjection()
    run(home, restored, "3")
    assert restored.texts() == ["1", "3"]
    assert ingester(home, restored).identity.replica != first.replica
    assert [event.kind for event in restored.events].count("device.hello") == 2


@pytest.mark.parametrize("size", [0, 1, 50, 95, 96])
def test_a_segment_whose_creation_was_cut_short_is_replaced(home: Home, index: MemoryProjection, size):
    run(home, index, "1")
    boot = CLOCK._replace(boot_id=b"\x02" * 16)
    put(home, "2")
    one = ingester(home, index, clock=boot)
    cut = home.segments / f"{one.identity.writer.hex()}-00000001.mzs"
    cut.write_bytes(bytes(size))
    report = one.run()
    assert report.damages == ()
    assert index.texts() == ["1", "2"]
    assert not cut.exists()
    assert footers(home) == [False, True]
    assert ingester(home, index, clock=boot).run().recovered == 0


def test_a_sealed_segment_is_never_opened_again(home: Home, index: MemoryProjection):
    run(home, index, "1")
    (path,) = segments(home)
    handle = RealFiles().reopen(str(path))
    from memorize.log.segments import seal

    seal(RealFiles(), str(path), handle)
    RealFiles().close(handle)
    sealed = path.read_bytes()
    run(home, index, "2")
    assert path.read_bytes() == sealed
    assert len(segments(home)) == 2
    events = sorted(events_on_disk(segments(home)), key=lambda event: event.header.seq)
    assert [event.header.seq for event in events] == [1, 2, 3]
    assert events[2].header.prev == events[1].id


def test_an_input_error_is_never_the_end_of_an_own_segment(home: Home, index: MemoryProjection):
    run(home, index, "1")
    (path,) = segments(home)
    data = path.read_bytes()

    class BadSector(FailingFiles):
        def pread(self, name: str, offset: int, length: int) -> bytes:
            if name == str(path):
                raise OSError(errno.EIO, "input/output error")
            return super().pread(name, offset, length)

    put(home, "2")
    with pytest.raises(CannotRead, match=path.name):
        ingester(home, MemoryProjection(), BadSector(), CLOCK).run()
    assert path.read_bytes() == data
    assert len(pending(home)) == 1


def test_a_received_file_that_cannot_be_read_stops_nobody(home: Home, index: MemoryProjection):
    run(home, index, "1")

    class BadSector(FailingFiles):
        def pread(self, name: str, offset: int, length: int) -> bytes:
            if "/received/" in name:
                raise OSError(errno.EIO, "input/output error")
            return super().pread(name, offset, length)

    (home.received / "x.mzs").write_bytes(b"x" * 200)
    report = run(home, index, "2", files=BadSector())
    assert report.unreadable == ("received/x.mzs",)
    assert index.texts() == ["1", "2"]


def test_a_received_file_that_a_crash_cut_short_is_cut_to_its_last_whole_event(
    home: Home, index: MemoryProjection, tmp_path: Path
):
    other, theirs = Home(tmp_path / "other"), MemoryProjection()
    run(other, theirs, "하나", "둘")
    (source,) = segments(other)
    data = source.read_bytes()
    ingester(home, index).run()
    path = home.received / source.name
    path.write_bytes(data[:-10])
    assert run(home, index).damages == ()
    assert index.texts() == ["하나"]
    whole = path.read_bytes()
    assert data.startswith(whole)
    assert scan_segment(whole).end == len(whole)
    assert verify(home, deep=True).exit == CLEAN
    assert run(home, index).damages == ()


def test_files_that_are_no_segments_are_left_alone(home: Home, index: MemoryProjection):
    run(home, index, "1")
    for folder in (home.segments, home.received):
        (folder / "notes.txt").write_text("mine")
        (folder / "folder.mzs").mkdir()
    run(home, index, "2")
    assert index.texts() == ["1", "2"]
    assert (home.segments / "notes.txt").read_text() == "mine"


def test_random_bytes_as_a_received_file_are_damage(home: Home, index: MemoryProjection):
    run(home, index, "1")
    seeds = random.Random(2)
    for n, size in enumerate([0, 1, 95, 96, 97, 5000]):
        (home.received / f"{n}.mzs").write_bytes(seeds.randbytes(size))
    report = run(home, index, "2")
    assert index.texts() == ["1", "2"]
    assert {name for name, _ in report.damages} >= {f"received/{n}.mzs" for n in range(4, 6)}
    assert run(home, index).damages == ()


def test_a_place_that_only_a_damaged_index_names_cuts_nothing_off(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    projection = MemoryProjection()
    for number in range(3):
        put_capture(home, "claude", "Stop", f"기억 {number}".encode(), FixedClock())
    work = ingester(home, projection)
    work.run()
    work.close()
    (path,) = segments(home)
    whole = path.read_bytes()
    for less in range(1, 60):
        wrong = MemoryProjection()
        wrong.apply([], {f"segments/{path.name}": len(whole) - less}, 0)
        with pytest.raises(IndexDamaged):
            ingester(home, wrong).run()
        assert path.read_bytes() == whole


def test_a_segment_that_another_process_wrote_anew_is_gone_on_with_in_its_place(
    home: Home, index: MemoryProjection
) -> None:
    work = ingester(home, index, clock=CLOCK)
    put_capture(home, "claude", "Stop", "먼저".encode(), CLOCK)
    work.run()
    (path,) = segments(home)
    beside = path.with_suffix(".mzs.new")
    beside.write_bytes(path.read_bytes())
    beside.replace(path)
    put_capture(home, "claude", "Stop", b"danach", CLOCK)
    work.run()
    assert len(segments(home)) == 1
    assert [event.payload["text"] for event in events_on_disk([path]) if event.payload and "text" in event.payload] == [
        "먼저",
        "danach",
    ]
