"""What a hook call costs over a bare ``python -I -S -c pass``, interleaved so that a busy machine slows both alike.

Run ``python -m bench.hook [--rounds N] [--files N] [--json]`` from the checkout. Times are wall times of spawn to exit
with a payload of 4 KiB on a pipe; the ratio is median over median, and the aim is at most 1.3 without an answer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

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


class Case(NamedTuple):
    """One command to be timed."""

    name: str
    command: list[str]
    home: Path


def spawn(command: list[str], home: Path) -> float:
    """Run ``command`` with the payload on a pipe and return its wall time in seconds."""
    source, sink = os.pipe()
    os.write(sink, PAYLOAD)
    null = os.open(os.devnull, os.O_WRONLY)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIZE_")}
    environ["MEMORIZE_HOME"] = str(home)
    streams = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    begun = time.perf_counter()
    child = os.posix_spawn(command[0], command, environ, file_actions=streams)
    for descriptor in (source, sink, null):
        os.close(descriptor)
    status = os.waitpid(child, 0)[1]
    spent = time.perf_counter() - begun
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    return spent


def new_home(top: Path, name: str) -> Path:
    """Make a state directory with the hook and a stored brief for this working directory."""
    home = top / name
    install_hook(home / "hook")
    key, head = brief_key("claude", str(Path.cwd()))
    (home / "hook" / "briefs").mkdir()
    (home / "hook" / "briefs" / key).write_bytes(head + b"{}\n" + ANSWER)
    (home / "hook" / "nodaemon").touch()
    return home


@contextmanager
def running(command: list[str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Keep a process while the bench runs."""
    environ = {**os.environ, "MEMORIZE_HOME": str(home)}
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=null, env=environ)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


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


def cases(stack: ExitStack, top: Path, files: int) -> list[Case]:
    """Prepare the state directories and return what is to be timed, the bare interpreter first."""
    absent, up, locked, full = (new_home(top, name) for name in ("absent", "up", "locked", "full"))
    lean = new_home(top, "lean")
    shutil.rmtree(lean / "hook" / "briefs")
    fill_index(lean)
    words = ("claude", "PostToolUse")
    kind = daemon_up(stack, up)
    lock_index(stack, locked)
    fill_spool(full, files)

    def hook(name: str, home: Path, event: str) -> Case:
        program = str(home / "hook" / "memorize_hook.py")
        return Case(f"{name}: {event}", [sys.executable, "-I", "-S", program, "claude", event], home)

    source = str(Path(__file__).parent.parent / "memorize" / "capture" / "memorize_hook.py")
    return [
        Case("bare interpreter", [sys.executable, "-I", "-S", "-c", "pass"], absent),
        hook("no daemon", absent, "PostToolUse"),
        hook("no daemon", absent, "PreToolUse"),
        hook("no daemon, stored brief", absent, "SessionStart"),
        hook(f"{kind} up", up, "PostToolUse"),
        hook(f"{kind} up", up, "PreToolUse"),
        hook(f"{kind} up", up, "SessionStart"),
        hook("index locked", locked, "PostToolUse"),
        hook("index locked", locked, "SessionStart"),
        hook(f"{files:,} files waiting", full, "PostToolUse"),
        hook("no daemon, no brief, lean child", lean, "SessionStart"),
        Case("compiled at every start: PostToolUse", [sys.executable, "-I", "-S", source, *words], absent),
    ]


def measure(rounds: int, files: int) -> list[dict[str, object]]:
    """Time every case ``rounds`` times, one after the other in each round; return one row a case."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder, ExitStack() as stack:
        prepared = cases(stack, Path(folder), files)
        times: dict[str, list[float]] = {case.name: [] for case in prepared}
        for case in prepared:
            spawn(case.command, case.home)  # once, for the caches
        for _ in range(rounds):
            for case in prepared:
                times[case.name].append(spawn(case.command, case.home))
    bare = statistics.median(times[prepared[0].name])
    return [
        {
            "case": name,
            "median_ms": round(statistics.median(spent) * 1000, 2),
            "p90_ms": round(statistics.quantiles(spent, n=10)[8] * 1000, 2),
            "ratio": round(statistics.median(spent) / bare, 3),
        }
        for name, spent in times.items()
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.rounds, options.files)
    if options.json:
        print(json.dumps({"rounds": options.rounds, "load": os.getloadavg()[0], "items": rows}, indent=1))
        return
    print(f"{'case':<44}{'median ms':>10}{'p90 ms':>9}{'ratio':>8}")
    for row in rows:
        print(f"{row['case']:<44}{row['median_ms']:>10}{row['p90_ms']:>9}{row['ratio']:>8}")


if __name__ == "__main__":
    main()
