"""What became of memories: told, of use, overruled, and how old they were then."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memorize import model
from memorize.index import schema
from memorize.index.lifetimes import Lifetime, lifetimes
from memorize.model import Event, text_key
from tests.index.make import NOW, event, new_index, stored

DAY = 24 * 3600 * 1000
PROJECT = "a1" * 16


class Store:
    """An index that is fed events, each with the wall time that the test wants."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.projector = new_index(path)
        self.seed = random.Random(3)
        self.lamport = 0

    def put(self, kind: str, payload: dict[str, Any], *, age_days: float = 0, deps: tuple[bytes, ...] = ()) -> Event:
        self.lamport += 1
        made = event(kind, payload, self.lamport, self.seed, deps=deps, wall=NOW - round(age_days * DAY))
        self.projector.apply(stored([made], self.lamport), {}, NOW)
        return made

    def memory(self, text: str, kind: str = "decision", age_days: float = 0, **fields: Any) -> Event:
        payload = {"kind": kind, "text": text, "text_key": text_key(text), "importance": 7, "confidence": 90}
        payload |= {"scope": "project", "project": PROJECT, "trust": "user", **fields}
        return self.put(model.MEMORY_FORMED, payload, age_days=age_days)

    def told(self, session: str, *memories: Event) -> None:
        items = [[one.id, "standing", 1] for one in memories]
        self.put(model.CONTEXT_DELIVERED, {"session": session, "agent": "claude", "project": PROJECT, "items": items})

    def edited(self, session: str, path: str) -> None:
        payload = {"agent": "claude", "session": session, "project": PROJECT, "path": path, "op": "edit"}
        self.put(model.OBSERVED_EDIT, payload)

    def lives(self) -> dict[str, Lifetime]:
        with closing(schema.open_read(self.path)) as connection:
            return {one.kind: one for one in lifetimes(connection, NOW)}


@pytest.fixture
def store(tmp_path: Path):
    found = Store(tmp_path / "색인.sqlite")
    yield found
    found.projector.close()


def test_an_empty_index_has_no_lifetimes(store: Store) -> None:
    assert store.lives() == {}


def test_every_telling_is_counted_and_a_memory_once(store: Store) -> None:
    first, second = store.memory("환불은 정수로"), store.memory("배포는 월요일에")
    store.memory("아무도 듣지 못한 것")
    store.told("하나", first, second)
    store.told("둘", first)
    line = store.lives()["decision"]
    assert (line.formed, line.live, line.told, line.times, line.used) == (3, 3, 2, 3, 0)


def test_a_memory_is_used_when_a_session_that_was_told_edits_a_file_it_names_or_it_is_confirmed(store: Store) -> None:
    named = store.memory("환불은 refund.py에", paths=["src/refund.py"])
    late = store.memory("취소는 cancel.py에", paths=["src/cancel.py"])
    confirmed = store.memory("키는 멱등이다")
    store.edited("s", "src/cancel.py")  # before it was told
    store.told("s", named, late)
    store.edited("s", "src/refund.py")
    store.edited("other", "src/cancel.py")
    store.put(model.MEMORY_CONFIRMED, {}, deps=(confirmed.id,))
    assert store.lives()["decision"].used == 2


def test_the_age_at_the_end_is_the_median_of_what_was_superseded_or_retracted(store: Store) -> None:
    old = store.memory("데이터베이스는 SQLite", "fact", age_days=10)
    new = store.memory("데이터베이스는 PostgreSQL", "fact", age_days=6)
    store.put(model.MEMORY_SUPERSEDED, {"reason": "edit"}, deps=(new.id, old.id), age_days=6)
    wrong = store.memory("포트는 80", "fact", age_days=6)
    store.put(model.MEMORY_RETRACTED, {"reason": "틀림"}, deps=(wrong.id,), age_days=4)
    store.memory("언젠가 끝난다", "fact", expires_at=NOW - 1)
    line = store.lives()["fact"]
    assert (line.formed, line.live, line.expired, line.superseded, line.retracted) == (4, 2, 1, 1, 1)
    assert line.days == 3.0


def test_a_clock_that_was_wrong_makes_no_negative_age(store: Store) -> None:
    memory = store.memory("x 미래", "question", age_days=-5)
    store.put(model.MEMORY_RETRACTED, {"reason": ""}, deps=(memory.id,))
    assert store.lives()["question"].days == 0
