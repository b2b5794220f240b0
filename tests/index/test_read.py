from __future__ import annotations

from pathlib import Path

import pytest

from memorize import model
from memorize.index import schema
from memorize.index.read import Reader
from memorize.model import Draft
from tests.index.test_rebuild import COMMON, PROJECT, Log, fill, memory, observed


@pytest.fixture
def log(tmp_path: Path):
    found = Log(tmp_path / "상태 directory")
    yield found
    found.close()


@pytest.fixture
def reader(log: Log):
    found = Reader.open(log.home)
    yield found
    found.close()


def test_the_log_is_listed_newest_first_and_by_kind_session_and_project(log: Log, reader: Reader) -> None:
    fill(log, 2)
    other = {**COMMON, "session": "다른 세션", "project": "b2" * 16}
    log.write(Draft(model.OBSERVED_NOTE, {**other, "text": "메모"}))
    everything = reader.log(limit=1000)
    assert everything[0].payload is not None
    assert everything[0].payload["text"] == "메모"
    assert [event.order for event in everything] == sorted((event.order for event in everything), reverse=True)
    assert [event.kind for event in reader.log(kind="observed.prompt", limit=9)] == ["observed.prompt"] * 2
    assert {event.kind for event in reader.log(kind="memory")} >= {"memory.formed", "memory.superseded"}
    assert reader.log(kind="memo") == []
    assert len(reader.log(session="다른 세션")) == len(reader.log(project="b2" * 16)) == 1
    assert len(reader.log(kind="observed", session="세션 1", project=PROJECT, limit=3)) == 3


def test_the_projects_of_a_link_are_counted_and_listed_together(log: Log, reader: Reader) -> None:
    second = "b2" * 16
    log.write(memory("하나"), memory("둘", 1, project=second))
    (link,) = log.write(Draft(model.PROJECT_LINKED, {"a": second, "b": PROJECT}))
    log.write(Draft(model.OBSERVED_NOTE, {**COMMON, "project": second, "text": "메모"}))
    roots = reader.connection.execute("select project, project_root from shown order by project").fetchall()
    assert roots == [(PROJECT, PROJECT), (second, PROJECT)]
    assert len(reader.log(project=PROJECT)) == len(reader.log(project=second)) == 3
    assert reader.counts(PROJECT).memories == 2
    log.write(Draft(model.PROJECT_UNLINKED, {}, 0, (link,)))
    roots = reader.connection.execute("select project_root from shown order by project").fetchall()
    assert roots == [(PROJECT,), (second,)]
    assert reader.counts(second).memories == 1


def test_an_event_is_found_by_the_beginning_of_its_id(log: Log, reader: Reader) -> None:
    made = fill(log, 2)
    for identity in made:
        for digits in (6, 13, 14, 15, 40, 64):
            assert identity in [spot.id for spot in reader.spots(identity.hex()[:digits].upper())]
        assert len(reader.spots(identity.hex())) == 1
    assert reader.spots("") == reader.spots("xyz") == reader.spots("0" * 65) == []
    found = reader.event(made[0])
    assert found is not None
    assert found.kind == model.OBSERVED_PROMPT
    assert reader.event(b"\0" * 32) is None


def test_an_event_whose_segment_is_gone_comes_without_a_body(log: Log, reader: Reader) -> None:
    fill(log, 1)
    for path in log.home.segments.iterdir():
        path.rename(path.with_suffix(".away"))
    events = reader.log(limit=100)
    assert len(events) > 5
    assert all(event.payload is None for event in events)
    assert all(event.header.kind for event in events)
    assert reader.observation_text(1) == ""


def test_counts_sessions_and_projects_tell_what_was_done(log: Log, reader: Reader) -> None:
    log.write(
        Draft(model.SESSION_OPENED, {**COMMON, "source": "startup", "transcript": "/기록.jsonl", "model": "m"}, 0),
        Draft(model.PROJECT_SEEN, {"key": PROJECT, "name": "상점", "identities": [["path", "d\0/x"]], "path": "/상점",
                                   "device": "d"}, 100),
    )  # fmt: skip
    fill(log, 2)
    counts, here = reader.counts(), reader.counts(PROJECT)
    assert (counts.observed, counts.sessions, counts.last_agent) == (8, 1, "claude")
    assert (counts.memories, counts.erased, here.memories, here.observed) == (1, 2, 1, 8)
    assert reader.counts("c3" * 16).memories == 0
    (session,) = reader.sessions(PROJECT)
    assert (session.session, session.branch, session.transcript, session.closed) == (
        "세션 1",
        "main",
        "/기록.jsonl",
        None,
    )
    (project,) = reader.projects()
    assert (project.name, project.paths, project.memories, project.observations) == ("상점", ("/상점",), 1, 8)
    log.write(Draft(model.SESSION_CLOSED, {**COMMON, "reason": "exit"}))
    assert reader.sessions()[0].closed is not None
    log.write(observed(model.OBSERVED_PROMPT, text="다시"))
    payload = {"key": PROJECT, "name": "상점", "identities": [["path", "d\0/x"]], "path": "/상점", "device": "d"}
    assert reader.knows_place(payload)
    assert not reader.knows_place({**payload, "name": "다른 이름"})
    assert not reader.knows_place({**payload, "identities": [["remote", "x/y"]]})
    assert not reader.knows_place({**payload, "device": "e"})


def test_what_was_told_is_forgotten_at_a_compaction(log: Log, reader: Reader) -> None:
    (one,) = log.write(memory("하나"))
    told = {**COMMON, "event": "SessionStart", "items": [[one, "standing", 5]], "tokens": 9}
    log.write(Draft(model.CONTEXT_DELIVERED, told))
    assert reader.delivered("세션 1") == {one}
    assert reader.delivered("다른 세션") == frozenset()
    log.write(Draft(model.SESSION_OPENED, {**COMMON, "source": "compact"}))
    assert reader.delivered("세션 1") == frozenset()
    log.write(Draft(model.CONTEXT_DELIVERED, told))
    assert reader.delivered("세션 1") == {one}


def test_an_observation_is_found_by_its_words_its_day_and_the_prompt_before_it(log: Log, reader: Reader) -> None:
    log.write(
        observed(model.OBSERVED_PROMPT, 0, text="데이터베이스 연결을 고쳐줘"),
        observed(model.OBSERVED_REPLY, 1, text="getUserById is fixed"),
        observed(model.OBSERVED_SHELL, 2, command="pytest -x tests/저장소", ok=False),
    )

    def kinds(words: str) -> list[str]:
        sql = "select e.kind from observation_fts f join events e on e.n = f.rowid where observation_fts match ?"
        return sorted(kind for (kind,) in reader.connection.execute(sql, (words,)))

    assert kinds('"user"') == [model.OBSERVED_REPLY]
    assert kinds('"연결"') == [model.OBSERVED_PROMPT, model.OBSERVED_REPLY]
    assert kinds('"pytest"') == [model.OBSERVED_SHELL]
    n = reader.connection.execute("select n from events where kind = 'observed.shell'").fetchone()[0]
    assert reader.observation_text(n) == "pytest -x tests/저장소"
    prompt = reader.log(kind="observed.prompt")[0]
    assert reader.session_of(prompt.header.nonce) == "세션 1"
    log.write(Draft(model.ERASE_REQUESTED, {"ids": [prompt.id], "reason": "비밀"}))
    assert kinds('"연결"') == []
    assert kinds('"user"') == [model.OBSERVED_REPLY]
    assert "연결" not in str(reader.connection.execute("select * from sessions").fetchall())


def test_a_reader_never_writes(log: Log) -> None:
    connection = schema.open_read(log.home.index)
    with pytest.raises(Exception, match="readonly"):
        connection.execute("delete from events")
    connection.close()
