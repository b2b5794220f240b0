"""Before a tool every failure is silence: the hook exits 0, prints nothing, and lets the agent wait no longer."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.daemon.kit import PATIENCE_S, Place
from tests.daemon.test_before import RULE, remember, run, told

# Far more than any deadline, for a machine that stalls; what it must not be is for ever.
LOOSE_S = 60.0
GARBAGE = {
    "nothing": b"",
    "text": "git commit 쓰레기".encode(),
    "a list": b'["git commit"]',
    "a number": b"1",
    "half a document": b'{"session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"git commit',
    "bytes": bytes(range(256)) * 40,
    "deep": b'{"tool_input":' * 4_000,
    "wrong types": b'{"session_id":1,"cwd":[],"tool_name":{},"tool_input":"git commit"}',
}


def hook(place: Place, data: bytes, *, agent: str = "claude", **more: object) -> bytes:
    """Run the hook before a tool; it must leave with 0 and say nothing on stderr. Return what it printed."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(place.home.hook_program), agent, "PreToolUse"],
        input=data,
        cwd=place.project,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        **more,  # type: ignore[call-overload]
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert time.monotonic() - begun < LOOSE_S
    assert isinstance(done.stdout, bytes)
    return done.stdout


def commit(place: Place, session: str = "s") -> bytes:
    return place.payload("PreToolUse", session, tool_name="Bash", tool_input=run("git commit -m x"))


@pytest.fixture
def ruled(place: Place) -> Place:
    """A place with a rule that would be told if nothing were wrong."""
    remember(place, RULE, "git-commit")
    (place.home.hook / "nodaemon").touch()
    return place


def missing(place: Place) -> Iterator[None]:
    shutil.rmtree(place.home.segments)
    for path in place.home.root.glob("index.sqlite*"):
        path.unlink()
    yield


def locked(place: Place) -> Iterator[None]:
    holder = sqlite3.connect(place.home.index, isolation_level=None)
    holder.execute("pragma journal_mode = delete")
    holder.execute("begin exclusive")
    yield
    holder.close()


def corrupt(place: Place) -> Iterator[None]:
    for path in place.home.root.glob("index.sqlite-*"):
        path.unlink()
    place.home.index.write_bytes(os.urandom(100_000))
    yield


def unreadable_home(place: Place) -> Iterator[None]:
    place.home.config.write_text("= this is no configuration", encoding="utf-8")
    yield


HARMS = [missing, locked, corrupt, unreadable_home]


@pytest.mark.parametrize("harm", HARMS, ids=[harm.__name__ for harm in HARMS])
def test_a_store_that_cannot_be_asked_is_silence_without_a_daemon(
    ruled: Place, harm: Callable[[Place], Iterator[None]]
) -> None:
    with contextmanager(harm)(ruled):
        assert hook(ruled, commit(ruled)) == b""


def written_to(place: Place) -> Iterator[None]:
    holder = sqlite3.connect(place.home.index, isolation_level=None)
    holder.execute("begin immediate")
    yield
    holder.close()


@pytest.mark.parametrize("harm", [missing, written_to, corrupt], ids=["missing", "locked", "corrupt"])
def test_a_store_that_cannot_be_asked_harms_no_hook_with_a_daemon(
    place: Place, harm: Callable[[Place], Iterator[None]]
) -> None:
    remember(place, RULE, "git-commit")
    place.serve()
    told(place, "s", "Bash", run("git commit"))
    place.drained()
    with contextmanager(harm)(place):
        # An answer from what is still open is as right as none; an error never is.
        printed = hook(place, commit(place)).decode()
        assert printed == "" or RULE in printed


def test_a_full_disk_is_silence_and_no_error(ruled: Place) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    assert hook(ruled, commit(ruled), preexec_fn=full) == b""


def test_a_wedged_daemon_is_silence_and_no_program_is_started_for_it(place: Place) -> None:
    remember(place, RULE, "git-commit")
    process = place.launch()
    place.running()
    told(place, "s", "Bash", run("git commit"))
    process.send_signal(signal.SIGSTOP)
    try:
        for _ in range(3):
            assert hook(place, commit(place)) == b""
        assert (place.home.hook / "late").exists()
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_silence_without_a_daemon(ruled: Place, data: bytes) -> None:
    assert hook(ruled, data) == b""


@pytest.mark.parametrize("agent", ["codex", "nobody"])
def test_half_a_document_is_silence_for_every_agent(ruled: Place, agent: str) -> None:
    assert hook(ruled, GARBAGE["half a document"], agent=agent) == b""


def test_garbage_is_silence_with_a_daemon_which_goes_on(place: Place) -> None:
    remember(place, RULE, "git-commit")
    place.serve()
    for data in GARBAGE.values():
        assert hook(place, data) == b""
    assert RULE in told(place, "s", "Bash", run("git commit"))
    assert place.running().failures == 0


def test_a_project_that_is_gone_is_silence(ruled: Place, tmp_path: Path) -> None:
    call = commit(ruled).replace(str(ruled.project).encode(), str(tmp_path / "없음").encode())
    assert hook(ruled, call) == b""
