"""Bodies go, everything else stays: at any moment, whatever crashes, and through every reader."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.errors import CannotRead, CannotWrite
from memorize.ids import event_id, random_id
from memorize.limits import FORMAT
from memorize.log.codec import decode, encode, new_header
from memorize.log.frames import ERASED, EVENT, SIGNATURE_BYTES, SIGNED, pack_frame
from memorize.log.scrub import BESIDE, scrub, without_bodies
from memorize.log.segments import (
    HEADER_BYTES,
    SegmentHeader,
    SegmentWriter,
    fresh_header,
    make_footer,
    pack_footer,
    pack_header,
    read_event,
    scan_segment,
)
from memorize.log.spool import put_capture
from memorize.log.verify import CLEAN, verify
from memorize.model import OBSERVED_NOTE, Envelope
from memorize.paths import Home
from tests.log.fakes import FailingFiles, MemoryProjection, QuickFiles, events_on_disk, ingester, segments

WORDS = ("hunter2-secret", "아무도모르는비밀", "暗号の言葉")
MARKER = b"\x07markers"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "상태")


def fill(home: Home, count: int = 8) -> MemoryProjection:
    projection = MemoryProjection()
    work = ingester(home, projection)
    for number in range(count):
        put_capture(home, "claude", "Stop", f"{number} {WORDS[number % 3]}".encode(), work._clock)
    work.run()
    work.close()
    return projection


def chosen(projection: MemoryProjection, word: str) -> dict[bytes, str]:
    return {
        event.id: str(event.payload["text"])
        for event in projection.events
        if event.payload and word in str(event.payload.get("text", ""))
    }


def everywhere(home: Home) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(home.root.rglob("*")) if path.is_file())


@pytest.mark.parametrize("word", WORDS)
def test_the_words_are_gone_and_every_frame_is_where_it_was(home: Home, word: str) -> None:
    projection = fill(home)
    ids = chosen(projection, word)
    before = {path: scan_segment(path.read_bytes()) for path in segments(home)}
    assert word.encode() in everywhere(home)
    done = scrub(home, QuickFiles(), set(ids), {})
    assert (done.bodies, done.files) == (len(ids), 1)
    assert word.encode() not in everywhere(home)
    for path, found in before.items():
        after = scan_segment(path.read_bytes())
        assert [(f.offset, f.length, f.header) for f in after.frames] == [
            (f.offset, f.length, f.header) for f in found.frames
        ]
        assert not after.damages
        assert after.end == found.end
        assert after.footer == found.footer
    for stored in projection.stored.values():
        event = read_event(home.root / stored.file, stored.offset, stored.length)
        assert event.header == stored.event.header
        assert event.payload == (None if event.id in ids else stored.event.payload)
    assert verify(home, deep=True, files=QuickFiles(), offsets=projection.offsets()).exit == CLEAN


def test_writing_goes_on_behind_an_erased_end_in_whichever_process_had_the_file_open(home: Home) -> None:
    projection = MemoryProjection()
    one, other = ingester(home, projection), ingester(home, projection)
    put_capture(home, "claude", "Stop", WORDS[1].encode(), one._clock)
    one.run()
    scrub(home, QuickFiles(), set(chosen(projection, WORDS[1])), {})
    for work, text in ((one, "다음"), (other, "then"), (one, "그리고")):
        put_capture(home, "claude", "Stop", text.encode(), work._clock)
        work.run()
    one.close()
    other.close()
    texts = [
        event.payload["text"] for event in events_on_disk(segments(home)) if event.payload and "text" in event.payload
    ]
    assert sorted(texts) == sorted(["다음", "then", "그리고"])
    assert verify(home, deep=True, files=QuickFiles(), offsets=projection.offsets()).exit == CLEAN


def test_a_file_keeps_the_time_of_its_last_writing(home: Home) -> None:
    projection = fill(home)
    (path,) = segments(home)
    QuickFiles().touch(str(path), 1_700_000_000_123)
    scrub(home, QuickFiles(), set(chosen(projection, WORDS[0])), {})
    assert QuickFiles().modified_ms(str(path)) == 1_700_000_000_123
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_second_time_changes_nothing(home: Home) -> None:
    projection = fill(home)
    ids = set(chosen(projection, WORDS[0]))
    scrub(home, QuickFiles(), ids, {})
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in segments(home)}
    assert scrub(home, QuickFiles(), ids, {}) == (0, 0)
    assert {path: (path.read_bytes(), path.stat().st_ino) for path in segments(home)} == before


def test_a_copy_of_the_event_in_another_file_and_what_a_crash_left_beside_go_too(home: Home) -> None:
    projection = fill(home)
    (path,) = segments(home)
    (home.received / f"{random_id().hex()}-00000001.mzs").write_bytes(path.read_bytes())
    (home.segments / (path.name + BESIDE)).write_bytes(path.read_bytes()[:200] + WORDS[1].encode())
    done = scrub(home, QuickFiles(), set(chosen(projection, WORDS[1])), {})
    assert done.files == 2
    assert WORDS[1].encode() not in everywhere(home)
    assert sorted(p.name for p in home.segments.iterdir()) == [path.name]


@pytest.mark.parametrize("where", ["header", "body", "crc", "marker", "total"])
def test_a_damaged_frame_is_emptied_where_it_is_known_to_lie(home: Home, where: str) -> None:
    projection = fill(home)
    ids = chosen(projection, WORDS[0])
    spots: dict[str, list[tuple[int, int]]] = {}
    for identity in ids:
        stored = projection.stored[identity]
        spots.setdefault(stored.file, []).append((stored.offset, stored.length))
    (path,) = segments(home)
    data = bytearray(path.read_bytes())
    stored = projection.stored[next(iter(ids))]
    at = {"header": 30, "body": stored.length - 12, "crc": 17, "marker": 1, "total": 11}[where]
    data[stored.offset + at] ^= 0xFF
    path.write_bytes(data)
    before = [frame.offset for frame in scan_segment(bytes(data)).frames]
    assert scrub(home, QuickFiles(), set(ids), spots).bodies == len(ids)
    assert WORDS[0].encode() not in path.read_bytes()
    after = scan_segment(path.read_bytes())
    assert [frame.offset for frame in after.frames] == before
    assert [(d.offset, d.length) for d in after.damages] == [(stored.offset, stored.length)]
    assert not after.torn
    assert scrub(home, QuickFiles(), set(ids), spots).bodies == 0


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, "short"])
def test_when_the_disk_fails_nothing_has_changed_and_the_next_attempt_succeeds(home: Home, error: int | str) -> None:
    projection = fill(home)
    ids = set(chosen(projection, WORDS[2]))
    before = everywhere(home)
    calls = FailingFiles()
    (path,) = segments(home)
    first = path.read_bytes()
    scrub(home, calls, ids, {})
    path.write_bytes(first)
    changing = [at for at, name in enumerate(calls.calls, 1) if name not in ("lock", "unlink")]
    renamed = calls.calls.index("rename") + 1
    for at in changing:
        with pytest.raises((CannotWrite, CannotRead)):
            scrub(home, FailingFiles(at, error), ids, {})
        if at <= renamed:
            assert everywhere(home) == before, calls.calls[at - 1]
        assert sorted(p.name for p in home.segments.iterdir()) == [path.name]
        path.write_bytes(first)
    scrub(home, QuickFiles(), ids, {})
    assert WORDS[2].encode() not in everywhere(home)


def made(number: int, seed: random.Random) -> tuple[bytes, bytes, bytes]:
    header = new_header(b"s" * 16, b"r" * 16, b"w" * 16, OBSERVED_NOTE)._replace(seq=number, lamport=number)
    found = encode(header, {"text": f"{number} 비밀 {seed.random()}"}, seed.randbytes(16))
    return found.event.id, found.header, found.body


@given(st.integers(0, 2**32), st.integers(0, 12), st.booleans())
def test_any_choice_of_any_file_loses_those_bodies_and_nothing_else(seed: int, size: int, sealed: bool) -> None:
    chance = random.Random(seed)
    header = SegmentHeader(FORMAT, b"s" * 16, b"r" * 16, b"w" * 16, 1, MARKER, 5)
    data, ids, bodies = pack_header(header), [], {}
    for number in range(1, size + 1):
        identity, raw, body = made(number, chance)
        signature = chance.randbytes(SIGNATURE_BYTES) if chance.random() < 0.3 else b""
        bare = chance.random() < 0.2
        flags = (SIGNED if signature else 0) | (ERASED if bare else 0)
        data += pack_frame(MARKER, EVENT, flags, raw, b"" if bare else body, signature)
        ids.append(identity)
        bodies[identity] = None if bare else body
    if sealed:
        data += pack_footer(MARKER, make_footer(ids, 1, size))
    if chance.random() < 0.3:
        data += data[HEADER_BYTES : HEADER_BYTES + chance.randrange(30)]
    targets = {identity for identity in ids if chance.random() < 0.5} | {b"x" * 32}
    before, (after, taken) = scan_segment(data), without_bodies(data, targets)
    assert len(after) == len(data)
    assert taken == sum(bodies[identity] is not None for identity in targets if identity in bodies)
    found = scan_segment(after)
    assert (found.header, found.footer, found.torn, found.end) == (
        before.header,
        before.footer,
        before.torn,
        before.end,
    )
    for old, new in zip(before.frames, found.frames, strict=True):
        assert (old.offset, old.length, old.header, old.signature) == (
            new.offset,
            new.length,
            new.header,
            new.signature,
        )
        identity = event_id(new.header)
        gone = identity in targets or bodies[identity] is None
        assert bool(new.flags & ERASED) == gone
        assert bool(new.flags & SIGNED) == bool(old.flags & SIGNED)
        assert decode(new.header, None if gone else new.body).id == identity
        assert not new.body.strip(b"\0") if gone else new.body == old.body
    assert without_bodies(after, targets) == (after, 0)


def test_a_received_file_is_rewritten_and_more_is_received_into_it(home: Home) -> None:
    projection = MemoryProjection()
    work = ingester(home, projection)
    seed = random.Random(4)
    envelopes = []
    for number in range(1, 5):
        identity, raw, body = made(number, seed)
        envelopes.append(Envelope(identity, number, raw, body))
    work.receive(envelopes[:3])
    scrub(home, QuickFiles(), {envelopes[1].id}, {})
    assert work.receive(envelopes[3:]).new == 1
    work.close()
    found = {event.id: event.payload for event in events_on_disk(sorted(home.received.glob("*.mzs")))}
    assert [found[one.id] is None for one in envelopes] == [False, True, False, False]
    assert verify(home, deep=True, files=QuickFiles(), offsets=projection.offsets()).exit == CLEAN


def test_a_file_that_is_empty_but_for_its_header_is_left_alone(home: Home) -> None:
    fill(home)
    header = fresh_header(b"s" * 16, b"r" * 16, random_id(), 1, 1)
    SegmentWriter.create(QuickFiles(), str(home.received), header).close()
    before = everywhere(home)
    assert scrub(home, QuickFiles(), {b"x" * 32}, {}) == (0, 0)
    assert everywhere(home) == before
