"""What goes in: standard input of every sort, homes of every sort."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memorize.limits import CAPTURE_BYTES_MAX
from tests.capture.kit import PATIENCE_S, PAYLOAD, Hook, finish

SOME = {
    "empty": b"",
    "json": PAYLOAD,
    "byte order mark": b"\xef\xbb\xbf" + PAYLOAD,
    "NULs": b"\0" * 5000,
    "not UTF-8": b'{"prompt":"\xff\xfe\xb0\xa1"}',
    "UTF-16": PAYLOAD.decode().encode("utf-16"),
    "deeply nested": b"[" * 200_000,
    "a megabyte": b"\xea\xb8\xb0" * 350_000,
    "just the bound": b"x" * CAPTURE_BYTES_MAX,
}


@pytest.mark.parametrize("data", SOME.values(), ids=SOME.keys())
def test_every_byte_of_the_payload_is_kept(hook: Hook, data: bytes) -> None:
    assert hook.run("claude", "PostToolUse", data=data) == b""
    assert hook.captures() == [("claude", "PostToolUse", False, data)]


@pytest.mark.parametrize("event", ["PostToolUse", "PreToolUse"])
def test_more_than_the_bound_is_read_to_its_end_and_kept_in_part(hook: Hook, event: str) -> None:
    data = os.urandom(1024) * 20 * 1024
    process = hook.start("claude", event)
    # communicate hides a broken pipe, so write by hand: the agent must be able to hand over everything
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.read() == process.stderr.read() == b""
    assert hook.captures() == [("claude", event, True, data[:CAPTURE_BYTES_MAX])]


def test_one_byte_over_the_bound_is_marked_as_cut(hook: Hook) -> None:
    hook.run("claude", "Stop", data=b"x" * (CAPTURE_BYTES_MAX + 1))
    assert hook.captures() == [("claude", "Stop", True, b"x" * CAPTURE_BYTES_MAX)]


def test_a_slow_writer_is_waited_for(hook: Hook) -> None:
    process = hook.start("claude", "Stop")
    assert process.stdin is not None
    for piece in (PAYLOAD[:7], PAYLOAD[7:20], PAYLOAD[20:]):
        process.stdin.write(piece)
        process.stdin.flush()
        time.sleep(0.2)
    assert finish(process) == (0, b"", b"")
    assert hook.captures() == [("claude", "Stop", False, PAYLOAD)]


def test_standard_input_that_never_ends_is_finished_and_marked_as_cut(hook: Hook) -> None:
    quiet, started = hook.start("claude", "Stop"), hook.start("claude", "SessionStart")
    endless = hook.start("codex", "Stop")
    for process in (quiet, started):
        assert process.stdin is not None
        process.stdin.write(PAYLOAD)
        process.stdin.flush()

    def pour() -> None:
        assert endless.stdin is not None
        with contextlib.suppress(OSError):
            while True:
                endless.stdin.write(b"y" * 4096)

    thread = threading.Thread(target=pour)
    thread.start()
    for process in (quiet, started, endless):
        assert process.wait(PATIENCE_S) == 0
    thread.join(PATIENCE_S)
    for process in (quiet, started, endless):
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            with stream:
                assert stream.read() == b""
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    assert sorted(hook.captures()) == [
        ("claude", "SessionStart", True, PAYLOAD),
        ("claude", "Stop", True, PAYLOAD),
        ("codex", "Stop", True, b"y" * CAPTURE_BYTES_MAX),
    ]


def test_a_stream_that_is_not_ready_at_once_is_read_as_well(hook: Hook) -> None:
    source, sink = os.pipe()
    os.set_blocking(source, False)
    process = subprocess.Popen(
        hook.command("claude", "Stop"), stdin=source, stdout=subprocess.PIPE, cwd=hook.cwd, env=hook.environ()
    )
    time.sleep(0.3)
    os.write(sink, PAYLOAD)
    os.close(sink)
    assert finish(process)[:2] == (0, b"")
    os.close(source)
    assert hook.captures() == [("claude", "Stop", False, PAYLOAD)]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("event", ["PostToolUse", "SessionStart"])
def test_closed_standard_streams_do_no_harm(hook: Hook, closed: str, event: str) -> None:
    done = hook.call("claude", event, shell=f'exec "$@" {closed}')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert hook.captures() == [("claude", event, False, b"" if "<&-" in closed else PAYLOAD)]


def test_a_directory_as_standard_input_is_nothing(hook: Hook) -> None:
    # Python itself gives up here, so it is the line in the settings that succeeds
    done = hook.call("claude", "Stop", shell='"$@" </ 2>/dev/null || :')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert hook.captures() == []


def test_what_is_written_is_private(hook: Hook) -> None:
    previous = os.umask(0)
    try:
        hook.run("claude", "Stop")
    finally:
        os.umask(previous)
    spool = hook.root / "spool"
    for folder in (spool, spool / "new", spool / "tmp"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (file,) = (spool / "new").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_sixteen_hooks_at_once_give_sixteen_files(hook: Hook) -> None:
    processes = [hook.start("claude", "PostToolUse") for _ in range(16)]
    payloads = [b"%d " % number * 30_000 for number in range(16)]
    threads = [threading.Thread(target=finish, args=pair) for pair in zip(processes, payloads, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [process.returncode for process in processes] == [0] * 16
    assert sorted(data for *_, data in hook.captures()) == sorted(payloads)
    assert len(set(hook.nonces("PostToolUse"))) == 16


NAMES = ["with spaces", "quo'te\"s", "new\nline", "기억 저장소", "$(echo no)`;#%?", "-dash"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("named", [False, True], ids=["beside the file", "MEMORIZE_HOME"])
def test_a_home_may_be_called_anything(hook: Hook, tmp_path: Path, name: str, named: bool) -> None:
    root = tmp_path / name
    if named:
        root.mkdir()
        hook.run("claude", "SessionStart", environ={"MEMORIZE_HOME": str(root)})
        assert hook.captures() == []
        hook.root = root
    else:
        hook = Hook(root, hook.cwd)
        hook.run("claude", "SessionStart")
    assert hook.captures() == [("claude", "SessionStart", False, PAYLOAD)]


def test_a_home_with_bytes_that_are_no_text_works(hook: Hook, tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xb0"))
    root.mkdir()
    hook.run("claude", "SessionStart", environ={"MEMORIZE_HOME": str(root)})
    hook.root = root
    assert hook.captures() == [("claude", "SessionStart", False, PAYLOAD)]


@pytest.mark.parametrize("named", ["~/mem", "~/mem//"])
def test_a_home_below_the_persons_is_found(hook: Hook, tmp_path: Path, named: str) -> None:
    (tmp_path / "mem").mkdir()
    hook.run("claude", "Stop", environ={"MEMORIZE_HOME": named, "HOME": str(tmp_path)})
    hook.root = tmp_path / "mem"
    assert hook.captures() == [("claude", "Stop", False, PAYLOAD)]


def test_a_home_by_a_relative_path_would_be_another_one_everywhere_and_is_passed_over(
    hook: Hook, tmp_path: Path
) -> None:
    (tmp_path / "repo" / "rel" / "mem").mkdir(parents=True)
    hook.run("claude", "Stop", environ={"MEMORIZE_HOME": "rel/mem", "HOME": str(tmp_path)})
    assert hook.captures() == [("claude", "Stop", False, PAYLOAD)]
    assert list((tmp_path / "repo" / "rel" / "mem").iterdir()) == []


def test_a_missing_home_stays_missing(hook: Hook, tmp_path: Path) -> None:
    assert hook.run("claude", "SessionStart", environ={"MEMORIZE_HOME": str(tmp_path / "gone")}) == b""
    assert not (tmp_path / "gone").exists()


def _file_for_spool(root: Path) -> None:
    (root / "spool").write_bytes(b"")


def _file_for_new(root: Path) -> None:
    (root / "spool" / "tmp").mkdir(parents=True)
    (root / "spool" / "new").write_bytes(b"")


def _dangling(root: Path) -> None:
    (root / "spool").symlink_to(root / "nowhere")


@pytest.mark.parametrize("spoil", [_file_for_spool, _file_for_new, _dangling])
@pytest.mark.parametrize("event", ["Stop", "SessionStart"])
def test_a_spool_that_cannot_be_written_costs_nothing_but_the_capture(
    hook: Hook, spoil: Callable[[Path], None], event: str
) -> None:
    spoil(hook.root)
    process = hook.start("claude", event)
    assert process.stdin is not None
    process.stdin.write(b"x" * 1_000_000)  # raises when the hook does not read to the end
    assert finish(process) == (0, b"", b"")
    assert list((hook.root / "spool").glob("tmp/*")) == []


def test_a_full_disk_leaves_nothing_behind(hook: Hook) -> None:
    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    assert hook.run("claude", "SessionStart", data=b"x" * 1_000_000, preexec_fn=small_files_only) == b""
    assert hook.captures() == []


def test_two_file_systems_leave_nothing_behind(hook: Hook) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == hook.root.stat().st_dev:
        pytest.skip("there is only one file system here")
    other = shared / f"memorize-test-{os.getpid()}"
    other.mkdir()
    try:
        (hook.root / "spool" / "new").mkdir(parents=True)
        (hook.root / "spool" / "tmp").symlink_to(other)
        assert hook.run("claude", "Stop") == b""
        assert hook.captures() == []
    finally:
        shutil.rmtree(other)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["claude"],
        ["", ""],
        ["claude", "x" * 33],
        ["../../etc", "Stop"],
        ["claude", "Stop\n"],
        ["클로드", "Stop"],
        ["--help"],
        ["--version", "--help"],
        ["claude", "Stop/../.."],
    ],
)
def test_arguments_that_are_no_names_are_met_with_silence(hook: Hook, words: list[str]) -> None:
    expected = [] if words != ["--version", "--help"] else [("__version", "__help", False, PAYLOAD)]
    assert hook.run(*words) == b""
    assert hook.captures() == expected


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["new_agent.2", "some.thing"], ("new_agent.2", "some.thing")),
        (["some-agent", "before-Nothing"], ("some_agent", "before_Nothing")),
        (["claude-code", "Stop", "and", "more"], ("claude", "Stop")),
    ],
)
def test_unknown_agents_and_events_are_kept(hook: Hook, words: list[str], kept: tuple[str, str]) -> None:
    assert hook.run(*words) == b""
    assert hook.captures() == [(*kept, False, PAYLOAD)]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGPIPE])
def test_a_signal_that_is_meant_for_the_agent_loses_nothing(hook: Hook, sent: signal.Signals) -> None:
    process = hook.start("claude", "Stop")
    assert process.stdin is not None
    process.stdin.write(PAYLOAD[:10])
    process.stdin.flush()
    while not any(path.stat().st_size for path in hook.root.glob("spool/tmp/*")):
        assert process.poll() is None
        time.sleep(0.01)
    for _ in range(3):
        time.sleep(0.2)  # until it waits in read again
        process.send_signal(sent)
    assert finish(process, PAYLOAD[10:]) == (0, b"", b"")
    assert hook.captures() == [("claude", "Stop", False, PAYLOAD)]


def test_the_line_in_the_settings_succeeds_when_the_hook_is_killed_or_missing(hook: Hook) -> None:
    line = f'"{sys.executable}" -I -S "{hook.program}" claude Stop 2>/dev/null || :'
    done = subprocess.run(["/bin/sh", "-c", line], input=PAYLOAD, capture_output=True, check=False, env=hook.environ())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert hook.captures() == [("claude", "Stop", False, PAYLOAD)]
    hook.program.write_text("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    done = subprocess.run(["/bin/sh", "-c", line], input=b"", capture_output=True, check=False, env=hook.environ())
    assert (done.returncode, done.stdout) == (0, b"")
    hook.program.unlink()
    done = subprocess.run(["/bin/sh", "-c", line], input=b"", capture_output=True, check=False, env=hook.environ())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
