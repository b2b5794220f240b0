from __future__ import annotations

import contextlib
import errno
import random
from pathlib import Path

import msgpack
import pytest

from memorize.clock import FixedClock
from memorize.errors import Problem
from memorize.ids import event_id
from memorize.limits import LAMPORT_LEAP_MAX, RELAY_BODY_BYTES_MAX
from memorize.log import receive
from memorize.log.frames import ERASED, EVENT, SIGNED
from memorize.log.identity import KNOWN_ELSEWHERE
from memorize.log.segments import scan_segment
from memorize.log.spool import put_capture
from memorize.log.verify import CLEAN, verify
from memorize.model import Envelope, Received
from memorize.paths import Home
from tests.log.fakes import FailingFiles, MemoryProjection, ingester
from tests.log.others import Other, bare, received


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "기억 state")


@pytest.fixture
def index() -> MemoryProjection:
    return MemoryProjection()


def files_of(home: Home) -> list[Path]:
    return sorted(home.received.glob("*.mzs"))


def bodies(envelopes: list[Envelope]) -> list[tuple[bytes, bytes | None, bytes]]:
    return sorted((one.header, one.body, one.signature) for one in envelopes)


def test_what_others_wrote_is_kept_byte_for_byte_and_indexed(home: Home, index: MemoryProjection) -> None:
    given = Other().say("첫째 기억", "second", "三番目")
    assert ingester(home, index).receive(given) == Received(new=3)
    assert bodies(received(home)) == bodies(given)
    assert index.texts() == ["첫째 기억", "second", "三番目"]
    assert index.ends == {f"received/{files_of(home)[0].name}": files_of(home)[0].stat().st_size}
    assert verify(home, deep=True, offsets=index.offsets()).exit == CLEAN


def test_what_is_known_is_written_once_however_often_it_comes(home: Home, index: MemoryProjection) -> None:
    given = Other().say("하나", "둘")
    one = ingester(home, index)
    assert one.receive([*given, given[0]]) == Received(new=2, known=1)
    assert one.receive(given) == Received(known=2)
    assert ingester(home, index).receive(given) == Received(known=2)
    assert len(received(home)) == 2


def test_what_is_not_what_it_claims_to_be_is_dropped_and_the_rest_is_kept(home: Home, index: MemoryProjection) -> None:
    good, other = Other(1).say("good", "이것도")
    assert good.body is not None
    wrong = [
        good._replace(id=other.id),
        good._replace(id=b""),
        good._replace(body=good.body[:-1]),
        good._replace(body=good.body + b"x"),
        good._replace(header=good.header + b"x"),
        good._replace(header=b"", id=b""),
        good._replace(header=b"\x80"),
        good._replace(signature=b"short"),
        good._replace(body=b"x" * (RELAY_BODY_BYTES_MAX + 1)),
        good._replace(header=good.header + b"x" * 70_000),
    ]
    seeds = random.Random(5)
    wrong += [Envelope(seeds.randbytes(32), 1, seeds.randbytes(90), seeds.randbytes(9)) for _ in range(200)]
    assert ingester(home, index).receive([*wrong, good, other]) == Received(new=2, bad=len(wrong))
    assert index.texts() == ["good", "이것도"]


def test_an_event_without_its_body_is_wanted_until_the_body_comes(home: Home, index: MemoryProjection) -> None:
    given = Other().say("몸", "rest")
    one = ingester(home, index)
    assert one.receive(bare(given)) == Received(new=2)
    assert index.bodies([envelope.id for envelope in given]) == {envelope.id: False for envelope in given}
    assert one.receive(bare(given)) == Received(known=2)
    assert one.receive(given[:1]) == Received(bodies=1)
    assert one.receive([*bare(given), *given]) == Received(bodies=1, known=3)
    assert index.texts() == ["몸", "rest"]
    (path,) = files_of(home)
    flags = [frame.flags for frame in scan_segment(path.read_bytes()).frames if frame.type == EVENT]
    assert flags == [ERASED, ERASED, 0, 0]


def test_of_two_copies_in_one_batch_the_one_with_the_body_counts(home: Home, index: MemoryProjection) -> None:
    given = Other().say("하나", "둘")
    assert ingester(home, index).receive([*bare(given), *given, *bare(given)]) == Received(new=2, known=4)
    assert index.texts() == ["하나", "둘"]


def test_what_is_erased_here_loses_its_body_before_it_is_written(home: Home, index: MemoryProjection) -> None:
    secret, other = Other().say("지워진 비밀 secret", "kept")
    index.erased = {secret.id}
    assert ingester(home, index).receive([secret, other]) == Received(new=2, stripped=1)
    (path,) = files_of(home)
    assert "비밀".encode() not in path.read_bytes()
    assert bodies(received(home)) == bodies([secret._replace(body=None), other])


def test_signatures_travel_along(home: Home, index: MemoryProjection) -> None:
    first, second = Other().say("signed", "서명")
    given = [first._replace(signature=b"1" * 64), second._replace(signature=b"2" * 64, body=None)]
    assert ingester(home, index).receive(given) == Received(new=2)
    assert bodies(received(home)) == bodies(given)
    (path,) = files_of(home)
    assert [frame.flags for frame in scan_segment(path.read_bytes()).frames] == [SIGNED, SIGNED | ERASED]


def test_what_nobody_understands_is_kept(home: Home, index: MemoryProjection) -> None:
    other = Other()
    given = [
        other.write({"무엇": ["future"]}, kind="future.kind"),
        other.write({"text": "needs a newer reader"}, must=(77,)),
        other.write({}, format=9),
        other.write({"text": "sealed"}, scope_key=b"k" * 16),
        other.write({"text": "no writer"}, writer=b"odd"),
    ]
    assert ingester(home, index).receive(given) == Received(new=5)
    assert bodies(received(home)) == bodies(given)
    report = ingester(home, rebuilt := MemoryProjection()).run()
    assert report.recovered == 5
    assert not report.damages
    assert set(rebuilt.stored) == {envelope.id for envelope in given}


def test_what_comes_behind_the_twin_of_what_it_follows_is_not_missing(home: Home, index: MemoryProjection) -> None:
    one = Other()
    first = one.say("같은 처음")
    seq, lamport, prev = one.seq, one.lamport, one.prev
    twins = []
    for text in ("왼쪽 둘째", "오른쪽 둘째"):
        one.seq, one.lamport, one.prev = seq, lamport, prev
        twins += one.say(text)
    one.prev = min(twin.id for twin in twins)  # they are written in this order, so the other twin lies between
    given = [*first, *sorted(twins), *one.say("셋째")]
    ingester(home, index).receive(given)
    report = verify(home, deep=True, offsets=index.offsets())
    assert (report.exit, report.missing, report.events) == (CLEAN, (), 4)
    assert [fork.what for fork in report.forks] == ["does not follow the event before it"]


def test_twins_are_both_kept_and_are_no_damage(home: Home, index: MemoryProjection) -> None:
    one, other = Other(3), Other(3)
    shared = one.say("shared")
    assert other.say("shared") == shared
    given = [*shared, *one.say("this way", "다음"), *other.say("that way", "그다음")]
    assert ingester(home, index).receive(given) == Received(new=5)
    assert len({event.header.seq for event in index.events}) == 3
    assert verify(home, deep=True).exit == CLEAN


def test_a_leap_ahead_does_not_drag_the_counter_along(home: Home, index: MemoryProjection) -> None:
    other = Other()
    other.lamport = 500
    near = other.say("가까이")
    other.lamport += LAMPORT_LEAP_MAX + 5
    one = ingester(home, index)
    assert one.receive([*near, *other.say("far ahead")]) == Received(new=2)
    put_capture(home, "claude", "Stop", b"mine", FixedClock())
    one.run()
    mine = next(event for event in index.events if event.payload and event.payload.get("text") == "mine")
    assert 501 < mine.header.lamport < 600


def test_a_file_is_gone_on_with_until_it_is_full_then_sealed(home: Home, index: MemoryProjection, monkeypatch) -> None:
    monkeypatch.setattr(receive, "SEGMENT_BYTES_MAX", receive.BATCH_BYTES_MAX + 2_000)
    other = Other()
    given = [other.say(f"기억 {number} " + "x" * 200) for number in range(12)]
    for envelopes in given:
        ingester(home, index).receive(envelopes)  # each time another process
    found = [scan_segment(path.read_bytes()) for path in files_of(home)]
    assert 1 < len(found) < 6
    assert sum(scan.footer_at < 0 for scan in found) == 1
    assert sum(len(scan.frames) for scan in found) == 12
    assert len({path.name.partition("-")[0] for path in files_of(home)}) == len(found)
    ingester(home, index).run()
    assert verify(home, deep=True, offsets=index.offsets()).exit == CLEAN


def test_a_file_whose_end_is_damaged_is_left_and_sealed(home: Home, index: MemoryProjection) -> None:
    other = Other()
    ingester(home, index).receive(other.say("하나"))
    (path,) = files_of(home)
    with path.open("ab") as file:
        file.write(b"something that is no frame")
    assert ingester(home, index).receive(other.say("둘")) == Received(new=1)
    assert len(files_of(home)) == 2
    assert scan_segment(path.read_bytes()).footer_at > 0
    assert index.texts() == ["하나", "둘"]


@pytest.mark.parametrize("at", range(1, 40))
def test_when_the_disk_fails_nothing_is_there_by_half_and_it_can_be_given_again(tmp_path: Path, at: int) -> None:
    home, index = Home(tmp_path / "h"), MemoryProjection()
    other = Other()
    ingester(home, index).receive(other.say("before"))
    given = other.say("하나", "둘")
    for error in (errno.EIO, "short"):
        with contextlib.suppress(Problem):
            ingester(home, index, FailingFiles(at, error, forever=True)).receive(given)
    found = ingester(home, index).receive(given)
    assert found.new + found.known == 2
    assert not found.bad
    assert index.texts() == ["before", "하나", "둘"]
    assert verify(home, deep=True).exit == CLEAN


def test_events_of_this_replica_that_it_does_not_hold_give_it_a_new_name(home: Home, index: MemoryProjection) -> None:
    one = ingester(home, index)
    put_capture(home, "claude", "Stop", "제 것".encode(), FixedClock())
    one.run()
    before = one.identity
    other = Other()
    other.replica, other.writer, other.store = before.replica, before.writer, before.store
    other.seq = 50
    assert one.receive(other.say("내가 썼지만 모르는 것")) == Received(new=1)
    after = one.identity
    assert (after.store, after.device) == (before.store, before.device)
    assert after.replica != before.replica
    assert after.writer != before.writer
    assert after.notes[-1].what == KNOWN_ELSEWHERE
    put_capture(home, "claude", "Stop", "뒤에".encode(), FixedClock())
    one.run()
    assert one.receive(other.say("one more")) == Received(new=1)
    assert one.identity.replica == after.replica  # it is another's by now
    assert {"제 것", "내가 썼지만 모르는 것", "뒤에", "one more"} <= set(index.texts())
    late = next(event for event in index.events if event.payload and event.payload.get("text") == "뒤에")
    assert (late.header.writer, late.header.seq) == (after.writer, 2)  # behind the greeting of the new replica
    assert verify(home).exit == CLEAN


def test_what_it_holds_of_itself_gives_it_no_new_name(home: Home, index: MemoryProjection) -> None:
    one = ingester(home, index)
    put_capture(home, "claude", "Stop", "제 것".encode(), FixedClock())
    one.run()
    before = one.identity
    (path,) = home.segments.glob("*.mzs")
    given = [
        Envelope(stored.event.id, 0, frame.header, frame.body)
        for stored, frame in zip(index.stored.values(), scan_segment(path.read_bytes()).frames, strict=True)
    ]
    assert one.receive([*given, *bare(given)]) == Received(known=4)
    assert one.identity == before


def test_a_large_stream_is_cut_into_batches() -> None:
    other = Other()
    given = [other.write({"text": "x" * 100_000}) for _ in range(100)]
    sizes = [sum(len(one.body or b"") for one in batch) for batch in receive.in_batches(given)]
    assert len(sizes) == 3
    assert max(sizes) < receive.BATCH_BYTES_MAX + 200_000
    most = max(len(batch) for batch in receive.in_batches([Envelope(b"", 0, b"", None)] * 5_000))
    assert most == receive.BATCH_EVENTS_MAX
    assert list(receive.in_batches([])) == []


def grown(envelope: Envelope, size: int) -> Envelope:
    """Return the event with a header of so many bytes, by a key of the future."""
    fields = msgpack.unpackb(envelope.header, strict_map_key=False)
    raw = msgpack.packb({**fields, 99: b""})
    fields[99] = b"x" * (size - len(raw) - 1)
    raw = msgpack.packb(fields)
    return envelope._replace(id=event_id(raw), header=raw)


def test_a_header_of_the_largest_size_that_a_frame_can_hold_is_kept(home: Home, index: MemoryProjection) -> None:
    largest = grown(Other(1).say("큰 머리")[0], 0xFFFF)
    above = grown(Other(2).say("too large")[0], 0x10000)
    assert (len(largest.header), len(above.header)) == (0xFFFF, 0x10000)
    assert ingester(home, index).receive([largest, above]) == Received(new=1, bad=1)
    assert bodies(received(home)) == bodies([largest])
