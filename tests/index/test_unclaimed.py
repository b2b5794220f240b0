"""Open windows: which sessions have observations that no claim names, found at the cost of these sessions alone."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from memorize import model
from memorize.index import schema, unclaimed
from memorize.model import Event
from tests.index import make

OWN = unclaimed.Owner("d1", b"r" * 16)
WHERE = {"agent": "claude", "project": "p" * 32, "branch": "main", "head": "", "dir": ""}


@pytest.fixture
def index(tmp_path: Path) -> sqlite3.Connection:
    """Two sessions of three prompts each; a claim names those of the first one."""
    path, seed = tmp_path / "index.sqlite", random.Random(3)
    sessions = ("닫힌 세션", "open")
    prompts = [
        make.event(model.OBSERVED_PROMPT, {**WHERE, "session": session, "text": f"prompt {n}"}, n, seed)
        for n, session in enumerate(sessions * 3, 1)
    ]
    named = [event.id for event in prompts if event.payload["session"] == sessions[0]]
    claim = {"window": "aa" * 16, "agent": "claude", "session": sessions[0], "sources": named, "events": []}
    events = [*prompts, make.event(model.WINDOW_CONSOLIDATED, claim, 9, seed)]
    make.new_index(path).apply(make.stored(events), {make.FILE: 1_000}, make.NOW)
    return schema.open_read(path)


def test_a_session_is_open_until_claims_name_all_its_observations(index: sqlite3.Connection) -> None:
    (found,) = unclaimed.open_sessions(index, OWN)
    assert (found.session, found.agent, found.observations, found.closed) == ("open", "claude", 3, None)
    assert len(unclaimed.unclaimed(index, "open")) == 3
    assert unclaimed.unclaimed(index, "닫힌 세션") == []
    assert unclaimed.open_sessions(index, OWN._replace(replica=b"x" * 16)) == []


def test_open_windows_are_found_along_the_index_of_sessions(index: sqlite3.Connection) -> None:
    asked: list[str] = []
    index.set_trace_callback(asked.append)
    unclaimed.open_sessions(index, OWN)
    unclaimed.unclaimed(index, "open")
    index.set_trace_callback(None)
    plans = [str(row[3]) for sql in asked for row in index.execute(f"explain query plan {sql}")]
    assert plans
    assert [plan for plan in plans if plan.startswith(("SCAN e", "SCAN events"))] == []
    assert [plan for plan in plans if "INDEX events_session" in plan]


def greeting(replica: bytes, device: str) -> Event:
    seed = random.Random(replica[0])
    event = make.event(model.DEVICE_HELLO, {"device": device, "name": "기계"}, 20, seed)
    return event._replace(header=event.header._replace(replica=replica))


def test_a_session_stays_that_of_its_device_when_the_replica_is_renewed(tmp_path: Path) -> None:
    seed = random.Random(5)
    prompt = make.event(model.OBSERVED_PROMPT, {**WHERE, "session": "옛 세션", "text": "x"}, 1, seed)
    events = [greeting(b"r" * 16, "d1"), greeting(b"n" * 16, "d1"), greeting(b"o" * 16, "d2"), prompt]
    make.new_index(tmp_path / "index.sqlite").apply(make.stored(events), {make.FILE: 1_000}, make.NOW)
    index = schema.open_read(tmp_path / "index.sqlite")

    def found(device: str, replica: bytes, silent_since: int = 0) -> list[str]:
        owner = unclaimed.Owner(device, replica, silent_since)
        return [one.session for one in unclaimed.open_sessions(index, owner)]

    assert found("d1", b"n" * 16) == ["옛 세션"]
    assert found("d2", b"o" * 16) == []
    assert found("d2", b"o" * 16, make.NOW) == ["옛 세션"]
    assert len(unclaimed.open_sessions(index, None)) == 1
    assert unclaimed.open_sessions(index, None, [("codex", "옛 세션"), ("claude", "other")]) == []
    assert len(unclaimed.open_sessions(index, None, [("claude", "옛 세션")])) == 1
