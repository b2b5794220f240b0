from __future__ import annotations

import errno
from pathlib import Path
from zlib import crc32

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.capture.memorize_hook import spool_name
from memorize.clock import FixedClock
from memorize.errors import CannotWrite
from memorize.log.aside import set_aside
from memorize.log.identity import load_or_renew
from memorize.log.spool import (
    SPOOL_BYTES_MAX,
    Unreadable,
    check_drafts,
    decode_batch,
    entry,
    pending,
    put_batch,
    put_capture,
    sweep,
    take,
)
from memorize.model import Capture, Draft
from memorize.paths import Home
from tests.log.fakes import FailingFiles, QuickFiles, no_machine

CLOCK = FixedClock(mono=10_000 * 10**9)
FILES = QuickFiles()
HOUR_NS = 3600 * 10**9


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "기억")


def new(home: Home) -> Path:
    return home.spool / "new"


def only(home: Home):
    (name,) = pending(home)
    found = entry(name)
    assert found is not None
    return found


def test_a_capture_comes_back_as_it_was_put(home: Home):
    data = '{"prompt": "한국어로 답해줘"}'.encode()
    nonce = put_capture(home, "claude", "UserPromptSubmit", data, CLOCK)
    found = only(home)
    assert take(FILES, str(new(home)), found) == Capture("claude", "UserPromptSubmit", nonce, CLOCK.mono, data)
    assert (new(home) / found.name).stat().st_mode & 0o777 == 0o600
    assert list((home.spool / "tmp").iterdir()) == []


def test_a_batch_comes_back_in_its_order_with_its_references(home: Home):
    drafts = [
        Draft("memory.formed", {"text": "결정: 각주는 쓰지 않는다", "importance": 7, "window": None}),
        Draft("memory.formed", {"text": "two", "paths": ["src/파일.py"]}, 1, (b"d" * 32,)),
        Draft("memory.superseded", {"reason": "r"}, 2, (0, b"e" * 32, 1)),
    ]
    nonce = put_batch(home, drafts, CLOCK)
    found = only(home)
    assert (found.agent, found.event, found.nonce) == ("memorize", "batch", nonce)
    assert decode_batch(take(FILES, str(new(home)), found).data) == drafts


def test_a_batch_can_be_repeated_under_its_nonce(home: Home):
    nonce = put_batch(home, [Draft("a", {})], CLOCK, nonce=b"n" * 16)
    assert nonce == b"n" * 16
    assert only(home).nonce == nonce


def test_only_strict_waits_for_the_disk_and_then_for_file_and_directory(home: Home):
    load_or_renew(home, FILES, CLOCK, no_machine)
    relaxed, strict = FailingFiles(), FailingFiles()
    put_batch(home, [Draft("a", {})], CLOCK, False, relaxed)
    put_batch(home, [Draft("a", {})], CLOCK, True, strict)
    assert relaxed.calls == ["create", "write", "close", "rename"]
    assert strict.calls == ["names", "create", "write", "fsync", "close", "rename", "sync_dir"]


@pytest.mark.parametrize(
    "draft",
    [
        Draft("", {}),
        Draft("종류", {}),
        Draft("k" * 65, {}),
        Draft("a", {}, -1),
        Draft("a", {}, True),
        Draft("a", {}, 1, (1,)),
        Draft("a", {}, 1, (5,)),
        Draft("a", {}, 1, (b"short",)),
        Draft("a", {}, 1, ("text",)),  # type: ignore[arg-type]
        Draft("a", {}, 1, (b"d" * 32,) * 201),
        Draft("a", ["no map"], 1),  # type: ignore[arg-type]
        Draft(7, {}, 1),  # type: ignore[arg-type]
        Draft("a", {}, 0),
    ],
)
def test_what_could_never_be_written_is_refused_before_it_is_spooled(home: Home, draft):
    with pytest.raises(ValueError):
        put_batch(home, [Draft("a", {}), draft], CLOCK)
    assert pending(home) == []


def test_a_batch_larger_than_a_spool_file_is_refused(home: Home):
    with pytest.raises(ValueError, match="bytes"):
        put_batch(home, [Draft("a", {"text": "x" * SPOOL_BYTES_MAX})], CLOCK)


@given(st.binary(max_size=200))
def test_random_bytes_as_a_batch_are_unreadable_or_drafts(data):
    try:
        drafts = decode_batch(data)
    except Unreadable:
        return
    check_drafts(drafts)


json_like = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.text(), st.binary(max_size=40)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=12,
)


@given(json_like)
def test_any_value_as_a_batch_is_unreadable_or_drafts(value):
    try:
        drafts = decode_batch(msgpack.packb(value))
    except Unreadable:
        return
    check_drafts(drafts)


def test_a_file_cut_at_any_length_is_not_what_its_name_tells(home: Home):
    put_batch(home, [Draft("observed.note", {"text": "한 줄 메모"})], CLOCK)
    found = only(home)
    path = new(home) / found.name
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(Unreadable):
            take(FILES, str(new(home)), found)
    path.write_bytes(data + b"something behind it")
    assert take(FILES, str(new(home)), found).data == data
    for broken in (bytes(len(data)), b"x" + data, b"x" + data[1:]):
        path.write_bytes(broken)
        with pytest.raises(Unreadable):
            take(FILES, str(new(home)), found)


def test_a_name_that_promises_too_much_is_not_believed(home: Home):
    name = spool_name(1, b"n" * 16, 2**60, 0, "claude", "Stop")
    found = entry(name)
    assert found is not None
    with pytest.raises(Unreadable):
        take(FILES, str(new(home)), found)


@pytest.mark.parametrize("name", ["", "x", ".nfs0001", "a-b-c-d-e-f", "0" * 300])
def test_a_foreign_name_is_no_entry(name):
    assert entry(name) is None


def test_pending_is_in_the_order_of_capture(home: Home):
    for mono in (5, 2, 300, 1):
        put_capture(home, "claude", "Stop", b"x", FixedClock(mono=mono))
    assert [int(name[:16], 16) for name in pending(home)] == [1, 2, 5, 300]


def test_nothing_is_pending_where_there_is_no_spool(home: Home):
    assert pending(home) == []


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE, "short"])
@pytest.mark.parametrize("strict", [False, True])
def test_a_put_that_fails_says_so_and_leaves_nothing_half_done(home: Home, error, strict):
    put_capture(home, "claude", "Stop", b"before", CLOCK)
    files = FailingFiles()
    put_capture(home, "claude", "Stop", b"all calls", CLOCK, strict, files)
    calls = files.calls
    for at in range(1, len(calls) + 1):
        with pytest.raises(CannotWrite, match="spool"):
            put_capture(home, "claude", "Stop", b"half", CLOCK, strict, FailingFiles(at, error))
        assert list((home.spool / "tmp").iterdir()) == []
    for name in pending(home):
        found = entry(name)
        assert found is not None
        assert crc32((new(home) / name).read_bytes()) == found.crc


def test_what_is_set_aside_can_be_looked_at(home: Home):
    put_capture(home, "claude", "Stop", b"x", CLOCK)
    name = only(home).name
    (home.spool / "bad").rmdir()
    set_aside(home, FILES, name, CLOCK.wall)
    assert pending(home) == []
    path = home.spool / "bad" / name
    assert path.read_bytes() == b"x"
    assert path.stat().st_mtime == CLOCK.wall / 1000


SECRET = "ghp_" + "abcdefghij0123456789" + "ABCDEFGHIJ012345"


@pytest.mark.parametrize(
    "data",
    [
        f'{{"prompt": "the token is {SECRET}", "메모": 1'.encode(),
        f'{{"no_session": "token {SECRET}"}}'.encode(),
        f"토큰 {SECRET}".encode("utf-16"),
        f"token {SECRET}".encode("utf-16-le"),
        b"\xff\xfe\xfd " + SECRET.encode(),
    ],
)
def test_what_is_set_aside_holds_no_secret_and_can_be_tried_again(home: Home, data: bytes):
    put_capture(home, "claude", "Stop", data, CLOCK)
    before = entry(only(home).name)
    assert before is not None
    set_aside(home, FILES, only(home).name, CLOCK.wall)
    (path,) = (home.spool / "bad").iterdir()
    assert SECRET not in path.read_bytes().replace(b"\0", b"").decode("utf-8", "replace")
    found = entry(path.name)
    assert found is not None
    assert (found.nonce, found.agent) == (before.nonce, before.agent)
    assert b"[redacted" in take(FILES, str(path.parent), found).data
    assert not list((home.spool / "new").iterdir()) + list((home.spool / "tmp").iterdir())


def test_a_capture_that_is_not_what_its_name_tells_is_redacted_and_never_tried_again(home: Home):
    put_capture(home, "claude", "Stop", b"0123456789", CLOCK)
    (home.spool / "new" / only(home).name).write_bytes(SECRET.encode())
    name = only(home).name
    set_aside(home, FILES, name, CLOCK.wall)
    (path,) = (home.spool / "bad").iterdir()
    assert path.name == name
    assert SECRET.encode() not in path.read_bytes()


def test_a_folder_in_the_spool_is_set_aside_too(home: Home):
    (home.spool / "new" / "folder 폴더").mkdir(parents=True)
    set_aside(home, FILES, "folder 폴더", CLOCK.wall)
    assert (home.spool / "bad" / "folder 폴더").is_dir()


def test_old_leftovers_go_and_young_ones_stay(home: Home):
    put_capture(home, "claude", "Stop", b"x", CLOCK)
    now = CLOCK.mono
    tmp, bad = home.spool / "tmp", home.spool / "bad"
    (tmp / f"{now - 2 * HOUR_NS:016x}-dead").write_bytes(b"")
    (tmp / f"{now - HOUR_NS // 2:016x}-alive").write_bytes(b"")
    (tmp / "no number").write_bytes(b"")
    FILES.touch(str(tmp / "no number"), CLOCK.wall - 2 * 3600 * 1000)
    (tmp / "young").write_bytes(b"")
    FILES.touch(str(tmp / "young"), CLOCK.wall)
    for name, days in {"old": 8, "recent": 6}.items():
        (bad / name).write_bytes(b"")
        FILES.touch(str(bad / name), CLOCK.wall - days * 86_400_000)
    assert sweep(home, FILES, CLOCK) == 3
    assert sorted(path.name for path in tmp.iterdir()) == [f"{now - HOUR_NS // 2:016x}-alive", "young"]
    assert [path.name for path in bad.iterdir()] == ["recent"]
    assert len(pending(home)) == 1


def test_a_wall_clock_that_jumps_never_removes_what_a_hook_is_writing(home: Home):
    put_capture(home, "claude", "Stop", b"x", CLOCK)
    writing = home.spool / "tmp" / f"{CLOCK.mono:016x}-{'0' * 32}"
    writing.write_bytes(b"")
    FILES.touch(str(writing), CLOCK.wall)
    assert sweep(home, FILES, CLOCK._replace(wall=CLOCK.wall + 30 * 86_400_000)) == 0
    assert writing.exists()


@pytest.mark.parametrize("at", range(1, 6))
def test_sweeping_never_raises(home: Home, at):
    put_capture(home, "claude", "Stop", b"x", CLOCK)
    (home.spool / "tmp" / "old").write_bytes(b"")
    FILES.touch(str(home.spool / "tmp" / "old"), 0)
    sweep(home, FailingFiles(at, errno.EIO), CLOCK)
