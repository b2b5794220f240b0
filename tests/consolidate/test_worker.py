"""The worker: what a model answers becomes memories whole or not at all, within the caps, whatever happens to it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from memorize.bootstrap import App, open_app
from memorize.consolidate.login import Choice
from memorize.consolidate.port import ModelFailed, Reply, Request
from memorize.log.spool import put_capture
from memorize.model import MEMORY_FORMED, WINDOW_CONSOLIDATED
from tests.counts import count

TEXT = "Refunds stay idempotent: 재시도가 한 번 이중 결제를 냈다."


class Scripted:
    """A model that gives one answer, or fails, and counts how often it was asked."""

    name = "claude"

    def __init__(self, answer: str | ModelFailed) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    def ask(self, request: Request) -> Reply:
        self.asked.append(request)
        if isinstance(self.answer, ModelFailed):
            raise self.answer
        return Reply(self.answer, 1_000, 50, 10, "haiku", 0.1)


def memories(*texts: str) -> str:
    items = [
        {"kind": "decision", "text": text, "importance": 8, "confidence": 90, "scope": "project", "sources": [1]}
        for text in texts
    ]
    return json.dumps({"memories": items}, ensure_ascii=False)


@pytest.fixture
def app(tmp_path: Path) -> App:
    return open_app({"MEMORIZE_HOME": str(tmp_path / "state")})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "프로젝트"
    folder.mkdir()
    return folder


def captured(app: App, project: Path, session: str, *prompts: str) -> None:
    for prompt in prompts:
        call = {"session_id": session, "cwd": str(project), "prompt": prompt}
        put_capture(app.home, "claude", "UserPromptSubmit", json.dumps(call).encode(), app.clock)
    app.ingest()


def uses(app: App, model: Scripted | None, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Choice("claude", model, "scripted") if model else Choice("rules", None, "no agent is logged in")
    monkeypatch.setattr(app.models.extractors, "choose", lambda **_: choice)


def live(app: App) -> list[str]:
    return sorted(hit.row.text for hit in app.search("", None, 100).hits)


def test_what_a_model_answers_is_live_and_its_window_is_never_paid_for_again(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured(app, project, "s1", "We keep refunds idempotent, a retry double-charged somebody.")
    model = Scripted(memories(TEXT))
    uses(app, model, monkeypatch)
    assert (app.consolidate().windows, live(app)) == (1, [TEXT])
    for path in app.home.root.glob("index.sqlite*"):
        path.unlink()
    app.close()
    assert app.consolidate().windows == 0
    assert len(model.asked) == 1


@pytest.mark.parametrize("said", ["", "I am sorry, I cannot do that.", "{", "[1] see there"])
def test_an_answer_without_memories_in_it_leaves_the_window_open_and_no_rules_step_in(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    captured(app, project, "s1", "We decided to use ULIDs.")
    uses(app, Scripted(said), monkeypatch)
    assert app.consolidate().failed == 1
    assert (live(app), len(app.open_windows())) == ([], 1)
    assert app.reader().log(kind=WINDOW_CONSOLIDATED) == []


def test_five_failures_park_a_window_until_it_is_asked_for(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured(app, project, "s1", "We decided to use ULIDs.")
    model = Scripted(ModelFailed("exit", "broken"))
    uses(app, model, monkeypatch)
    for _ in range(5):
        assert app.consolidate().failed == 1
    assert app.consolidate().parked == 1
    assert len(model.asked) == 5
    assert app.models.attempts.retry_parked() == 1
    model.answer = memories(TEXT)
    assert app.consolidate().windows == 1


def test_at_boundaries_a_failing_service_is_tried_less_and_less_often(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured(app, project, "s1", "We decided to use ULIDs.")
    model = Scripted(ModelFailed("timeout", "no answer"))
    uses(app, model, monkeypatch)
    tried = []
    for _ in range(12):
        before = len(model.asked)
        app.consolidate({("claude", "s1")})
        tried.append(len(model.asked) - before)
    assert tried[0] == 1
    assert sum(tried) <= 4


def test_the_cap_of_a_day_stops_everything_and_says_so(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.home.root.mkdir(parents=True, exist_ok=True)
    app.home.config.write_text("[consolidate]\ncalls_per_day = 3\n", encoding="utf-8")
    capped = open_app({"MEMORIZE_HOME": str(app.home.root)})
    for number in range(5):
        captured(capped, project, f"s{number}", f"We decided number {number}, 결정 {number}.")
    model = Scripted('{"memories": []}')
    uses(capped, model, monkeypatch)
    report = capped.consolidate()
    assert (len(model.asked), report.windows) == (3, 3)
    assert "the cap of 3 model calls a day is reached" in report.notice
    assert len(capped.open_windows()) == 2


def test_what_rules_have_read_a_model_reads_again_only_when_asked_to(
    app: App, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured(app, project, "s1", "We decided to use ULIDs.", "커밋 메시지는 반드시 한 줄이어야 한다.")
    uses(app, None, monkeypatch)
    app.consolidate()
    assert "We decided to use ULIDs." in live(app)
    model = Scripted(memories(TEXT))
    uses(app, model, monkeypatch)
    assert app.consolidate().windows == 0
    again = app.windows_again(None)
    assert [len(window.events) for window in again] == [2]
    assert app.close_windows(again).windows == 1
    assert live(app) == [TEXT]
    assert app.windows_again(None) == []
    assert app.open_windows() == []


def fingerprint(app: App) -> Counter[tuple[object, ...]]:
    """What there is when all is done: a multiset of (kind, text, scope, status, sources)."""
    rows = app.reader().connection.execute("select kind, text, scope, status, sources from memories")
    return Counter(tuple(row) for row in rows if row[3] != "shadowed")


def killed(home: Path, after_s: float) -> None:
    """Start a worker as a person would, and kill it at some instant."""
    command = [sys.executable, "-m", "memorize", "consolidate", "--wait"]
    environ = {**os.environ, "MEMORIZE_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_worker_killed_at_any_instant_leaves_what_an_undisturbed_one_does(app: App, project: Path) -> None:
    for number in range(12):
        captured(app, project, f"s{number}", f"We decided on number {number}.", f"숫자 {number}은 반드시 지켜야 한다.")
    app.close()
    whole = app.home.root.parent / "whole"
    shutil.copytree(app.home.root, whole)
    done = open_app({"MEMORIZE_HOME": str(whole)})
    started = time.monotonic()
    killed(whole, 60.0)
    lasts = time.monotonic() - started
    expected = fingerprint(done)
    assert sum(expected.values()) >= 24
    chance = random.Random(7)
    kills = count("workers killed", quick=8, full=300)
    for trial in range(0, kills, 10):
        home = app.home.root.parent / f"trial{trial}"
        shutil.copytree(app.home.root, home)
        for _ in range(min(10, kills - trial)):
            killed(home, chance.uniform(0.3, 1.0) * lasts)
        killed(home, 60.0)
        survivor = open_app({"MEMORIZE_HOME": str(home)})
        assert fingerprint(survivor) == expected
        assert survivor.open_windows() == []
        formed = survivor.reader().log(kind=MEMORY_FORMED, limit=1_000)
        assert len(formed) == sum(expected.values())
        survivor.close()
        shutil.rmtree(home)
