"""What a hook call costs over a bare ``python -I -S -c pass``, interleaved so that a busy machine slows both alike.

Run ``python -m bench.hook [--rounds N] [--files N] [--events N] [--json]`` from the checkout. Times are wall times of
spawn to exit with a payload of 4 KiB on a pipe; ``ratio`` is over the bare interpreter, and the aim is at most 1.3
without an answer.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.stores import Filler, new_project
from bench.timing import Case, Row, bare, report, running, spawn, spread
from memorize.capture.install import install_hook
from memorize.capture.memorize_hook import brief_key, socket_path, spool_name
from memorize.index.schema import create

PAYLOAD = json.dumps({"session_id": "bench", "tool_name": "Bash", "tool_input": {"command": "x" * 3_900}}).encode()
ANSWER = b"notes from earlier sessions " * 100
FAKE = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.bind(sys.argv[1])
link.listen(64)
while True:
    wire, _ = link.accept()
    with wire:
        wire.recv(4096)
        wire.sendall(b"%d\\n" % {size} + b"x" * {size})
"""
LOCKER = """
import sqlite3, sys, time
index = sqlite3.connect(sys.argv[1], isolation_level=None)
index.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(3600)
"""


def new_home(top: Path, name: str) -> Path:
    """Make a state directory with the hook and a stored brief for this working directory."""
    home = top / name
    install_hook(home / "hook")
    key, head = brief_key("claude", str(Path.cwd()))
    (home / "hook" / "briefs").mkdir()
    (home / "hook" / "briefs" / key).write_bytes(head + b"{}\n" + ANSWER)
    (home / "hook" / "nodaemon").touch()
    return home


def daemon_up(stack: ExitStack, home: Path) -> str:
    """Start the program's daemon in ``home``, or a stand-in that answers at once; return which one it is."""
    path = Path(socket_path(str(home)))
    stand_in = FAKE.format(size=len(ANSWER))
    choices = {"daemon": ["-m", "memorize.daemon.serve", "serve"], "stand-in": ["-c", stand_in, str(path)]}
    for name, words in choices.items():
        with ExitStack() as attempt:
            process = attempt.enter_context(running([sys.executable, *words], home))
            for _ in range(500):
                if path.exists() or process.poll() is not None:
                    break
                time.sleep(0.02)
            if path.exists():
                stack.enter_context(attempt.pop_all())
                return name
    raise SystemExit("no daemon could be started")


def fill_index(home: Path) -> None:
    """Make an index with a brief for this working directory."""
    index = create(home / "index.sqlite")
    index.execute("insert into briefs values ('claude', ?, 'p', '{}', ?)", (str(Path.cwd()), ANSWER.decode()))
    index.commit()
    index.close()


def lock_index(stack: ExitStack, home: Path) -> None:
    """Let another process hold the exclusive lock of the index."""
    fill_index(home)
    locker = stack.enter_context(running([sys.executable, "-c", LOCKER, str(home / "index.sqlite")], home))
    assert locker.stdout is not None
    locker.stdout.readline()


def fill_spool(home: Path, files: int) -> None:
    """Put so many captures into the spool that nobody has ingested."""
    new = home / "spool" / "new"
    new.mkdir(parents=True)
    for number in range(files):
        (new / spool_name(number, number.to_bytes(16, "big"), 0, 0, "claude", "PostToolUse")).touch()


def fill_log(home: Path, events: int) -> None:
    """Put so many events into log and index, most of them hook calls and the rest memories with their sessions."""
    filler = Filler(home, new_project(home.with_name("checkout")))
    filler.memories(max(1, events // 20))
    filler.captures(events - events // 20 * 13 // 8)
    filler.finish().close()


def cases(stack: ExitStack, top: Path, files: int, events: int) -> list[Case]:
    """Prepare the state directories and return what is to be timed, the bare interpreter first."""
    absent, up, locked, full, long = (new_home(top, name) for name in ("absent", "up", "locked", "full", "long"))
    lean = new_home(top, "lean")
    shutil.rmtree(lean / "hook" / "briefs")
    fill_index(lean)
    words = ("claude", "PostToolUse")
    kind = daemon_up(stack, up)
    lock_index(stack, locked)
    fill_spool(full, files)
    fill_log(long, events)
    shutil.rmtree(long / "hook" / "briefs")

    def hook(name: str, home: Path, event: str) -> Case:
        program = str(home / "hook" / "memorize_hook.py")
        return Case(f"{name}: {event}", [sys.executable, "-I", "-S", program, "claude", event], home, PAYLOAD)

    source = str(Path(__file__).parent.parent / "memorize" / "capture" / "memorize_hook.py")
    return [
        bare(absent),
        hook("no daemon", absent, "PostToolUse"),
        hook("no daemon", absent, "PreToolUse"),
        hook("no daemon, stored brief", absent, "SessionStart"),
        hook(f"{kind} up", up, "PostToolUse"),
        hook(f"{kind} up", up, "PreToolUse"),
        hook(f"{kind} up", up, "SessionStart"),
        hook("index locked", locked, "PostToolUse"),
        hook("index locked", locked, "SessionStart"),
        hook(f"{files:,} files waiting", full, "PostToolUse"),
        hook(f"{events:,} events in the log", long, "PostToolUse"),
        hook(f"{events:,} events in the log, lean child", long, "SessionStart"),
        hook("no daemon, no brief, lean child", lean, "SessionStart"),
        Case("compiled at every start: PostToolUse", [sys.executable, "-I", "-S", source, *words], absent, PAYLOAD),
    ]


def measure(rounds: int, files: int, events: int) -> list[Row]:
    """Time every case ``rounds`` times, one after the other in each round; return one row a case."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder, ExitStack() as stack:
        prepared = cases(stack, Path(folder), files, events)
        times: dict[str, list[float]] = {case.name: [] for case in prepared}
        for case in prepared:
            spawn(case)  # once, for the caches
        for _ in range(rounds):
            for case in prepared:
                times[case.name].append(spawn(case))
    base = statistics.median(times[prepared[0].name])
    return [{"case": name, **spread(spent, base)} for name, spent in times.items()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--files", "--size", type=int, default=100_000, help="captures that wait in the spool")
    parser.add_argument("--events", type=int, default=100_000, help="events in the log")
    report("hook", parser, measure)


if __name__ == "__main__":
    main()
