from __future__ import annotations

import os
import random
import sqlite3
import threading
from pathlib import Path

import pytest

from memorize import model
from memorize.clock import FixedClock, SystemClock
from memorize.errors import Busy, CannotRead, IndexDamaged, IndexMissing
from memorize.index import rebuild as rebuilding
from memorize.index import schema
from memorize.index.projector import Projector
from memorize.index.read import Reader
from memorize.index.rebuild import rebuild
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.log.ingest import Ingester
from memorize.log.lock import Lock
from memorize.log.spool import put_batch
from memorize.model import Draft, text_key
from memorize.paths import Home

PROJECT = "a1" * 16
COMMON = {"agent": "claude", "session": "세션 1", "project": PROJECT, "branch": "main", "head": "f" * 40, "dir": ""}


class Log:
    """A state directory with a log that is written through the spool, as everything is."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        self.files = RealFiles()
        self.clock = SystemClock()
        for folder in (self.home.segments, self.home.received, self.home.locks):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.home.index.exists():
            schema.create(self.home.index).close()
        self.projector = Projector(self.home.index)
        self.ingester = Ingester(
            self.home,
            self.files,
            self.clock,
            load_or_renew(self.home, self.files, self.clock),
            lambda capture: (),
            self.projector,
        )

    def write(self, *drafts: Draft) -> list[bytes]:
        nonce = put_batch(self.home, drafts, self.clock)
        self.ingester.run()
        known = self.projector.known([nonce])
        return [known[nonce, draft.ordinal] for draft in drafts]

    def close(self) -> None:
        self.ingester.close()
        self.projector.close()

    def rebuild(self) -> int:
        return rebuild(self.home, self.clock, wait_s=1.0)

    def digest(self) -> tuple[str, str]:
        reader = Reader.open(self.home)
        try:
            return tuple(reader.digest())  # type: ignore[return-value]
        finally:
            reader.close()


@pytest.fixture
def log(tmp_path: Path):
    found = Log(tmp_path / "상태 directory")
    yield found
    found.close()


def memory(text: str, ordinal: int = 0, **fields: object) -> Draft:
    payload = {
        "kind": "decision", "text": text, "text_key": text_key(text), "importance": 7, "confidence": 90,
        "scope": "project", "project": PROJECT, "trust": "user", "tags": ["배포"], **fields,
    }  # fmt: skip
    return Draft(model.MEMORY_FORMED, payload, ordinal)


def observed(kind: str, ordinal: int = 0, **payload: object) -> Draft:
    return Draft(kind, {**COMMON, **payload}, ordinal)


def fill(log: Log, rounds: int = 6) -> list[bytes]:
    chance = random.Random(5)
    made: list[bytes] = []
    for number in range(rounds):
        made += log.write(
            observed(model.OBSERVED_PROMPT, 0, text=f"데이터베이스를 고쳐줘 {number}"),
            observed(model.OBSERVED_REPLY, 1, text="getUserById is fixed"),
            observed(model.OBSERVED_SHELL, 2, command="git commit -m x", ok=True),
            observed(model.OBSERVED_EDIT, 3, path="src/저장소.py"),
            memory(f"배포는 금요일에 하지 않는다 {number % 4}", 4),
        )
        if number > 2:
            log.write(Draft(model.MEMORY_RETRACTED, {"reason": "틀림"}, 0, (chance.choice(made[4::5]),)))
    (new,) = log.write(memory("Deploy on Mondays only"))
    log.write(Draft(model.MEMORY_SUPERSEDED, {"reason": "edit"}, 0, (new, made[4])))
    log.write(Draft(model.ERASE_REQUESTED, {"ids": [made[0], made[-1]], "reason": "비밀"}, 0))
    return made


_SKIPPED = {"meta", "files"}


def content(path: Path) -> dict[str, list[str]]:
    """Return the rows of every table without what depends on the order of arrival."""
    connection = sqlite3.connect(path)
    names = [
        name
        for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
        if name not in _SKIPPED and "fts_" not in name
    ]
    ids = dict(connection.execute("select n, id from events"))
    found = {}
    for name in names:
        cursor = connection.execute(f"select {'rowid as n, *' if name.endswith('fts') else '*'} from {name}")
        columns = [column[0] for column in cursor.description]
        rows = []
        for row in cursor:
            by_name = dict(zip(columns, row, strict=True))
            if "n" in by_name:
                by_name["n"] = ids[by_name["n"]]
            for local in ("received", "rank"):
                by_name.pop(local, None)
            rows.append(repr(by_name))
        found[name] = sorted(rows)
    connection.close()
    return found


def test_a_rebuilt_index_says_the_same_as_the_one_that_grew(log: Log) -> None:
    fill(log)
    before, digest = content(log.home.index), log.digest()
    log.home.index.unlink()
    events = log.rebuild()
    assert log.digest() == digest
    assert content(log.home.index) == before
    assert events == len(before["events"])
    assert log.home.index.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in log.home.root.glob("index*")) == ["index.sqlite"]


def test_folding_in_small_bundles_gives_the_same(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log)
    before = content(log.home.index)
    monkeypatch.setattr(rebuilding, "_BATCH", 3)
    monkeypatch.setattr(rebuilding, "_FOLDED", 4)
    log.rebuild()
    assert content(log.home.index) == before


def test_writing_goes_on_after_the_index_was_swapped_under_the_writer_and_the_readers(log: Log) -> None:
    fill(log)
    reader = Reader.open(log.home)
    before = reader.counts()
    log.rebuild()
    log.write(memory("뒤에 온 결정"))
    assert reader.counts().events == before.events + 1
    log.rebuild()
    log.write(memory("또 하나"))
    assert reader.counts().memories == before.memories + 2
    reader.close()
    digest = log.digest()
    log.rebuild()
    assert log.digest() == digest


def test_what_is_captured_during_a_rebuild_is_in_the_new_index(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(log)
    fold = rebuilding._Builder.fold

    def slow(self: rebuilding._Builder) -> None:
        fold(self)
        log.write(memory("그 사이에 온 결정"), observed(model.OBSERVED_NOTE, 1, text="meanwhile"))

    monkeypatch.setattr(rebuilding._Builder, "fold", slow)
    log.rebuild()
    reader = Reader.open(log.home)
    assert [event.kind for event in reader.log(limit=2)] == [model.OBSERVED_NOTE, model.MEMORY_FORMED]
    digest = reader.digest()
    reader.close()
    monkeypatch.setattr(rebuilding._Builder, "fold", fold)
    log.rebuild()
    assert log.digest() == tuple(digest)


def test_an_ingester_that_stays_at_work_makes_the_rebuild_give_up_and_keep_the_old_index(log: Log) -> None:
    fill(log, 1)
    before = log.home.index.stat().st_ino
    with Lock(log.home.locks / "ingest"), pytest.raises(Busy):
        rebuild(log.home, log.clock, wait_s=0.05)
    assert log.home.index.stat().st_ino == before
    log.write(memory("그래도 쓴다"))


def use(log: Log) -> None:
    """Do what every run does with an index."""
    reader = Reader.open(log.home)
    try:
        reader.digest()
        reader.counts()
        log.projector.offsets()
        log.projector.known([b"n" * 16])
        log.projector.apply([], {"segments/x": 1}, 1)
    finally:
        reader.close()


@pytest.mark.parametrize("spoil", ["garbage", "empty", "cut", "gone", "other version", "no table"])
def test_an_index_that_cannot_be_used_says_so_and_is_made_again(log: Log, spoil: str) -> None:
    fill(log)
    digest = log.digest()
    log.close()
    path = log.home.index
    if spoil == "garbage":
        path.write_bytes(random.Random(1).randbytes(50_000))
    elif spoil == "empty":
        path.write_bytes(b"")
    elif spoil == "cut":
        with path.open("r+b") as file:
            file.truncate(4096)
    elif spoil == "gone":
        path.unlink()
    else:
        connection = sqlite3.connect(path)
        connection.execute("drop table meta" if spoil == "no table" else "update meta set value = '0.0'")
        connection.commit()
        connection.close()
    with pytest.raises(IndexDamaged):
        use(log)
    log.rebuild()
    assert log.digest() == digest
    log.write(memory("danach"))


def test_a_page_that_rots_is_noticed_when_it_is_read(log: Log) -> None:
    fill(log, 30)
    log.close()
    digest = log.digest()
    data = bytearray(log.home.index.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at : at + 100] = b"\xff" * 100
    log.home.index.write_bytes(bytes(data))
    with pytest.raises(IndexDamaged):
        use(log)
    log.rebuild()
    assert log.digest() == digest


def test_a_missing_index_is_told_apart_from_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(IndexMissing):
        schema.open_read(tmp_path / "index.sqlite")
    with pytest.raises(IndexMissing):
        Projector(tmp_path / "index.sqlite").top()


def test_a_read_error_of_an_own_segment_keeps_the_old_index(log: Log) -> None:
    fill(log, 1)

    class Broken(RealFiles):
        def pread(self, path: str, offset: int, length: int) -> bytes:
            raise OSError(5, "Input/output error")

    inode = log.home.index.stat().st_ino
    with pytest.raises(CannotRead):
        rebuild(log.home, log.clock, files=Broken())
    assert log.home.index.stat().st_ino == inode


def test_the_leftovers_of_a_rebuild_that_was_killed_are_no_hindrance(log: Log) -> None:
    fill(log, 1)
    log.home.index.with_name("index.new").write_bytes(b"half")
    log.home.index.with_name("index.new-wal").write_bytes(b"half")
    log.rebuild()
    assert not list(log.home.root.glob("index.new*"))


def test_the_progress_ends_at_the_size_of_the_log(log: Log) -> None:
    fill(log)
    told: list[tuple[int, int]] = []
    rebuild(log.home, log.clock, lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    size = sum(path.stat().st_size for path in log.home.segments.iterdir())
    assert told[-1] == (size, size)


def test_a_wall_time_in_the_future_counts_as_the_time_of_receipt_after_a_rebuild_too(log: Log) -> None:
    ahead = log.clock.wall_ms() + 10**10
    log.ingester._clock = FixedClock(wall=ahead, mono=log.clock.monotonic_ns(), boot_id=log.clock.boot())
    log.write(memory("미래에서 온 결정"))
    for path in log.home.segments.iterdir():
        os.utime(path, (1_000_000, 1_000_000))
    log.rebuild()
    connection = schema.open_read(log.home.index)
    assert connection.execute("select recency_ms from shown").fetchall() == [(1_000_002_000,)]
    connection.close()


@pytest.mark.parametrize("behind_ms", [1, 10, 1_990])
def test_a_file_time_by_a_coarse_clock_changes_nothing(log: Log, behind_ms: int) -> None:
    wall = log.clock.wall_ms() - 10_000
    log.ingester._clock = FixedClock(wall=wall, mono=log.clock.monotonic_ns(), boot_id=log.clock.boot())
    log.write(memory("결정"), observed(model.OBSERVED_NOTE, 1, text="메모"))
    grown = content(log.home.index)
    for path in log.home.segments.iterdir():
        os.utime(path, ns=((wall - behind_ms) * 1_000_000,) * 2)
    log.rebuild()
    assert content(log.home.index) == grown


def test_a_reader_beside_the_writer_always_sees_whole_batches(log: Log) -> None:
    done = threading.Event()
    seen: list[int] = []

    def look() -> None:
        reader = Reader.open(log.home)
        while not done.is_set():
            seen.append(reader.counts().observed)
        reader.close()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(20):
            log.write(*(observed(model.OBSERVED_NOTE, at, text=f"{number} {at}") for at in range(5)))
    finally:
        done.set()
        thread.join()
    assert {count % 5 for count in seen} == {0}
