"""How many events a second the ingester takes in, with everything that belongs to it.

Run ``python -m bench.ingest [--files N] [--memories N] [--json]``. From spool file to unlinked spool file: reading,
parsing by the agent's module, places, redaction, encoding, append and fdatasync, fold, projection, full text. Beside
wall time (``events_s``) stands the time of the processor, which other work on the machine does not change much:
``events_cpu_s`` counts this process and the one that prepares a large backlog, ``events_own_cpu_s`` this one alone.
The floor is what SQLite takes for nothing but the full text of the same events: ``ratio`` is all time over that.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from bench.stores import SEED, Agent, Past, new_app, new_project
from bench.timing import Row, report, say
from bench.words import Author
from memorize.bootstrap import App
from memorize.log.spool import put_batch, put_capture
from memorize.model import MEMORY_FORMED, Draft, text_key

_BATCH = 256
_DRAFTS_A_FILE = 200
_STEP_MS = 20

Fill = Callable[[App, Past, Path], int]


def captures(count: int, *, silent: bool) -> Fill:
    """Return what puts so many hook calls into the spool."""

    def fill(app: App, clock: Past, project: Path) -> int:
        chance = Author(SEED + 1).chance
        for event, payload in Agent(project, silent=silent).calls(count):
            clock.go_on(_STEP_MS)
            put_capture(app.home, "claude", event, payload, clock, nonce=chance.randbytes(16))
        return count

    return fill


def memories(count: int) -> Fill:
    """Return what puts so many memories into the spool, some hundred a file, as an import does."""

    def fill(app: App, clock: Past, project: Path) -> int:
        write = Author(SEED)
        key = app.place(str(project)).project
        files = 0
        for start in range(0, count, _DRAFTS_A_FILE):
            texts = [write.prose(write.chance.randrange(80, 400)) for _ in range(min(_DRAFTS_A_FILE, count - start))]
            clock.go_on(_STEP_MS)
            put_batch(app.home, [formed(text, key, n) for n, text in enumerate(texts)], clock)
            files += 1
        return files

    return fill


def formed(text: str, project: str, ordinal: int) -> Draft:
    """Return a memory as a person's ``remember`` makes it."""
    payload = {
        "kind": "fact", "text": text, "text_key": text_key(text), "importance": 5, "confidence": 80,
        "scope": "project", "project": project, "branch": "main", "paths": [], "tags": [], "triggers": [],
        "trust": "user", "sources": [],
    }  # fmt: skip
    return Draft(MEMORY_FORMED, payload, ordinal)


def one(name: str, folder: Path, fill: Fill) -> Row:
    """Fill a new spool, ingest it and return what it cost."""
    say(f"filling the spool: {name}")
    clock = Past()
    app = new_app(folder, clock)
    project = new_project(folder.with_name(folder.name + "-checkout"))
    app.ingest()
    files = fill(app, clock, project)
    size = sum(path.stat().st_size for path in (app.home.spool / "new").iterdir())
    say(f"ingesting: {name}")
    wall, own, cpu = time.perf_counter(), time.process_time(), both()
    report = app.ingest()
    wall, own, cpu = time.perf_counter() - wall, time.process_time() - own, both() - cpu
    if report.left or report.bad or report.files != files:
        raise SystemExit(f"{name}: {report}")
    app.close()
    events = report.events
    ratio = cpu / floor(app.home.index, folder / "floor.sqlite")  # closes the index, so that nothing waits beside it
    log = sum(path.stat().st_size for path in app.home.segments.iterdir())
    index = sum(path.stat().st_size for path in folder.glob("index.sqlite*"))
    return {
        "case": name,
        "files": files,
        "events": events,
        "events_s": round(events / wall),
        "events_cpu_s": round(events / cpu),
        "events_own_cpu_s": round(events / own),
        "files_s": round(files / wall),
        "ratio": round(ratio, 2),
        "spool_bytes": round(size / files),
        "log_bytes": round(log / events),
        "index_bytes": round(index / events),
        "bytes_event": round((log + index) / events),
    }


def both() -> float:
    """Return the seconds of the processor that this process and those that it started and waited for have taken."""
    return sum(os.times()[:4])


def floor(index: Path, path: Path) -> float:
    """Return the seconds of this process that the same full text alone takes, in transactions of the same size."""
    with closing(sqlite3.connect(index)) as source:
        found = source.execute("select text from observation_fts union all select text from memory_fts").fetchall()
    with closing(sqlite3.connect(path, isolation_level=None)) as target:
        target.execute("pragma journal_mode = wal")
        target.execute("create virtual table words using fts5(text, tokenize = 'porter unicode61')")
        begun = time.process_time()
        for start in range(0, len(found), _BATCH):
            target.execute("begin")
            target.executemany("insert into words values(?)", found[start : start + _BATCH])
            target.execute("commit")
        return time.process_time() - begun


def measure(files: int, count: int) -> list[Row]:
    """Ingest hook calls that each tell something, a session as it comes, and memories; return one row each."""
    with tempfile.TemporaryDirectory(prefix="mz") as name:
        folder = Path(name)
        return [
            one("captures", folder / "captures", captures(files, silent=False)),
            one("captures, half of them silent", folder / "silent", captures(files // 2, silent=True)),
            one("memories", folder / "memories", memories(count)),
        ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", "--size", type=int, default=50_000, help="hook calls in the spool")
    parser.add_argument("--memories", dest="count", type=int, default=100_000, help="memories in the spool")
    report("ingest", parser, measure)


if __name__ == "__main__":
    main()
