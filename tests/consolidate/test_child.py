"""A program that answers, and every way in which it does not."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from memorize.consolidate import child
from tests.consolidate.programs import LONG_S, gone, program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are written as scripts with #!")


def run(path: Path, stdin: bytes = b"", deadline_s: float = 60.0, most: int = child.OUTPUT_BYTES_MAX) -> child.Done:
    environ = child.environment(os.environ, {})
    with child.workplace() as place:
        return child.run([str(path)], stdin, environ, place / "empty", deadline_s, most)


def test_what_goes_in_comes_out_and_both_streams_are_kept_apart(tmp_path: Path) -> None:
    done = run(program(tmp_path / "echo", "cat; echo 오류 >&2; exit 3"), "안녕 세계".encode() * 100_000)
    assert done.out == "안녕 세계".encode() * 100_000
    assert (done.status, done.err, done.late, done.large) == (3, "오류\n".encode(), False, False)


def test_it_runs_in_an_empty_directory_of_its_own_that_is_gone_afterwards(tmp_path: Path) -> None:
    done = run(program(tmp_path / "look", "pwd; ls -A; stat -c %a .. 2>/dev/null || stat -f %Lp .."))
    place, mode = done.out.decode().split()
    assert mode == "700"
    assert not Path(place).exists()
    assert not Path(place).parent.exists()


def test_it_has_a_group_of_its_own_and_no_terminal(tmp_path: Path) -> None:
    body = "import os\nprint(os.getpgrp() == os.getpid() == os.getsid(0), [os.isatty(n) for n in range(3)])\n"
    assert run(program(tmp_path / "look", body, python=True)).out == b"True [False, False, False]\n"


def test_an_argument_is_never_read_by_a_shell(tmp_path: Path) -> None:
    path = program(tmp_path / "args", 'printf "%s|" "$@"')
    with child.workplace() as place:
        words = [str(path), "", "$(touch x); `id`", "두 낱말"]
        done = child.run(words, b"", dict(os.environ), place / "empty", 60)
    assert done.out.decode() == "|$(touch x); `id`|두 낱말|"


def test_a_wrapper_whose_grandchild_keeps_the_streams_is_over_at_the_deadline_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    body = f"sleep {LONG_S} &\necho $! >>'{pids}'\necho $$ >>'{pids}'\necho 시작\nwait"
    began = time.monotonic()
    done = run(program(tmp_path / "wrapper", body), deadline_s=1.5)
    assert time.monotonic() - began < 1.5 + 2
    assert (done.late, done.status, done.out) == (True, None, "시작\n".encode())
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_one_that_left_its_group_and_one_that_is_deaf_to_signals_are_ended_too(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = f"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    open({str(pids)!r}, "a").write(f"{{os.getpid()}}\\n")
    time.sleep({LONG_S})
open({str(pids)!r}, "a").write(f"{{os.getpid()}}\\n")
time.sleep({LONG_S})
"""
    began = time.monotonic()
    done = run(program(tmp_path / "deaf", body, python=True), deadline_s=2)
    assert time.monotonic() - began < 2 + 2
    assert done.late
    written = [int(pid) for pid in pids.read_text().split()]
    if Path("/proc/self/environ").exists():
        assert len(written) == 2
        assert all(gone(pid) for pid in written)


def test_what_a_finished_program_left_running_is_ended_and_nobody_waits_for_it(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(program(tmp_path / "careless", f"sleep {LONG_S} &\necho $!"), deadline_s=LONG_S)
    assert time.monotonic() - began < 60
    assert done.status == 0
    assert gone(int(done.out))


def test_endless_output_is_cut_and_ended(tmp_path: Path) -> None:
    done = run(program(tmp_path / "yes", "exec yes 끝없이"), deadline_s=LONG_S, most=100_000)
    assert (done.large, done.status, len(done.out)) == (True, None, 100_000)


def test_too_much_said_in_one_breath_is_cut_too(tmp_path: Path) -> None:
    done = run(program(tmp_path / "much", "head -c 300000 /dev/zero >&2"), most=100_000)
    assert (done.large, len(done.err)) == (True, 100_000)


def test_a_program_that_is_killed_tells_by_what(tmp_path: Path) -> None:
    assert run(program(tmp_path / "dies", "kill -9 $$")).status == -9


@pytest.mark.parametrize("what", ["nothing", "not a program", "a folder"])
def test_a_program_that_cannot_be_started_is_missing(tmp_path: Path, what: str) -> None:
    path = tmp_path / "claude"
    if what == "not a program":
        path.write_text("hello", encoding="utf-8")
        path.chmod(0o644)
    if what == "a folder":
        path.mkdir()
    with pytest.raises(child.NotStarted) as caught:
        run(path)
    assert child.failure("claude", caught.value).kind == "missing"


def test_the_environment_is_the_persons_without_what_other_programs_left_in_it() -> None:
    person = {
        "PATH": "/bin",
        "HOME": "/h",
        "HTTPS_PROXY": "p",
        "CLAUDE_CONFIG_DIR": "c",
        "CODEX_HOME": "d",
        "MY_KEY": "k",
        "MEMORIZE_HOME": "m",
    }
    person |= {"ANTHROPIC_API_KEY": "a", "CLAUDE_CODE_OAUTH_TOKEN": "t", "CLAUDE_CODE_USE_BEDROCK": "1"}
    left = dict.fromkeys(
        "CLAUDECODE CLAUDE_PROJECT_DIR CLAUDE_CODE_SESSION_ID CLAUDE_CODE_ENTRYPOINT CLAUDE_ENV_FILE "
        "CLAUDE_PLUGIN_ROOT AI_AGENT CODEX_SANDBOX CODEX_THREAD_ID GEMINI_SESSION_ID NODE_OPTIONS GIT_DIR PYTHONPATH "
        "CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_SESSION_ATTENDED CODEX_SESSION_ID MEMORIZE_CALL".split(),
        "x",
    )
    made = child.environment({**person, **left}, {"EXTRA": "e"})
    assert made == {**person, "EXTRA": "e", "MEMORIZE_GUARD": "1"}


def test_the_guard_cannot_be_taken_away_by_the_environment() -> None:
    assert child.environment({"MEMORIZE_GUARD": ""}, {"MEMORIZE_GUARD": "0"})["MEMORIZE_GUARD"] == "1"


def test_the_folder_of_a_call_is_private() -> None:
    with child.workplace() as place:
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert [entry.name for entry in place.iterdir()] == ["empty"]
