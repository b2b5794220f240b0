"""What an agent waits for at a session start, over what a capture costs it.

Run ``python -m bench.start [--sizes N,N] [--rounds N] [--json]``. Every case is the hook program as an agent starts it,
from spawn to exit, with the recorded payload; they take turns. ``ratio`` is over the median of the hook that only
captures. The aim is at most 3 with the daemon and 6 without it, whatever the size of the store. Every answer must hold
a context: a run in which one was missing says how many.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench.ingest import formed
from bench.search import sized
from bench.stores import SEED, memory_store, new_app, recorded
from bench.timing import Case, Row, report, running, say, spawn, spread
from bench.words import Author
from memorize.bootstrap import App
from memorize.daemon import life
from memorize.log.spool import put_batch

CAPTURE = "capture alone"
CHANGED = "daemon, memory just changed"
_WAIT_S = 60.0


class Bench(NamedTuple):
    """What is timed on one store: the cases, and what must be done before a round of the daemon's."""

    app: App
    cases: list[Case]
    write: Author
    project: str


def hook(name: str, home: Path, event: str, cwd: Path) -> Case:
    """Return the hook as an agent calls it in a directory."""
    payload = {**recorded(event), "cwd": str(cwd), "session_id": "bench"}
    program = str(home / "hook" / "memorize_hook.py")
    command = [sys.executable, "-I", "-S", program, "claude", event.partition(".")[0]]
    return Case(name, command, home, json.dumps(payload).encode())


def prepare(top: Path, app: App, project: Path) -> Bench:
    """Make the state directories: the store itself has the daemon, two others have its briefs or only its index."""
    captured, briefs, lean = (new_app(top / name).home for name in ("captured", "briefs", "lean"))
    shutil.copytree(app.home.briefs, briefs.briefs, dirs_exist_ok=True)
    lean.index.symlink_to(app.home.index)
    cases = [
        hook(CAPTURE, captured.root, "PostToolUse.Bash", project),
        hook("daemon", app.home.root, "SessionStart", project),
        hook(CHANGED, app.home.root, "SessionStart", project),
        hook("no daemon, stored brief", briefs.root, "SessionStart", project),
        hook("no daemon, lean child", lean.root, "SessionStart", project),
    ]
    return Bench(app, cases, Author(SEED + 2), app.place(str(project)).project)


def settle(app: App) -> None:
    """Wait until the daemon has nothing left to do, so that one case does not pay for another."""
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end and any((app.home.spool / "new").iterdir()):
        time.sleep(0.02)
    time.sleep(0.05)
    (app.home.hook / "late").unlink(missing_ok=True)


def change(bench: Bench) -> None:
    """Let the daemon take in a new memory of great importance, which the next context has to show."""
    text = bench.write.prose(120)
    draft = formed(text, bench.project, 0)
    important = draft._replace(payload={**draft.payload, "importance": 10, "kind": "decision"})
    put_batch(bench.app.home, [important], bench.app.clock)
    # A question about nothing wakes the daemon, as the next hook call would.
    life.ask(bench.app.home, b"A -")
    settle(bench.app)


def rounds_of(bench: Bench, rounds: int, answer: Path) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Time all cases in turn; return the times and, of every case, how many answers held no context."""
    times: dict[str, list[float]] = {case.name: [] for case in bench.cases}
    silent = dict.fromkeys(times, 0)
    for number in range(rounds + 1):
        for case in bench.cases:
            if case.name == CHANGED:
                change(bench)
            settle(bench.app)
            spent = spawn(case, str(answer))
            if number:  # the first round is for the caches
                times[case.name].append(spent)
                silent[case.name] += b"memorize-context" not in answer.read_bytes()
    return times, silent


@contextlib.contextmanager
def working_directory(path: Path) -> Iterator[None]:
    """Work in a directory: hooks know it as their own."""
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def at_size(stores: Path, size: int, rounds: int) -> list[Row]:
    """Return the rows of a store with ``size`` memories."""
    say(f"a store of {size:,} memories")
    app, project = memory_store(stores, size)
    source = str(Path(__file__).parent.parent)
    serve = f"import sys; sys.path.insert(0, {source!r}); from memorize.daemon.serve import main; main(['serve'])"
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mz")))
        bench = prepare(top, app, project)
        stack.enter_context(working_directory(project))
        stack.enter_context(running([sys.executable, "-c", serve], app.home.root))
        if life.wait_until_up(app.home, _WAIT_S) is None:
            raise SystemExit("the daemon does not come up")
        times, silent = rounds_of(bench, rounds, top / "answer")
    app.close()
    base = statistics.median(times[CAPTURE])
    return [
        {
            "case": name,
            "memories": size,
            **spread(spent, base),
            "no_answer": None if name == CAPTURE else silent[name],
        }
        for name, spent in times.items()
    ]


def measure(sizes: list[int], rounds: int, stores: Path | None) -> list[Row]:
    """Measure on stores of several sizes, kept in ``stores`` or made for this run."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder:
        return [row for size in sizes for row in at_size(stores or Path(folder), size, rounds)]


def main() -> None:
    """Measure and print."""
    report("start", sized(__doc__), measure)


if __name__ == "__main__":
    main()
