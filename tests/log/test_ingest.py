from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memorize.capture.memorize_hook import spool_name
from memorize.clock import FixedClock
from memorize.errors import Busy
from memorize.log import ingest
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.log.lock import Lock
from memorize.log.segments import read_event, read_segment
from memorize.log.spool import Unreadable, entry, pending, put_batch, put_capture
from memorize.model import Draft
from memorize.paths import Home
from tests.log.fakes import (
    FailingFiles,
    MemoryProjection,
    QuickFiles,
    events_on_disk,
    ingester,
    no_machine,
    note,
    segments,
)

CLOCK = FixedClock(mono=1_000 * 10**9)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "기억 state")


@pytest.fixture
def index() -> MemoryProjection:
    return MemoryProjection()


def put(home: Home, text: str, mono: int = CLOCK.mono, **fields: Any) -> bytes:
    return put_capture(home, "claude", "Stop", text.encode(), CLOCK._replace(mono=mono), **fields)


def test_captures_become_events_in_the_order_of_capture(home: Home, index: MemoryProjection):
    for n in (3, 1, 2):
        put(home, f"메모 {n}", mono=n)
    report = ingester(home, index, clock=CLOCK).run()
    assert (report.files, report.events, report.left) == (3, 4, 0)
    assert index.texts() == ["메모 1", "메모 2", "메모 3"]
    assert pending(home) == []


def test_the_first_event_of_a_replica_says_what_it_is(home: Home, index: MemoryProjection):
    put(home, "x")
    one = ingester(home, index)
    one.run()
    hello, _ = index.events
    identity = one.identity
    assert (hello.kind, hello.header.seq, hello.header.nonce) == ("device.hello", 1, identity.replica)
    assert hello.payload is not None
    assert hello.payload["device"] == identity.device.hex()
    assert hello.payload["reads"] == [1]
    put(home, "y")
    ingester(home, index).run()
    assert [event.kind for event in index.events].count("device.hello") == 1


def test_nothing_to_do_writes_nothing(home: Home, index: MemoryProjection):
    assert ingester(home, index).run() == ingest.IngestReport()
    assert segments(home) == []
    assert index.applied == []


def test_every_event_can_be_read_where_the_index_says_and_the_chain_holds(home: Home, index: MemoryProjection):
    for n in range(20):
        put(home, f"줄 {n}", mono=n)
    ingester(home, index, clock=CLOCK).run()
    prev = b""
    for number, event in enumerate(index.events, 1):
        stored = index.stored[event.id]
        assert read_event(home.root / stored.file, stored.offset, stored.length) == event
        assert (event.header.seq, event.header.prev, event.header.lamport) == (number, prev, number)
        prev = event.id
    assert events_on_disk(segments(home)) == index.events
    assert index.ends == {f"segments/{segments(home)[0].name}": segments(home)[0].stat().st_size}


def test_a_batch_is_written_in_one_piece_with_its_references_resolved(home: Home, index: MemoryProjection):
    nonce = put_batch(
        home,
        [
            Draft("memory.formed", {"text": "하나"}, 0),
            Draft("memory.formed", {"text": "둘"}, 1),
            Draft("memory.superseded", {"reason": "r"}, 2, (1, 0, b"e" * 32)),
            Draft("window.consolidated", {"window": "w", "events": [0, 1, 2, b"f" * 32], "sources": [b"g" * 32]}, 3),
            Draft("observed.tool", {"events": [0, 1]}, 4),
        ],
        CLOCK,
        strict=True,
    )
    ingester(home, index).run()
    ids = index.ids[nonce]
    by_id = {event.id: event for event in index.events}
    assert by_id[ids[2]].header.deps == (ids[1], ids[0], b"e" * 32)
    claim, tool = by_id[ids[3]].payload, by_id[ids[4]].payload
    assert claim is not None
    assert claim["events"] == [ids[0], ids[1], ids[2], b"f" * 32]
    assert tool == {"events": [0, 1]}


def test_a_batch_of_which_a_part_is_known_refers_to_the_known_part(home: Home, index: MemoryProjection):
    nonce = put_batch(home, [Draft("a", {"text": "1"}, 0)], CLOCK, nonce=b"n" * 16)
    ingester(home, index).run()
    first = index.ids[nonce][0]
    put_batch(home, [Draft("a", {"text": "1"}, 0), Draft("b", {}, 1, (0,))], CLOCK, nonce=nonce)
    report = ingester(home, index).run()
    assert (report.events, report.known) == (1, 1)
    assert {event.kind: event.header.deps for event in index.events}["b"] == (first,)


def test_the_same_capture_twice_gives_one_event(home: Home, index: MemoryProjection):
    put(home, "once", nonce=b"n" * 16)
    ingester(home, index).run()
    put(home, "once", nonce=b"n" * 16)
    put(home, "once", mono=5, nonce=b"n" * 16)
    report = ingester(home, index).run()
    assert (report.files, report.events, report.known) == (2, 0, 2)
    assert index.texts() == ["once"]
    put(home, "twice in one batch", nonce=b"m" * 16)
    put(home, "twice in one batch", mono=5, nonce=b"m" * 16)
    assert ingester(home, index).run().events == 1


def test_every_string_is_redacted_before_it_is_written(home: Home, index: MemoryProjection, monkeypatch):
    def hide(value: Any) -> Any:
        assert isinstance(value, dict)
        return {key: item.replace("비밀", "[hidden]") if isinstance(item, str) else item for key, item in value.items()}

    monkeypatch.setattr(ingest, "redact_value", hide)
    put(home, "토큰 비밀 끝")
    put_batch(home, [Draft("memory.formed", {"text": "비밀"})], CLOCK)
    ingester(home, index).run()
    assert sorted(index.texts()) == ["[hidden]", "토큰 [hidden] 끝"]
    assert "비밀".encode() not in segments(home)[0].read_bytes()


def test_a_long_text_is_redacted_whole_and_cut_afterwards(home: Home, index: MemoryProjection, monkeypatch):
    lengths = []
    monkeypatch.setattr(ingest, "redact_value", lambda value: lengths.append(len(value.get("text", ""))) or value)
    put(home, "시작" + "가" * 1_000_000 + "끝")
    ingester(home, index).run()
    assert max(lengths) == 1_000_003
    (text,) = index.texts()
    assert text.startswith("시작가")
    assert text.endswith("가끝")
    assert "of 1000003 characters cut" in text


def test_bad_files_are_set_aside_and_stop_nobody(home: Home, index: MemoryProjection):
    put(home, "good", mono=1)
    put(home, "cut", mono=2)
    put(home, "zeros", mono=3)
    put_capture(home, "memorize", "batch", b"no batch", CLOCK._replace(mono=4))
    put(home, "also good", mono=5)
    new = home.spool / "new"
    names = pending(home)
    (new / names[1]).write_bytes(b"cu")
    (new / names[2]).write_bytes(bytes(5))
    (new / "foreign name").write_bytes(b"x")
    report = ingester(home, index, clock=CLOCK).run()
    assert (report.files, report.bad, report.left) == (2, 4, 0)
    assert index.texts() == ["good", "also good"]
    assert len(list((home.spool / "bad").iterdir())) == 4


@pytest.mark.parametrize(
    "error",
    [Unreadable("unknown"), ValueError("bug"), RecursionError(), KeyError("x"), UnicodeDecodeError("u", b"", 0, 1, "")],
)
def test_a_normaliser_that_fails_costs_its_capture_only(home: Home, index: MemoryProjection, error):
    def normalise(capture):
        if capture.data == b"poison":
            raise error
        return note(capture)

    put(home, "before", mono=1)
    put(home, "poison", mono=2)
    put(home, "after", mono=3)
    report = ingester(home, index, clock=CLOCK, normalise=normalise).run()
    assert (report.files, report.bad) == (2, 1)
    assert index.texts() == ["before", "after"]


def test_a_normaliser_without_the_disk_leaves_the_capture_for_later(home: Home, index: MemoryProjection):
    def normalise(capture):
        raise OSError("no more files")

    put(home, "later")
    report = ingester(home, index, normalise=normalise).run()
    assert (report.unread, report.bad, report.left) == (1, 0, 1)
    assert ingester(home, index).run().files == 1


@pytest.mark.parametrize(
    "draft",
    [
        Draft("k" * 65, {"text": "x"}),
        Draft("a", {"text": "x"}, 0, (7,)),
        Draft("a", {"text": "x"}, 0, (b"d" * 32,) * 201),
        Draft("a", "no map"),  # type: ignore[arg-type]
        Draft("window.consolidated", {"events": [9]}),
    ],
)
def test_drafts_that_break_the_limits_cost_their_capture_only(home: Home, index: MemoryProjection, draft):
    def normalise(capture):
        return [Draft("first", {}), draft._replace(ordinal=1)] if capture.data == b"poison" else note(capture)

    put(home, "before", mono=1)
    put(home, "poison", mono=2)
    put(home, "after", mono=3)
    report = ingester(home, index, clock=CLOCK, normalise=normalise).run()
    assert (report.files, report.events, report.bad) == (2, 3, 1)
    assert index.texts() == ["before", "after"]
    assert [event.header.seq for event in index.events] == [1, 2, 3]


def test_captures_without_events_are_done_and_leave_no_trace(home: Home, index: MemoryProjection):
    put(home, "read only")
    report = ingester(home, index, normalise=lambda capture: []).run()
    assert (report.files, report.events) == (1, 0)
    assert pending(home) == []
    assert segments(home) == []


def test_odd_payloads_are_stored_as_any_reader_will_find_them(home: Home, index: MemoryProjection):
    odd = {
        "text": "a\ud800",
        "ratio": 0.5,
        "deep": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]],
        "tuple": (1, 2),
        "null": None,
    }
    put(home, "x")
    ingester(home, index, normalise=lambda capture: [Draft("observed.tool", odd)]).run()
    assert events_on_disk(segments(home)) == index.events


def test_a_limit_takes_the_oldest(home: Home, index: MemoryProjection):
    for n in range(5):
        put(home, f"{n}", mono=n)
    report = ingester(home, index, clock=CLOCK).run(limit=2)
    assert (report.files, report.left) == (2, 3)
    assert index.texts() == ["0", "1"]


def test_many_files_go_in_batches_with_one_sync_each(
    home: Home, index: MemoryProjection, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ingest, "INGEST_BATCH_FILES_MAX", 256)
    for n in range(600):
        put(home, f"{n}", mono=n)
    files = FailingFiles()
    report = ingester(home, index, files, CLOCK).run()
    assert report.files == 600
    assert [len(events) for events in index.applied] == [257, 256, 88]
    assert files.calls.count("fdatasync") == 3
    writes = [call for call in files.calls if call == "write"]
    assert len(writes) == 3 + 1 + 3  # batches, segment header, identity and key


def test_captures_from_before_the_last_boot_come_first_and_name_no_boot(home: Home, index: MemoryProjection):
    put(home, "new boot", mono=10)
    put(home, "old boot", mono=CLOCK.mono + 5)
    old = home.spool / "new" / pending(home)[1]
    QuickFiles().touch(str(old), 1_700_000_000_000)
    ingester(home, index, clock=CLOCK).run()
    assert index.texts() == ["old boot", "new boot"]
    headers = {event.payload["text"]: event.header for event in index.events if event.payload and event.header.seq > 1}
    assert (headers["old boot"].boot, headers["old boot"].wall) == (b"", 1_700_000_000_000)
    assert headers["new boot"].boot == CLOCK.boot_id
    assert headers["new boot"].wall == CLOCK.wall - (CLOCK.mono - 10) // 1_000_000


def test_a_clock_thirty_days_off_changes_no_order(home: Home, index: MemoryProjection):
    month = 30 * 86_400_000
    for n, wall in enumerate([CLOCK.wall, CLOCK.wall + month, CLOCK.wall - month, 0, -5]):
        put(home, f"{n}")
        ingester(home, index, clock=CLOCK._replace(wall=wall)).run()
    assert index.texts() == ["0", "1", "2", "3", "4"]
    assert [event.header.seq for event in events_on_disk(segments(home))]
    assert len(events_on_disk(segments(home))) == 6


def test_the_lamport_number_follows_what_the_index_has_seen(home: Home, index: MemoryProjection):
    index.counter = 41
    put(home, "x")
    ingester(home, index).run()
    assert [event.header.lamport for event in index.events] == [42, 43]


def test_another_holder_of_the_lock_makes_it_busy(home: Home, index: MemoryProjection):
    put(home, "x")
    one = ingester(home, index)
    with Lock(home.locks / "ingest"), pytest.raises(Busy):
        one.run(wait_s=0)
    assert one.run().files == 1


def test_a_full_segment_is_sealed_and_followed_by_another(home: Home, index: MemoryProjection, monkeypatch):
    monkeypatch.setattr(ingest, "SEGMENT_BYTES_MAX", 4_000)
    monkeypatch.setattr(ingest, "BATCH_BYTES_MAX", 1_000)
    for n in range(60):
        put(home, f"{n} " + "글" * 60, mono=n)
    one = ingester(home, index, clock=CLOCK)
    one.run()
    found = [read_segment(RealFiles(), str(path)) for path in segments(home)]
    assert len(found) > 3
    assert [scan.footer is not None for scan in found] == [True] * (len(found) - 1) + [False]
    assert all(scan.damages == [] for scan in found)
    headers = [scan.header for scan in found if scan.header is not None]
    assert [header.first_seq for header in headers] == [
        1 + sum(len(s.frames) for s in found[:n]) for n in range(len(found))
    ]
    assert len({header.marker for header in headers}) == len(found)
    events = sorted(events_on_disk(segments(home)), key=lambda event: event.header.seq)
    assert [event.header.prev for event in events[1:]] == [event.id for event in events[:-1]]
    assert one.identity.active == segments(home)[-1].name
    assert load_or_renew(home, RealFiles(), CLOCK, no_machine) == one.identity
    assert ingester(home, index).run().recovered == 0


def test_an_old_segment_is_sealed(home: Home, index: MemoryProjection):
    put(home, "today")
    ingester(home, index, clock=CLOCK).run()
    put(home, "two days later")
    ingester(home, index, clock=CLOCK._replace(wall=CLOCK.wall + 2 * 86_400_000)).run()
    assert len(segments(home)) == 2
    assert index.texts() == ["today", "two days later"]


def test_a_boot_starts_a_new_writer_and_seals_the_segment_of_the_old(home: Home, index: MemoryProjection):
    put(home, "before")
    ingester(home, index, clock=CLOCK).run()
    put(home, "after", mono=3)
    ingester(home, index, clock=FixedClock(mono=5, boot_id=b"\x02" * 16)).run()
    found = {path: read_segment(RealFiles(), str(path)) for path in segments(home)}
    assert sorted(scan.footer is not None for scan in found.values()) == [False, True]
    assert [event.kind for event in index.events] == ["device.hello", "observed.note", "observed.note"]
    assert index.events[2].header.seq == 1
    assert index.events[2].header.lamport == 3
    report = ingester(home, index, clock=FixedClock(mono=5, boot_id=b"\x02" * 16)).run()
    assert report.damages == ()
    assert index.ends == {f"segments/{path.name}": path.stat().st_size for path in segments(home)}


def test_two_ingesters_take_turns_on_one_segment(home: Home, index: MemoryProjection):
    first, second = ingester(home, index), ingester(home, index)
    for n in range(6):
        put(home, f"{n}")
        (first if n % 2 else second).run()
    assert index.texts() == [f"{n}" for n in range(6)]
    assert len(segments(home)) == 1
    assert [event.header.seq for event in events_on_disk(segments(home))] == list(range(1, 8))


def descriptors() -> int:
    """Return how many descriptors this process has open, 0 where the system does not tell."""
    return sum(1 for _ in Path("/proc/self/fd").glob("*"))


def test_a_long_lived_ingester_keeps_its_segment_open_and_few_descriptors(home: Home, index: MemoryProjection):
    files = FailingFiles()
    one = ingester(home, index, files)
    for n in range(5):
        put(home, f"{n}")
        one.run()
    assert files.calls.count("reopen") == 0
    before = descriptors()
    for n in range(20):
        put(home, f"{n}")
        one.run()
    assert descriptors() == before
    one.close()
    one.close()


def test_received_files_are_indexed_and_raise_the_counter(home: Home, index: MemoryProjection, tmp_path: Path):
    other_home, other = Home(tmp_path / "other"), MemoryProjection()
    other.counter = 500
    put(other_home, "다른 기기에서")
    ingester(other_home, other).run()
    put(home, "mine")
    one = ingester(home, index)
    (source,) = segments(other_home)
    (home.received / source.name).write_bytes(source.read_bytes())
    one.run()
    assert sorted(index.texts()) == ["mine", "다른 기기에서"]
    assert f"received/{source.name}" in index.ends
    mine = next(event for event in index.events if event.payload and event.payload.get("text") == "mine")
    assert mine.header.lamport > 502
    assert (home.received / source.name).read_bytes() == source.read_bytes()


def test_a_leap_of_another_device_does_not_drag_the_counter_along(home: Home, index: MemoryProjection, tmp_path: Path):
    other_home, other = Home(tmp_path / "other"), MemoryProjection()
    other.counter = 2**50
    put(other_home, "leap")
    ingester(other_home, other).run()
    put(home, "mine")
    one = ingester(home, index)
    (source,) = segments(other_home)
    (home.received / source.name).write_bytes(source.read_bytes())
    one.run()
    mine = next(event for event in index.events if event.payload and event.payload.get("text") == "mine")
    assert mine.header.lamport < 10
    assert "leap" in index.texts()


def test_what_a_dead_hook_left_is_swept(home: Home, index: MemoryProjection):
    put(home, "x")
    left = home.spool / "tmp" / f"{1:016x}-dead"
    left.write_bytes(b"")
    ingester(home, index, clock=CLOCK._replace(mono=2 * 3600 * 10**9)).run()
    assert not left.exists()


def test_a_name_from_the_hook_is_what_the_ingester_reads(home: Home, index: MemoryProjection):
    put(home, "x")
    name = spool_name(7, b"n" * 16, 3, 0x352441C2, "codex", "UserPromptSubmit", cut=True)
    (home.spool / "new" / name).write_bytes(b"abc")
    found = entry(name)
    assert found is not None
    assert found.cut
    report = ingester(home, index, clock=CLOCK).run()
    assert (report.files, report.bad) == (2, 0)
