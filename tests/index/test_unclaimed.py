"""Open windows: which sessions have observations that no claim names, found at the cost of these sessions alone."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from memorize import model
from memorize.index import schema, unclaimed
from tests.index import make

REPLICA = b"r" * 16
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
    (found,) = unclaimed.open_sessions(index, REPLICA)
    assert (found.session, found.agent, found.observations, found.closed) == ("open", "claude", 3, None)
    assert len(unclaimed.unclaimed(index, "open")) == 3
    assert unclaimed.unclaimed(index, "닫힌 세션") == []
    assert unclaimed.open_sessions(index, b"x" * 16) == []


def test_open_windows_are_found_along_the_index_of_sessions(index: sqlite3.Connection) -> None:
    asked: list[str] = []
    index.set_trace_callback(asked.append)
    unclaimed.open_sessions(index, REPLICA)
    unclaimed.unclaimed(index, "open")
    index.set_trace_callback(None)
    plans = [str(row[3]) for sql in asked for row in index.execute(f"explain query plan {sql}")]
    assert plans
    assert [plan for plan in plans if plan.startswith(("SCAN e", "SCAN events"))] == []
    assert [plan for plan in plans if "INDEX events_session" in plan]
