"""What a person gives is kept first; and whatever is wrong with index or disk, the verbs say the truth about it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memorize.recall.brief import brief_file_name
from tests.cli.kit import Person, Said
from tests.index.test_place import git

# The size that files may have is the nearest to a full disk that a test can have without a disk of its own.
_FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
_RUN = "import sys; from memorize.cli.main import main; main(sys.argv[1:])"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("begin exclusive")
    try:
        yield
    finally:
        holder.close()


def on_a_full_disk(person: Person, *words: str) -> Said:
    environ = {**os.environ, "MEMORIZE_HOME": str(person.home.root)}
    done = subprocess.run(
        [sys.executable, "-c", _FULL + _RUN, *words],
        cwd=person.project,
        capture_output=True,
        env=environ,
        timeout=60,
        check=False,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def texts(person: Person) -> list[str]:
    return [item["text"] for item in person.gets("list")["items"]]


def test_a_locked_index_keeps_nobody_from_remembering(person: Person) -> None:
    person.remembers("먼저.")
    with locked(person.home.index):
        said = person.types("remember", "잠긴 동안에도.", "--json")
        assert said.code == 0
        assert said.json["waiting"] is True
        assert "kept in the spool" in said.err
        assert "another" not in said.err.replace("another program", "")
    assert sorted(texts(person)) == ["먼저.", "잠긴 동안에도."]


@pytest.mark.parametrize("words", [("list",), ("search", "먼저"), ("status",), ("sessions",), ("log",), ("projects",)])
def test_a_locked_index_is_read_as_it_is_and_the_reader_is_told(person: Person, words: tuple[str, ...]) -> None:
    person.remembers("먼저.")
    person.hook("UserPromptSubmit", {"session_id": "s", "prompt": "이어서"})
    with locked(person.home.index):
        started = time.monotonic()
        said = person.types(*words)
        spent = time.monotonic() - started
    assert said.code == 0, said
    assert said.err.count("note: ") == 1
    assert "locked by another program" in said.err
    assert spent < 8  # 2 s, on a machine that has other things to do as well


def test_what_a_full_disk_does_not_take_is_said_to_be_lost(person: Person) -> None:
    person.remembers("먼저.")
    said = on_a_full_disk(person, "remember", "넘친다.")
    assert said.code == 15
    assert "What was given now was not kept." in said.err
    assert "spool and is not lost" not in said.err
    assert texts(person) == ["먼저."]


@pytest.mark.parametrize("words", [("list",), ("search", "먼저"), ("status",), ("verify",), ("pack", "먼저")])
def test_reading_needs_no_room_on_the_disk(person: Person, words: tuple[str, ...]) -> None:
    person.remembers("먼저.")
    with sqlite3.connect(person.home.index) as index:
        index.execute("pragma wal_checkpoint(truncate)")
    for waits in (False, True):
        if waits:
            person.hook("UserPromptSubmit", {"session_id": "s", "prompt": "이어서"})
        said = on_a_full_disk(person, *words)
        assert said.code == 0, said
        assert said.out


def test_a_spool_that_is_a_file_is_no_place_to_keep_anything(person: Person) -> None:
    person.home.spool.write_bytes(b"")
    said = person.types("remember", "어디로?")
    assert said.code == 20
    assert "not lost" not in said.err


def test_several_memories_are_forgotten_one_by_one_and_come_back_one_by_one(person: Person) -> None:
    first, second = person.remembers("하나."), person.remembers("둘.")
    person.gets("forget", first, second)
    assert texts(person) == []
    person.gets("restore", first)
    assert texts(person) == ["하나."]


@pytest.mark.parametrize("home", ["relative/state", "./here"])
def test_a_relative_state_directory_is_refused_and_none_is_made(
    person: Person, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("MEMORIZE_HOME", home)
    assert person.types("remember", "어디?").code == 20
    assert list(person.project.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system where nothing can be made")
@pytest.mark.parametrize("words", [("remember", "x"), ("list",), ("setup", "--agent", "claude")])
def test_a_state_directory_that_cannot_be_made_is_called_unusable(
    person: Person, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MEMORIZE_HOME", "/proc/nope")
    assert person.types(*words).code == 20


def test_the_first_session_in_a_project_is_told_what_was_only_remembered(person: Person) -> None:
    identity = person.remembers("환불은 한 번만 한다.", "--kind", "decision")

    def told() -> str:
        return person.hook("SessionStart", {"session_id": "s", "source": "startup"}).stdout.decode()

    assert "환불은 한 번만 한다." in told()
    new = person.gets("edit", identity, "환불은 두 번까지 한다.")["id"]
    assert "두 번까지" in told()
    assert "한 번만" not in told()
    person.gets("forget", new)
    assert "두 번까지" not in told()
    person.gets("restore", new)
    assert "두 번까지" in told()
    person.remembers("한국어로 답한다.", "--kind", "preference", "--personal")
    assert "한국어로 답한다." in told()
    assert (person.home.briefs / brief_file_name("claude", str(person.project))).exists()


def test_a_project_keeps_its_memory_through_commit_remote_and_new_name(person: Person) -> None:
    git(person.project, "init", "-q", "-b", "main")
    person.remembers("Prices are cents. 가격은 센트다.", "--kind", "decision")
    changes = (
        ("commit", "-q", "--allow-empty", "-m", "첫"),
        ("remote", "add", "origin", "https://git.example.com/a.git"),
        ("remote", "set-url", "origin", "https://git.example.com/b.git"),
    )
    for number, change in enumerate(changes):
        git(person.project, *change)
        start = person.hook("SessionStart", {"session_id": f"s{number}", "source": "startup"})
        assert "가격은 센트다." in start.stdout.decode()
        assert len(texts(person)) == 1
        assert person.gets("search", "가격")["total"] == 1
        assert person.gets("status")["memories"] == 1
    links = person.gets("log", "--kind", "project.linked")["items"]
    assert [item["ordinal"] for item in links] == [101] * 3
    person.remembers("새 이름으로.")
    assert len(texts(person)) == 2
    newest = max(person.gets("list")["items"], key=lambda item: item["recency_ms"])
    assert newest["project"] == person.gets("status")["project"]["key"]


@pytest.mark.parametrize("verb", [("list",), ("search", "가격"), ("status",), ("pack", "가격")])
def test_reading_links_a_project_too(person: Person, verb: tuple[str, ...]) -> None:
    git(person.project, "init", "-q", "-b", "main")
    person.remembers("가격은 센트다.", "--kind", "constraint")
    git(person.project, "commit", "-q", "--allow-empty", "-m", "첫")
    said = person.types(*verb, "--json")
    assert json.dumps("가격은 센트다.", ensure_ascii=False)[1:-1] in said.out or said.json["memories"] == 1
    assert person.gets("log", "--kind", "project.linked")["total"] >= 1
    assert len(person.gets("log", "--kind", "project.linked")["items"]) == 1


def test_a_project_is_known_by_its_first_capture_and_shown_on_one_line(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "두\n줄"
    odd.mkdir()
    person.hook("UserPromptSubmit", {"session_id": "s", "prompt": "안녕", "cwd": str(odd)})
    (project,) = person.gets("projects")["items"]
    assert (project["name"], project["paths"]) == ("두\n줄", [str(odd)])
    assert len(person.types("projects").out.splitlines()) == 1
