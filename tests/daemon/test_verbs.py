"""``memorize daemon``, and the verbs that care for it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from memorize.daemon import life
from memorize.errors import NoDaemon
from tests.cli.kit import Person
from tests.daemon.kit import Place


@pytest.fixture
def person(place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.chdir(place.project)
    return Person(place.home, place.project, capsys)


def test_a_daemon_is_started_shown_and_stopped(person: Person) -> None:
    assert "not running" in person.types("daemon").out
    started = person.types("daemon", "start")
    assert (started.code, started.out.split(" for ")[0]) == (0, "running")
    facts = person.gets("daemon", "status")
    assert facts["running"] is True
    assert person.gets("daemon", "start")["pid"] == facts["pid"]
    assert person.types("daemon", "stop").out == "stopped\n"
    assert "not running" in person.types("daemon", "stop").out
    assert person.gets("daemon", "status") == {"running": False}


def test_a_daemon_that_holds_the_lock_and_says_nothing_is_a_problem_with_a_remedy(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "START_S", 0.5)
    monkeypatch.setattr(life, "spawn", lambda home: None)
    lock = life.daemon_lock(person.home)
    assert lock.acquire()
    for words in (("daemon", "status"), ("daemon", "start")):
        said = person.types(*words)
        assert said.code == NoDaemon.exit
        assert "hint: " in said.err
    lock.release()


def test_a_daemon_that_answers_nothing_at_all_is_named(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "ASK_S", 0.2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stuck:
        stuck.bind(life.endpoint(person.home))
        stuck.listen()
        assert life.ask(person.home, b"S", 0.2) is None
    Path(life.endpoint(person.home)).unlink()


def test_without_a_daemon_every_verb_works_and_starts_none(person: Person) -> None:
    person.remembers("배포는 월요일에만 한다", "--kind", "decision")
    assert person.gets("search", "배포")["total"] == 1
    assert person.gets("status")["daemon"] is None
    assert life.status(person.home) is None


def test_with_a_daemon_what_is_remembered_is_in_its_next_answer(person: Person, place: Place) -> None:
    person.types("daemon", "start")
    person.remembers("배포는 월요일에만 한다", "--kind", "decision")
    assert "월요일" in place.told("SessionStart", "s", source="startup")
    assert person.gets("status")["daemon"]["failures"] == 0
    assert "월요일" in person.gets("search", "배포")["items"][0]["text"]
