"""Timing of processes and calls, and the form in which every benchmark reports.

A figure of its own means little on a busy machine, so each benchmark times what it compares in turn, round by round,
and reports ratios of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

Row = dict[str, object]


class Case(NamedTuple):
    """One command to be timed: what it is given on standard input, and its state directory."""

    name: str
    command: list[str]
    home: Path
    payload: bytes = b""


def environ(home: Path) -> dict[str, str]:
    """Return the environment of a child: this one's, with the given state directory and nothing else of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORIZE_")}
    return {**kept, "MEMORIZE_HOME": str(home)}


def spawn(case: Case, output: str = os.devnull) -> float:
    """Run a command and return its wall time in seconds, from spawn to exit."""
    source, sink = os.pipe()
    os.write(sink, case.payload)
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_WRONLY)
    streams = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    children = environ(case.home)
    begun = time.perf_counter()
    child = os.posix_spawn(case.command[0], case.command, children, file_actions=streams)
    for descriptor in (source, sink, out, null):
        os.close(descriptor)
    status = os.waitpid(child, 0)[1]
    spent = time.perf_counter() - begun
    if status:
        raise SystemExit(f"{case.command} ended with status {status}")
    return spent


@contextmanager
def running(command: list[str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Keep a process while something is measured."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=null, stdout=subprocess.PIPE, stderr=null, env=environ(home))
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def bare(home: Path, isolated: bool = True) -> Case:
    """Return the interpreter that does nothing."""
    words = ["-I", "-S"] if isolated else []
    return Case("bare interpreter", [sys.executable, *words, "-c", "pass"], home)


def spread(times: Sequence[float], base: float) -> Row:
    """Return median and tail of some times in ms, and the ratio of the median to ``base`` (seconds)."""
    middle = statistics.median(times)
    tail = statistics.quantiles(times, n=20)[18] if len(times) > 1 else middle
    return {"p50_ms": round(middle * 1000, 2), "p95_ms": round(tail * 1000, 2), "ratio": round(middle / base, 3)}


def machine() -> dict[str, object]:
    """Return what a reader needs to know of the machine; nothing that names it."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def load() -> float:
    """Return how many processes wanted a core during the last minute; 0 where nobody counts."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def pace_ms() -> float:
    """Return the processor time in ms of a fixed piece of Python: how fast this machine is at this moment."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        seen: dict[int, bool] = {}
        for number in range(200_000):
            seen[number % 1_000] = str(number).startswith("1")
        times.append(time.process_time() - begun)
    return round(statistics.median(times) * 1000, 1)


class Conditions(NamedTuple):
    """How busy the machine was when a benchmark began."""

    load: float
    pace_ms: float


def conditions() -> Conditions:
    """Return what it is like now; to be called before anything is measured."""
    return Conditions(load(), pace_ms())


def say(text: str) -> None:
    """Tell a person how far it is; results alone go to standard output."""
    print(text, file=sys.stderr, flush=True)


def show(name: str, rows: Sequence[Row], before: Conditions, as_json: bool) -> None:
    """Print the result of one benchmark, as one document or as a table. Numbers come in pairs: before and after."""
    after = conditions()
    pairs = {"load": [before.load, after.load], "pace_ms": [before.pace_ms, after.pace_ms]}
    found = {"bench": name, "machine": machine(), **pairs, "items": rows}
    if as_json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    print(f"load {before.load} to {after.load}, pace {before.pace_ms} to {after.pace_ms} ms")
    cells = [heads(rows), *([text(row.get(head)) for head in heads(rows)] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        first, *others = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join([first, *(cell.strip().rjust(len(cell)) for cell in others)]))


def report(name: str, parser: argparse.ArgumentParser, measure: Callable[..., Sequence[Row]]) -> None:
    """Measure with what the command line gives (options are parameters of ``measure``), and print."""
    parser.add_argument("--json", action="store_true", help="print one document instead of a table")
    given = vars(parser.parse_args())
    as_json = given.pop("json")
    before = conditions()
    show(name, measure(**given), before, as_json)


def heads(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the names of all columns in order of appearance."""
    return list(dict.fromkeys(head for row in rows for head in row))


def text(value: object) -> str:
    """Return a cell as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
