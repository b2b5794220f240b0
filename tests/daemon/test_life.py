"""Who serves, how it comes and how it goes."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import memorize
from memorize.agents.hookfiles import follow_start
from memorize.bootstrap import open_app
from memorize.daemon import life
from memorize.errors import DaemonStays
from tests.counts import count
from tests.daemon.kit import PATIENCE_S, Place, until


def test_of_many_daemons_that_start_at_once_one_serves(place: Place) -> None:
    processes = [place.launch() for _ in range(4)]
    running = place.running()
    for process in processes:
        if process.pid != running.pid:
            assert process.wait(PATIENCE_S) == 0
    assert place.running().pid == running.pid


def test_a_daemon_that_is_killed_is_replaced_and_nothing_is_lost(place: Place) -> None:
    kills = count("daemons killed", quick=5, full=20)
    for number in range(kills):
        process = place.launch()
        place.running()
        for part in range(5):
            place.capture("UserPromptSubmit", "s", prompt=f"{number}번째 프롬프트, {part}")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
    place.serve()
    place.drained()
    texts = [event.payload["text"] for event in place.events("observed.prompt") if event.payload]
    assert sorted(texts) == sorted(f"{number}번째 프롬프트, {part}" for number in range(kills) for part in range(5))


def test_the_socket_of_a_dead_daemon_is_in_nobodys_way(place: Place) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(life.endpoint(place.home))
    assert Path(life.endpoint(place.home)).exists()
    assert life.status(place.home) is None
    assert place.serve().version


def test_a_state_directory_with_a_long_path_has_its_socket_elsewhere_and_leaves_nothing_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = place.home.root.parent / ("긴" * 30) / "state"
    place.home.root.parent.joinpath("긴" * 30).mkdir()
    monkeypatch.setenv("MEMORIZE_HOME", str(root))
    long = open_app(os.environ).home
    life.start(long)
    endpoint = Path(life.endpoint(long))
    assert not endpoint.is_relative_to(root)
    assert endpoint.parent.stat().st_mode & 0o777 == 0o700
    assert endpoint.stat().st_mode & 0o777 == 0o600
    assert life.stop(long)
    assert not endpoint.parent.exists()


def test_a_daemon_without_its_socket_leaves(place: Place) -> None:
    process = place.launch()
    place.running()
    Path(life.endpoint(place.home)).unlink()
    assert process.wait(PATIENCE_S) == 0


def test_a_daemon_whose_state_directory_is_deleted_leaves_and_does_not_make_it_again(place: Place) -> None:
    process = place.launch()
    place.capture("Stop", "s", last_assistant_message="끝")
    until(lambda: place.running().ingested, "the first round is over")
    shutil.rmtree(place.home.root, ignore_errors=True)
    shutil.rmtree(place.home.root, ignore_errors=True)
    process.wait(PATIENCE_S)
    assert not place.home.identity.exists()


def test_an_idle_daemon_leaves(place: Place) -> None:
    place.home.config.write_text("[daemon]\nidle_exit_s = 1\n", encoding="utf-8")
    process = place.launch()
    assert process.wait(PATIENCE_S) == 0
    assert not Path(life.endpoint(place.home)).exists()


@pytest.mark.parametrize("word", ["SIGTERM", "SIGHUP"])
def test_the_signal_to_end_is_obeyed_and_a_lost_terminal_is_not(place: Place, word: str) -> None:
    process = place.launch()
    place.running()
    process.send_signal(getattr(signal, word))
    if word == "SIGTERM":
        assert process.wait(PATIENCE_S) == 0
        assert not Path(life.endpoint(place.home)).exists()
    else:
        assert place.running().pid == process.pid


def test_a_daemon_that_was_stopped_can_be_started_at_once(place: Place) -> None:
    pids = set()
    for _ in range(3):
        pids.add(life.start(place.home).pid)
        assert life.stop(place.home)
        assert life.status(place.home) is None
    assert len(pids) == 3
    assert not life.stop(place.home)


def test_a_daemon_that_is_just_leaving_is_waited_for(place: Place) -> None:
    lock = life.daemon_lock(place.home)
    assert lock.acquire()
    place.launch()
    with pytest.raises(DaemonStays):
        life.stop(place.home, 0.5)
    lock.release()
    assert place.running().version


def test_an_older_daemon_is_asked_to_leave_and_replaced(place: Place) -> None:
    code = "import memorize; memorize.__version__ = '0.0.1'"
    old = place.serve(code)
    assert old.version == "0.0.1"
    assert life.look(place.home) is None
    until(lambda: not life.is_locked(place.home), "the old daemon is gone")
    old = place.serve(code)
    new = life.start(place.home)
    assert (new.pid, new.version) != (old.pid, old.version)
    assert life.look(place.home) is not None


def test_a_newer_daemon_is_left_alone(place: Place) -> None:
    newer = place.serve("import memorize; memorize.__version__ = '99.0'")
    assert life.start(place.home).pid == newer.pid
    assert life.look(place.home) is not None
    assert place.running().version == "99.0"


def test_a_daemon_whose_program_was_replaced_leaves(place: Place, tmp_path: Path) -> None:
    package = tmp_path / "memorize"
    shutil.copytree(Path(memorize.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    process = place.launch(f"sys.path.insert(0, {str(tmp_path)!r})")
    place.running()
    copy = package / "__init__.py"
    beside = package / "new"
    beside.write_text(copy.read_text("utf-8"), encoding="utf-8")
    beside.replace(copy)
    assert process.wait(PATIENCE_S) == 0


def test_a_daemon_whose_configuration_changed_leaves(place: Place) -> None:
    process = place.launch()
    place.running()
    place.home.config.write_text('[daemon]\nstart = "never"\n', encoding="utf-8")
    assert process.wait(PATIENCE_S) == 0


def test_what_another_version_says_of_itself_is_understood_as_far_as_it_goes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reply, version in (
        (b"\x91\x01", "unknown"),
        (b"\x82\xa7version\xa50.0.2\xa3new\x01", "0.0.2"),
        (b"", "unknown"),
    ):
        monkeypatch.setattr(life, "ask", lambda *_, said=reply: said)
        found = life.status(place.home)
        assert found is not None
        assert found.version == version
        assert life.is_older(found)


@pytest.mark.parametrize("number", [3, 900])
def test_whoever_starts_a_daemon_meets_the_end_of_its_output_at_once(place: Place, number: int) -> None:
    pids = []

    def call() -> None:
        stray, low = os.pipe()
        ours = fcntl.fcntl(low, fcntl.F_DUPFD, number)
        os.close(low)
        command = [sys.executable, "-I", "-S", str(place.home.hook_program), "claude", "SessionStart"]
        started = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.project,
            pass_fds=(ours,),
        )
        os.close(ours)
        started.communicate(place.payload("SessionStart", "s", source="startup"), timeout=PATIENCE_S)
        pids.append(started.pid)
        with os.fdopen(stray, "rb") as end:
            assert end.read() == b""

    assert place.woken_by(call).pid not in pids


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc to look into a process")
@pytest.mark.parametrize("by", ["hook", "program"])
def test_a_daemon_keeps_the_persons_logins_and_nothing_of_the_agent_that_started_it(
    place: Place, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "GIT_DIR", "PYTHONPATH"):
        monkeypatch.setenv(name, "/of-the-agent")
    # Consolidation asks the agents' programs, which need all of these.
    theirs = ("LC_ALL", "HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "MY_KEY")
    for name in theirs:
        monkeypatch.setenv(name, "C.UTF-8")
    if by == "hook":
        place.woken_by(lambda: place.hook("SessionStart", "s", source="startup"))
    else:
        life.start(place.home)
    process = Path("/proc") / str(place.running().pid)
    environ = (process / "environ").read_bytes()
    assert b"of-the-agent" not in environ
    assert all(f"{name}=C.UTF-8".encode() in environ for name in theirs)
    assert b"MEMORIZE_HOME=" in environ
    assert (process / "cwd").readlink() == Path("/")
    assert {str((process / "fd" / str(number)).readlink()) for number in range(3)} == {"/dev/null"}
    assert (process / "stat").read_text("utf-8").rpartition(")")[2].split()[3] == str(
        place.running().pid
    )  # its session


def test_a_daemon_writes_nowhere_but_into_its_state_directory(place: Place, own_home: Path) -> None:
    def seen() -> dict[str, int]:
        folders = (own_home, place.project, place.home.root.parent)
        paths = (path for folder in folders for path in folder.rglob("*"))
        return {str(path): path.stat().st_mtime_ns for path in paths if not path.is_relative_to(place.home.root)}

    before = seen()
    place.serve()
    place.session("s")
    place.drained()
    assert place.told("SessionStart", "t", source="startup")
    place.end()
    assert seen() == before
    assert [path for path in place.home.root.rglob("*") if path.stat().st_mode & 0o077] == []


def test_never_start_is_obeyed_and_taken_back(place: Place) -> None:
    follow_start(place.home, "never")
    place.hook("SessionStart", "s", source="startup")
    assert not (place.home.hook / "started").exists()
    follow_start(place.home, "on-demand")
    assert place.woken_by(lambda: place.hook("SessionStart", "s", source="startup")).version


def test_a_mark_against_daemons_that_a_person_made_stays(place: Place) -> None:
    mark = place.home.hook / "nodaemon"
    mark.touch()
    follow_start(place.home, "on-demand")
    assert mark.exists()
    follow_start(place.home, "never")
    assert mark.read_bytes() == b""
