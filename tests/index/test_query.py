"""The read side for recall, on projections that the real projector wrote."""

from __future__ import annotations

import itertools
import random
import sqlite3

import pytest

from memorize import model
from memorize.index import schema
from memorize.index.query import MEMORIES, OBSERVATIONS, Query, Scope
from memorize.index.text import query_units
from memorize.model import text_key
from memorize.recall.context import Situation, build_context
from memorize.recall.search import search
from tests.counts import count
from tests.index.make import NOW, event, new_index, stored
from tests.recall import stores

HERE, THERE, JOINED = "a" * 32, "b" * 32, "c" * 32
DAY = 86_400_000


class Store:
    """Events to come, and the index of them."""

    def __init__(self, seed: int = 5) -> None:
        self.seed = random.Random(seed)
        self.events: list[model.Event] = []

    def add(self, kind, payload, **fields):
        made = event(kind, payload, len(self.events) + 1, self.seed, **fields)
        self.events.append(made)
        return made

    def remember(self, words, **fields):
        payload = {
            "kind": "decision", "text": words, "text_key": text_key(words), "importance": 5, "confidence": 80,
            "scope": "project", "project": HERE, "trust": "user", **fields,
        }  # fmt: skip
        return self.add(model.MEMORY_FORMED, payload)

    def observe(self, kind, session="s1", project=HERE, branch="main", **fields):
        base = {"agent": "codex", "session": session, "project": project, "branch": branch, "head": "", "dir": ""}
        return self.add(kind, {**base, **fields})

    def open(self, path, events=None) -> sqlite3.Connection:
        projector = new_index(path)
        for one in stored(self.events if events is None else events):
            projector.apply([one], {}, NOW)
        projector.close()
        return schema.open_read(path)


@pytest.fixture
def paths(tmp_path):
    numbers = itertools.count()
    return lambda: tmp_path / f"{next(numbers)}.sqlite"


def texts(hits):
    return [hit.row.text for hit in hits]


def test_replaced_and_forgotten_memories_come_only_when_asked_for(paths):
    store = Store()
    old, new = store.remember("금액은 실수다"), store.remember("금액은 정수다")
    gone = store.remember("금액은 문자열이다")
    store.add(model.MEMORY_SUPERSEDED, {"reason": "edited"}, deps=(new.id, old.id))
    store.add(model.MEMORY_RETRACTED, {"reason": "wrong"}, deps=(gone.id,))
    query = Query(store.open(paths()))
    assert texts(search(query, "금액", [HERE], now_ms=NOW).hits) == ["금액은 정수다"]
    every = search(query, "금액", [HERE], now_ms=NOW, include_dead=True)
    assert {hit.row.text: hit.row.status for hit in every.hits} == {
        "금액은 정수다": "live",
        "금액은 실수다": "superseded",
        "금액은 문자열이다": "retracted",
    }
    assert every.total == 3
    assert texts(search(query, "", [HERE], now_ms=NOW, include_dead=True).hits)[0] == "금액은 정수다"


def test_the_same_said_twice_is_found_once(paths):
    store = Store()
    for _ in range(3):
        store.remember("Only pnpm here.")
    query = Query(store.open(paths()))
    for dead in (False, True):
        assert len(search(query, "pnpm", [HERE], now_ms=NOW, include_dead=dead).hits) == 1


def test_an_erased_memory_is_found_no_more(paths):
    store = Store()
    secret = store.remember("the vault opens with 9182")
    store.add(model.ERASE_REQUESTED, {"ids": [secret.id], "reason": ""})
    query = Query(store.open(paths()))
    assert search(query, "vault", [HERE], now_ms=NOW, include_dead=True).hits == ()


def test_joined_projects_share_their_memories(paths):
    store = Store()
    for key in (HERE, JOINED):
        store.add(model.PROJECT_SEEN, {"key": key, "name": "x", "identities": [], "path": "/x", "device": "d"})
    store.remember("lock here")
    store.remember("lock joined", project=JOINED)
    store.remember("lock there", project=THERE)
    apart = Query(store.open(paths()))
    assert texts(search(apart, "lock", [HERE], now_ms=NOW).hits) == ["lock here"]
    store.add(model.PROJECT_LINKED, {"a": HERE, "b": JOINED})
    together = Query(store.open(paths()))
    for key in (HERE, JOINED):
        assert set(texts(search(together, "lock", [key], now_ms=NOW).hits)) == {"lock here", "lock joined"}
        assert len(build_context(together, Situation(key), NOW).items) == 2


def test_observations_are_found_when_asked_for_and_marked_as_such(paths):
    store = Store()
    store.remember("The lock file is committed.")
    store.observe(model.OBSERVED_PROMPT, text="왜 lock 파일이 바뀌었지?")
    store.observe(model.OBSERVED_SHELL, command="cat lock.json", ok=False, exit=1, output="")
    store.observe(
        model.OBSERVED_EDIT, project=THERE, session="s2", path="lock.txt", op="edit", added=1, removed=0, diff=""
    )
    numbers = {}
    base = store.open(paths())
    for n, kind in base.execute("select n, kind from events"):
        numbers[n] = f"full text of {kind}"
    query = Query(base, numbers.__getitem__)
    assert texts(search(query, "lock", [HERE], now_ms=NOW).hits) == ["The lock file is committed."]
    found = search(query, "lock", [HERE], now_ms=NOW, include_observations=True).hits
    assert (found[0].row.kind, found[0].row.trust) == ("decision", "user")
    assert {(hit.row.kind, hit.row.text, hit.row.trust, hit.row.branch) for hit in found[1:]} == {
        ("observed.prompt", "full text of observed.prompt", "user", "main"),
        ("observed.shell", "full text of observed.shell", "agent", "main"),
    }
    assert len(search(query, "lock", [], now_ms=NOW, include_observations=True).hits) == 4


def test_the_size_of_a_table_and_the_frequency_of_a_term_are_exact(paths):
    store = Store()
    for number in range(300):
        store.remember(f"memory number{number} {'common' if number % 3 else 'rare'}")
    query = Query(store.open(paths()))
    assert query.size(MEMORIES) == 300
    assert query.size(OBSERVATIONS) == 0
    assert query.frequency(MEMORIES, query_units("rare")[0]) == 100
    assert query.frequency(MEMORIES, query_units("rare")[0], 7) == 7
    assert len(query.weights(MEMORIES, '"rare"', range(1, 10))) == 3


def test_the_agent_of_a_memory_comes_from_its_sources(paths):
    store = Store()
    seen = store.observe(model.OBSERVED_PROMPT, text="질문")
    store.remember("by source", sources=[seen.id])
    store.remember("by nobody")
    query = Query(store.open(paths()))
    rows = {row.text: row for row in query.ranked(Scope((HERE,)), 10)}
    assert query.agent_of(rows["by source"]) == "codex"
    assert query.agent_of(rows["by nobody"]) == ""


def test_recent_files_are_those_of_the_latest_session(paths):
    store = Store()
    for session, path in (("s1", "old.py"), ("s2", "a.py"), ("s2", "src/한글.py"), ("s2", "a.py")):
        store.observe(model.OBSERVED_EDIT, session, path=path, op="edit", added=1, removed=0, diff="")
    base = store.open(paths())
    said = {n: f"path of {n}\ndiff" for (n,) in base.execute("select n from events")}
    assert Query(base, said.__getitem__).recent_files([HERE], 2) == ("path of 4", "path of 3")
    assert Query(base).recent_files([HERE], 2) == ()
    assert Query(base, said.__getitem__).recent_files([THERE], 2) == ()


def test_any_order_of_arrival_gives_the_same_search_and_the_same_context(paths):
    store = Store()
    kinds = model.MEMORY_KINDS
    made = [store.remember(f"lock {kinds[n % 9]} {n}", kind=kinds[n % 9], importance=1 + n % 10) for n in range(40)]
    for n in range(0, 12, 3):
        store.add(model.MEMORY_SUPERSEDED, {"reason": "edited"}, deps=(made[n + 1].id, made[n].id))
    store.add(model.MEMORY_PINNED, {}, deps=(made[20].id,))
    store.add(model.MEMORY_JUDGED, {"verdict": "contradicts"}, deps=(made[28].id, made[29].id))
    wanted = None
    for _ in range(count("orders of arrival of recall", quick=4, full=40)):
        query = Query(store.open(paths()))
        found = (
            [(hit.row.id, hit.score) for hit in search(query, "lock", [HERE], now_ms=NOW).hits],
            build_context(query, Situation(HERE, "checkout"), NOW),
        )
        wanted = wanted or found
        assert found == wanted
        store.seed.shuffle(store.events)
    assert wanted is not None
    assert wanted[1].text.count("Disputed:") == 1


@pytest.mark.parametrize("small", [5, 5_000])
def test_a_large_store_is_searched_by_its_best_candidates(monkeypatch, small):
    monkeypatch.setattr("memorize.recall.search.SMALL_STORE", small)
    memories = [stores.memory(f"common words number{n}", importance=1 + n % 10) for n in range(60)]
    memories += [stores.memory(f"lock {n}", project=THERE) for n in range(10)]
    memories += [stores.memory("lock the file", importance=9), stores.memory("lock and common words")]
    query = stores.query(memories)
    assert texts(search(query, "lock the file", [HERE], now_ms=NOW).hits)[0] == "lock the file"
    assert len(search(query, "lock file", [HERE], now_ms=NOW).hits) == 2
    assert len(search(query, "common", [HERE], now_ms=NOW, limit=100).hits) == 61


@pytest.mark.parametrize("most", [1, 3, 10, 100])
def test_the_scope_never_hides_what_the_index_ranks_low(most):
    memories = [stores.memory(f"lock lock lock {n}", project=THERE) for n in range(80)]
    memories += [stores.memory(f"a lock among a good many other words that matter less {n}") for n in range(5)]
    query = stores.query(memories)
    found = query.best(MEMORIES, ['"lock"'], Scope((HERE,)), most)
    assert len(found) == min(5, most)


def test_a_session_start_reads_along_indexes_only():
    base = stores.store([stores.memory(f"memory {n}", kind=kind) for n, kind in enumerate(model.MEMORY_KINDS)])
    plans: list[str] = []
    asked: list[str] = []
    base.set_trace_callback(asked.append)
    build_context(Query(base), Situation(HERE, branch="memory-3"), NOW)
    base.set_trace_callback(None)
    for sql in asked:
        if sql.lstrip().lower().startswith("select"):
            plans += [f"{detail}: {sql[:80]}" for *_, detail in base.execute(f"explain query plan {sql}")]
    scans = [plan for plan in plans if plan.startswith("SCAN") and "VIRTUAL TABLE" not in plan]
    assert not [plan for plan in scans if "shown" in plan or "memories" in plan or "events" in plan], scans
    assert not [plan for plan in plans if "USE TEMP B-TREE FOR ORDER BY" in plan], plans
