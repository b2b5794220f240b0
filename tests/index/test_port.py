"""What the ingester relies on: top, offsets, known, and that a batch is indexed whole or not at all."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from memorize import model
from memorize.errors import Busy, CannotWrite, IndexDamaged
from memorize.index import projector as projecting
from memorize.index import schema
from memorize.index.projector import Projector
from memorize.limits import LAMPORT_LEAP_MAX
from memorize.model import Event
from tests.index.make import FILE, NOW, event, new_index, stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "색인 dir" / "index.sqlite"


@pytest.fixture
def projector(path: Path):
    path.parent.mkdir()
    found = new_index(path)
    yield found
    found.close()


def note(lamport: int, chance: random.Random, text: str = "메모", **fields: object) -> Event:
    payload = {"agent": "claude", "session": "s", "project": "p" * 32, "text": text}
    return event(model.OBSERVED_NOTE, payload, lamport, chance, **fields)


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_the_counter_follows_the_events_but_no_leap(projector: Projector) -> None:
    chance = random.Random(1)
    assert projector.top() == 0
    projector.apply(stored([note(7, chance), note(3, chance)]), {}, NOW)
    assert projector.top() == 7
    far = 8 + LAMPORT_LEAP_MAX
    projector.apply(stored([note(far, chance), note(9, chance)]), {}, NOW)
    assert projector.top() == far  # the event before it brought it within reach
    projector.apply(stored([note(2**62, chance)]), {}, NOW)
    assert projector.top() == far


def test_offsets_are_those_of_the_last_batch_that_named_the_file(projector: Projector) -> None:
    projector.apply([], {FILE: 96, "received/x.mzs": 5}, NOW)
    projector.apply(stored([note(1, random.Random(1))]), {FILE: 396}, NOW)
    assert projector.offsets() == {FILE: 396, "received/x.mzs": 5}


def test_known_tells_every_event_of_a_capture_and_of_twins_the_one_that_counts(projector: Projector) -> None:
    chance = random.Random(1)
    nonce, near = b"n" * 16, b"n" * 15 + b"m"  # both have the same number in the index
    one, two, twin, other = (
        note(5, chance, nonce=nonce),
        note(6, chance, nonce=nonce, ordinal=1),
        note(4, chance, nonce=nonce),
        note(7, chance, nonce=near),
    )
    assert projector.known([nonce, near, b""]) == {}
    projector.apply(stored([one, two, other]), {}, NOW)
    assert projector.known([nonce]) == {(nonce, 0): one.id, (nonce, 1): two.id}
    projector.apply(stored([twin]), {}, NOW)
    assert projector.known([nonce]) == {(nonce, 0): twin.id, (nonce, 1): two.id}
    assert projector.known([]) == {}


def test_a_twin_is_found_though_its_capture_was_unknown_before_another_batch(projector: Projector, path: Path) -> None:
    chance = random.Random(1)
    nonce = b"n" * 16
    assert projector.known([nonce]) == {}
    first, second = note(1, chance, nonce=nonce), note(2, chance, nonce=nonce)
    projector.apply(stored([first]), {}, NOW)
    projector.apply(stored([second]), {}, NOW)
    assert rows(path, "select id, canonical from aliases") == [(second.id, first.id)]


def test_a_batch_that_fails_leaves_nothing_behind(
    projector: Projector, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    projector.apply(stored([note(1, chance)]), {FILE: 1}, NOW)

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(projecting, "_raise_top", fail)
    with pytest.raises(RuntimeError):
        projector.apply(stored([note(2, chance)]), {FILE: 2}, NOW)
    monkeypatch.undo()
    assert projector.offsets() == {FILE: 1}
    assert rows(path, "select count(*) from events") == [(1,)]
    projector.apply(stored([note(2, chance)]), {FILE: 2}, NOW)
    assert rows(path, "select count(*) from events") == [(2,)]


def test_a_locked_index_is_busy_and_usable_afterwards(
    path: Path, projector: Projector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "BUSY_S", 0.05)
    other = schema.open_write(path)
    other.execute("begin immediate")
    with pytest.raises(Busy):
        projector.apply(stored([note(1, random.Random(1))]), {FILE: 1}, NOW)
    other.execute("rollback")
    other.close()
    projector.apply(stored([note(1, random.Random(1))]), {FILE: 1}, NOW)
    assert projector.top() == 1


def test_what_sqlite_says_becomes_a_problem_with_a_remedy(path: Path) -> None:
    cases = {
        sqlite3.SQLITE_CORRUPT: IndexDamaged, sqlite3.SQLITE_NOTADB: IndexDamaged, sqlite3.SQLITE_FULL: CannotWrite,
        sqlite3.SQLITE_IOERR: CannotWrite, sqlite3.SQLITE_READONLY: CannotWrite, sqlite3.SQLITE_BUSY_SNAPSHOT: Busy,
    }  # fmt: skip
    for code, problem in cases.items():
        error = sqlite3.OperationalError("it went wrong")
        error.sqlite_errorcode = code
        with pytest.raises(problem) as caught, schema.guard(path):
            raise error
        assert caught.value.remedy()


def test_the_words_of_many_batches_are_found_and_counted_once(projector: Projector, path: Path) -> None:
    chance = random.Random(1)
    events = [note(number + 1, chance, f"getUserById {number} 토큰을") for number in range(40)]
    for start in range(0, 40, 7):
        projector.apply(stored(events[start : start + 7]), {}, NOW)
        projector.apply(stored(events[: start + 3]), {}, NOW)
    match = "select count(*) from observation_fts where observation_fts match"
    assert rows(path, f"""{match} '"user" AND "토큰"'""") == [(40,)]
    assert rows(path, "select events from kinds") == rows(path, "select events from writers") == [(40,)]
    assert rows(path, "select observations from sessions") == [(40,)]


def test_every_query_of_a_batch_goes_along_an_index(projector: Projector, path: Path) -> None:
    queries = (
        "select n from links where key in (1, 2)",
        "select n, id from events where id8 in (1, 2)",
        "select nonce, ordinal from events where nonce8 in (1, 2) and n < 5",
        "select * from sessions where session = 'a' and agent = 'b'",
        "select n from shown where project_root = 'a' and kind = 'rule' order by rank desc limit 5",
        "select n from shown where project_root = 'a' and has_triggers",
        "update shown set project_root = 'a' where project_root = 'b' and project = 'c'",
    )
    for query in queries:
        plan = " ".join(str(row[3]) for row in rows(path, f"explain query plan {query}"))
        assert "SCAN" not in plan, (query, plan)
        assert "TEMP B-TREE" not in plan, (query, plan)
