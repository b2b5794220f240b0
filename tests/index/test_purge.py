"""What erased events said goes out of the index, and what remains is what an index made from the clean log says."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memorize import model
from memorize.errors import Busy
from memorize.fold import digest, fold, rows
from memorize.index import erasures, purge, schema
from memorize.index.erasures import Spot
from memorize.index.read import Reader
from memorize.index.unclaimed import open_sessions
from memorize.log.frames import EVENT
from memorize.log.scrub import scrub
from memorize.log.segments import frame_event, scan_segment
from memorize.log.verify import CLEAN, verify
from memorize.model import Draft, Event, text_key
from tests.counts import count
from tests.index.test_rebuild import PROJECT, Log, content

SECRET = "quagga7391zebra"
WORDS = ("고양이", "비밀번호", "database", "getUserById", "배포는", "금요일", "tabs", "リリース")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    found = Log(tmp_path / "상태 directory")
    yield found
    found.close()


def everything(log: Log) -> list[Event]:
    found = []
    for folder in (log.home.segments, log.home.received):
        for path in sorted(folder.glob("*.mzs")):
            found += [frame_event(frame) for frame in scan_segment(path.read_bytes()).frames if frame.type == EVENT]
    return found


def unclean(log: Log) -> list[Spot]:
    with closing(schema.open_read(log.home.index)) as connection:
        return erasures.unclean(connection)


def clean(log: Log) -> None:
    """Do everything that the whole program does, in its order."""
    found = unclean(log)
    purge.forget(log.home.index, log.home.root, found)
    purge.compact(log.home.index)
    log.ingester.close()
    scrub(log.home, log.files, {spot.id for spot in found}, {})
    purge.clean(log.home.index, log.home.root, found)


class Life:
    """Somebody's random work, every piece of which has words that stand nowhere else."""

    def __init__(self, log: Log, seed: int) -> None:
        self.log = log
        self.chance = random.Random(seed)
        self.made: list[tuple[bytes, str]] = []
        self.said: dict[bytes, str] = {}

    def word(self) -> str:
        return f"{SECRET}{self.chance.randrange(10**9):09d}"

    def common(self) -> dict[str, Any]:
        session = self.chance.choice(("세션 1", "session-2", "s3"))
        project = self.chance.choice((PROJECT, "b2" * 16))
        branch = self.chance.choice(("main", "가지"))
        return {"agent": "claude", "session": session, "project": project, "branch": branch, "head": "", "dir": "src"}

    def sighting(self, key: str, word: str) -> dict[str, Any]:
        path = f"/home/{self.chance.randrange(3)}"
        return {"key": key, "name": word, "identities": [["remote", word]], "path": path, "device": "d"}

    def claim(self) -> dict[str, Any]:
        known = [identity for identity, _ in self.made]
        sources = self.chance.sample(known, min(3, len(known)))
        return {"window": f"w{self.chance.randrange(5)}", "extractor": "rules", "sources": sources, "events": []}

    def draft(self, ordinal: int, word: str) -> Draft:
        chance, common = self.chance, self.common()
        text = " ".join([*chance.choices(WORDS, k=chance.randrange(1, 9)), word])
        known = [identity for identity, _ in self.made]
        memories = [identity for identity, kind in self.made if kind == model.MEMORY_FORMED]
        some = tuple(chance.sample(memories, min(2, len(memories))))
        picks: dict[str, Draft] = {
            model.OBSERVED_PROMPT: Draft(model.OBSERVED_PROMPT, {**common, "text": text}, ordinal),
            model.OBSERVED_REPLY: Draft(model.OBSERVED_REPLY, {**common, "text": text}, ordinal),
            model.OBSERVED_EDIT: Draft(model.OBSERVED_EDIT, {**common, "path": word, "op": "edit"}, ordinal),
            model.OBSERVED_SHELL: Draft(model.OBSERVED_SHELL, {**common, "command": text, "ok": False}, ordinal),
            model.SESSION_OPENED: Draft(
                model.SESSION_OPENED, {**common, "source": "compact", "transcript": word, "model": word}, ordinal
            ),
            model.SESSION_CLOSED: Draft(model.SESSION_CLOSED, {**common, "branch": word, "reason": word}, ordinal),
            model.PROJECT_SEEN: Draft(model.PROJECT_SEEN, self.sighting(common["project"], word), ordinal),
            model.CONTEXT_DELIVERED: Draft(
                model.CONTEXT_DELIVERED, {**common, "items": [[one, word, 1] for one in some]}, ordinal
            ),
            model.WINDOW_CONSOLIDATED: Draft(model.WINDOW_CONSOLIDATED, {**common, **self.claim()}, ordinal),
        }
        if len(some) == 2:
            picks[model.MEMORY_JUDGED] = Draft(
                model.MEMORY_JUDGED, {"verdict": "contradicts", "reason": word}, ordinal, some
            )
            picks[model.MEMORY_SUPERSEDED] = Draft(model.MEMORY_SUPERSEDED, {"reason": word}, ordinal, some)
            picks[model.MEMORY_RETRACTED] = Draft(model.MEMORY_RETRACTED, {"reason": word}, ordinal, some[:1])
        formed = {
            "kind": chance.choice(("decision", "summary")),
            "text": text,
            "text_key": text_key(text),
            "importance": 5,
            "scope": "project",
            "project": common["project"],
            "tags": [word],
            "paths": [word],
            "sources": chance.sample(known, min(2, len(known))),
        }
        picks[model.MEMORY_FORMED] = Draft(model.MEMORY_FORMED, formed, ordinal)
        weights = [4 if kind == model.MEMORY_FORMED else 1 for kind in picks]
        return picks[chance.choices(list(picks), weights)[0]]

    def goes_on(self, batches: int) -> None:
        for _ in range(batches):
            words = [self.word() for _ in range(self.chance.randrange(1, 5))]
            drafts = [self.draft(number, word) for number, word in enumerate(words)]
            made = self.log.write(*drafts)
            self.made += [(identity, draft.kind) for identity, draft in zip(made, drafts, strict=True)]
            self.said.update(zip(made, words, strict=True))

    def erases(self) -> set[bytes]:
        share = self.chance.choice((0.05, 0.3, 0.7))
        chosen = [identity for identity, _ in self.made if self.chance.random() < share]
        kept = [identity for identity, _ in self.made if self.chance.random() < 0.1]
        self.log.write(Draft(model.ERASE_REQUESTED, {"ids": chosen, "kept": kept, "sessions": ["s3"]}))
        return {one for one, kind in self.made if one in chosen and kind not in model.INDELIBLE}


def state_of(events: Sequence[Event]) -> str:
    return digest(rows(fold(events))).hex()


def test_whatever_is_erased_the_index_says_what_one_made_from_the_clean_log_says(tmp_path: Path) -> None:
    for seed in range(count("random lives with erasures", quick=6, full=30)):
        log = Log(tmp_path / f"상태 {seed}")
        life = Life(log, seed)
        gone: set[bytes] = set()
        for _ in range(life.chance.randrange(1, 4)):
            life.goes_on(life.chance.randrange(1, 12))
            gone |= life.erases()
            if life.chance.random() < 0.5:
                clean(log)
        before, original = log.digest(), everything(log)
        clean(log)
        assert log.digest() == before, seed
        bare = [event._replace(payload=None) if event.id in gone else event for event in original]
        assert before[1] == state_of(original) == state_of(bare) == state_of(everything(log)), seed
        data = b"".join(path.read_bytes() for path in log.home.root.rglob("*") if path.is_file())
        here = [word for identity, word in life.said.items() if identity in gone and word.encode() in data]
        assert not here, (seed, here)
        assert [event for event in everything(log) if event.payload is None] == [one for one in bare if one.id in gone]
        assert [event for event in everything(log) if event.payload] == [one for one in bare if one.payload], seed
        grown = content(log.home.index)
        assert not unclean(log)
        log.rebuild()
        assert log.digest() == before, seed
        assert content(log.home.index) == grown, seed
        assert verify(log.home, deep=True, files=log.files).exit == CLEAN
        life.goes_on(2)
        log.close()


def test_a_clean_index_stays_clean_through_more_work_and_a_rebuild(log: Log) -> None:
    life = Life(log, 3)
    life.goes_on(30)
    gone = life.erases()
    clean(log)
    life.goes_on(5)
    log.rebuild()
    data = b"".join(path.read_bytes() for path in log.home.root.rglob("*") if path.is_file())
    assert not [one for one in gone if life.said[one].encode() in data]


def test_a_reader_that_holds_on_to_old_pages_delays_it_and_is_told_of(log: Log) -> None:
    life = Life(log, 4)
    life.goes_on(10)
    life.erases()
    found = unclean(log)
    with closing(sqlite3.connect(log.home.index, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from events").fetchone()
        purge.forget(log.home.index, log.home.root, found)
        with pytest.raises(Busy):
            purge.compact(log.home.index, 0.1)
    assert [spot.id for spot in unclean(log)] == [spot.id for spot in found]
    clean(log)
    assert not unclean(log)


@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 42), reason="its full text has a secure deletion of its own")
def test_secure_deletion_alone_leaves_words_behind(log: Log) -> None:
    """The control: were this to pass without compacting, compacting would be no use."""
    life = Life(log, 5)
    life.goes_on(150)
    gone = life.erases()
    found = unclean(log)
    purge.forget(log.home.index, log.home.root, found)
    with closing(schema.open_write(log.home.index)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    data = log.home.index.read_bytes()
    assert [one for one in gone if life.said[one].encode() in data]
    purge.compact(log.home.index)
    data = log.home.index.read_bytes() + log.home.index.with_name("index.sqlite-wal").read_bytes()
    assert not [one for one in gone if life.said[one].encode() in data]


def test_only_a_device_whose_latest_incarnation_has_said_so_is_done(log: Log) -> None:
    (one,) = log.write(Draft(model.OBSERVED_NOTE, {"text": "비밀"}))
    (erasure,) = log.write(Draft(model.ERASE_REQUESTED, {"ids": [one]}))
    clean(log)
    reader = Reader.open(log.home)
    replica = log.ingester.identity.replica
    assert log.projector.erases(replica)
    assert erasures.unacknowledged(reader.connection, replica) == [erasure]
    log.write(Draft(model.ERASE_ACKNOWLEDGED, {"erasures": [erasure], "device": "d"}))
    assert not log.projector.erases(replica)
    assert log.projector.erases(b"another replica!")
    assert erasures.requests(reader.connection)[0].events == 1
    reader.close()


def test_an_erased_observation_is_in_no_open_window(log: Log) -> None:
    common = {"agent": "claude", "session": "세션", "project": PROJECT, "branch": "", "head": "", "dir": ""}
    one, _ = log.write(*(Draft(model.OBSERVED_NOTE, {**common, "text": f"비밀 {n}"}, n) for n in range(2)))
    log.write(Draft(model.ERASE_REQUESTED, {"ids": [one], "sessions": ["세션"]}))
    clean(log)
    with closing(schema.open_read(log.home.index)) as connection:
        assert [found.observations for found in open_sessions(connection, None)] == [1]
