"""A backlog that a second process prepares ahead gives what one process makes of it, whatever becomes of the second."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from bench.stores import Agent, new_project
from memorize.bootstrap import App, ahead, open_app, store
from memorize.bootstrap.intake import Said
from memorize.errors import CannotWrite
from memorize.log.spool import put_batch, put_capture
from memorize.model import CONTEXT_DELIVERED, OBSERVED_NOTE, Draft, Event
from memorize.paths import adapters_dir
from tests.children import environ
from tests.counts import count
from tests.log.fakes import events_on_disk, segments

Started = subprocess.Popen[bytes]
CALLS = 240
KILLS = count("kills of the process that prepares ahead", quick=6, full=100)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few files be a large backlog."""
    monkeypatch.setattr(store, "BACKLOG_FILES_MIN", 20)
    monkeypatch.setattr(ahead, "HEAD_FILES", 8)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Started]:
    """Return what is started, as it is started."""
    found: list[Started] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            found.append(self)

    monkeypatch.setattr(ahead.subprocess, "Popen", Noted)
    return found


def fill(app: App, folder: Path, calls: int = CALLS) -> None:
    """Put a bit of everything into the spool."""
    project = new_project(folder / "저장소")
    off = folder / "off"
    off.mkdir()
    (off / ".memorize.toml").write_text("capture = false\n", "utf-8")

    def drop(event: str, data: bytes, agent: str = "claude") -> bytes:
        return put_capture(app.home, agent, event, data, app.clock)

    opened = b""
    for number, (event, data) in enumerate(Agent(project, silent=True).calls(calls)):
        nonce = drop(event, data)
        opened = nonce if event == "SessionStart" else opened
        if number % 40 == 10:
            record = json.dumps({"items": [["ab" * 32, "이유", 3]], "agent": "claude"}).encode()
            drop("delivered", opened.hex().encode() + b"\n" + record, "memorize")
            drop("delivered", b"00" * 16 + b"\n" + record, "memorize")
            drop("delivered", b"no record", "memorize")
            put_batch(app.home, [Draft(OBSERVED_NOTE, {"text": "쪽지"}), Draft(OBSERVED_NOTE, {}, 1, (0,))], app.clock)
        if number % 40 == 20:
            drop("Stop", b"{ nothing like it")
            drop("UserPromptSubmit", json.dumps({"session_id": "s", "cwd": str(off), "prompt": "no"}).encode())
            odd = {"session_id": "s\udc80", "cwd": str(folder), "prompt": "낱 \ud800 글자 password=hunter2hunter2"}
            drop("UserPromptSubmit", json.dumps(odd).encode())
            (app.home.spool / "new" / f"~ no {number}\n name").write_bytes(b"")
    for path in sorted((adapters_dir() / "codex" / "fixtures").glob("*.json")):
        call = {**json.loads(path.read_text("utf-8"))["stdin"], "cwd": str(folder / f"plain {path.stem}")}
        drop(path.name.partition(".")[0], json.dumps(call).encode(), "codex")


def pair(folder: Path, calls: int = CALLS) -> tuple[App, App]:
    """Return two programs with the same captures in their spools, and the same device."""
    one = open_app({"MEMORIZE_HOME": str(folder / "one")})
    one.ingest()
    fill(one, folder, calls)
    one.close()
    shutil.copytree(one.home.root, folder / "other")
    return one, open_app({"MEMORIZE_HOME": str(folder / "other")})


@pytest.fixture
def twins(tmp_path: Path) -> tuple[App, App]:
    """Return two programs with the same captures in their spools, and the same device."""
    return pair(tmp_path)


def told(app: App) -> list[tuple[Any, ...]]:
    """Return what the log says, without what differs between two replicas."""
    return [_told(event) for event in events_on_disk(segments(app.home)) if event.kind != "device.hello"]


def _told(event: Event) -> tuple[Any, ...]:
    header = event.header
    return header.nonce, header.ordinal, event.kind, event.payload, header.deps != (), header.mono


def left(app: App, folder: str) -> list[str]:
    return sorted(path.name for path in (app.home.spool / folder).iterdir())


def alone(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest in one process."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "BACKLOG_FILES_MIN", 10**9)
        app.ingest()


def same(one: App, other: App) -> None:
    """Compare all that can be seen of two programs."""
    assert told(one) == told(other)
    assert left(one, "new") == left(other, "new") == []
    assert left(one, "bad") == left(other, "bad")
    assert list(one.intake.recent) == list(other.intake.recent)
    rows = "select n, kind, nonce, session, project from events where kind <> 'device.hello'"
    assert one.reader().connection.execute(rows).fetchall() == other.reader().connection.execute(rows).fetchall()
    one.close()
    other.close()


@pytest.fixture
def followed(twins: tuple[App, App], monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return what the first program took over from its second process, as it does."""
    found: list[object] = []
    follow = twins[0].intake.follow

    def noting(said: Said) -> Sequence[Draft]:
        found.append(said)
        return follow(said)

    monkeypatch.setattr(twins[0].intake, "follow", noting)
    return found


def test_two_processes_make_the_same_events_of_a_backlog_as_one(
    twins: tuple[App, App], monkeypatch: pytest.MonkeyPatch, started: list[Started], followed: list[object]
) -> None:
    one, other = twins
    one.ingest()
    alone(other, monkeypatch)
    assert [process.returncode is not None for process in started] == [True]
    assert len(followed) > CALLS * 0.9
    assert {event[3]["session"] != "" for event in told(one) if event[2] == CONTEXT_DELIVERED} == {True, False}
    same(one, other)


def test_few_files_start_no_process(
    twins: tuple[App, App], monkeypatch: pytest.MonkeyPatch, started: list[Started]
) -> None:
    alone(twins[0], monkeypatch)
    assert started == []


def test_a_kill_of_the_second_process_at_any_moment_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Started]
) -> None:
    chance = random.Random(2026)
    for number in range(KILLS):
        one, other = pair(tmp_path / str(number), 150)
        delay = chance.choice((0.0, chance.uniform(0.0, 0.1), chance.uniform(0.1, 0.6)))
        wanted = len(started) + 1

        def kill(wanted: int = wanted, delay: float = delay) -> None:
            while len(started) < wanted:
                time.sleep(0.001)
            time.sleep(delay)
            started[-1].send_signal(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        one.ingest()
        killer.join()
        alone(other, monkeypatch)
        same(one, other)


@pytest.mark.parametrize("after", [0, 1, 5_000, 40_000])
def test_a_stream_that_ends_or_goes_wrong_anywhere_changes_nothing(
    twins: tuple[App, App], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    one, other = twins
    real = ahead._Unpacker

    class Cut:
        """Ends, or says something else, behind so many bytes."""

        def __init__(self, pipe: IO[bytes]) -> None:
            self.pipe, self.left = pipe, after

        def read(self, size: int) -> bytes:
            data = self.pipe.read(min(size, self.left)) if self.left else b"\xc1\x01\x93" * (after % 40 == 0)
            self.left = max(0, self.left - len(data))
            return data

    monkeypatch.setattr(ahead, "_Unpacker", lambda pipe: real(Cut(pipe)))
    one.ingest()
    alone(other, monkeypatch)
    same(one, other)


def test_a_second_process_that_cannot_start_changes_nothing(
    twins: tuple[App, App], monkeypatch: pytest.MonkeyPatch, followed: list[object]
) -> None:
    one, other = twins
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/no such program")
        one.ingest()
    alone(other, monkeypatch)
    assert followed == []
    same(one, other)


def test_an_error_of_the_ingester_ends_the_second_process(
    twins: tuple[App, App], monkeypatch: pytest.MonkeyPatch, started: list[Started]
) -> None:
    one, other = twins

    def full(*_: object) -> None:
        raise CannotWrite(path="segments", detail="No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(one._ingester, "_write", full)
        with pytest.raises(CannotWrite):
            one.ingest()
    assert [process.returncode is not None for process in started] == [True]
    one.ingest()
    alone(other, monkeypatch)
    assert told(one) == told(other)


def _target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # closed meanwhile
        return ""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
def test_the_second_process_has_no_file_of_the_first_one_and_leaves_when_that_is_killed(tmp_path: Path) -> None:
    one, _ = pair(tmp_path, 3_000)
    program = (
        "import sys, time; from memorize.bootstrap import ahead, open_app, store;"
        "store.BACKLOG_FILES_MIN = ahead.HEAD_FILES = 20;"
        f"app = open_app({{'MEMORIZE_HOME': {str(one.home.root)!r}}}); follow = app.intake.follow;"
        "app.intake.follow = lambda said: (print('on', flush=True), time.sleep(60), follow(said));"
        "app.ingest()"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ(), cwd=tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"on\n"
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text("ascii").split()
        assert len(children) == 1
        second = Path(f"/proc/{children[0]}")
        open_files = [link for path in (second / "fd").iterdir() if (link := _target(path))]
        assert len(open_files) >= 3
        # What it reads right now may be among them, but neither lock nor log nor index.
        assert [link for link in open_files if str(one.home.root) in link and "/spool/new/" not in link] == []
        first.kill()
    end = time.monotonic() + 30
    while second.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not second.exists()
    again = open_app({"MEMORIZE_HOME": str(one.home.root)})
    again.ingest(wait_s=30)
    assert left(again, "new") == []
