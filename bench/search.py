"""How long a search takes, inside a process and as a whole command.

Run ``python -m bench.search [--sizes N,N] [--rounds N] [--json]``. Inside a process: many questions, English, Korean
and names of functions, to a store that is open; ``ratio`` is the median over the start of a bare interpreter. As a
command: ``memorize search`` from spawn to exit, in turn with ``python -c pass``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.stores import memory_store
from bench.timing import Case, Row, bare, report, say, spawn, spread
from bench.words import Author

_QUESTIONS_A_ROUND = 5


def at_size(folder: Path, size: int, rounds: int) -> list[Row]:
    """Return the rows of a store with ``size`` memories."""
    say(f"a store of {size:,} memories")
    app, project = memory_store(folder, size)
    key = app.place(str(project)).project
    query = app.query()
    write = Author(size)
    program = [sys.executable, "-m", "memorize", "search"]
    inside: list[float] = []
    found = 0
    cases = [bare(app.home.root, isolated=False)]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for _ in range(_QUESTIONS_A_ROUND):
            question = write.question()
            begun = time.perf_counter()
            hits = app.search(question, key, query=query).hits
            inside.append(time.perf_counter() - begun)
            found += bool(hits)
        words = [*program, "--project", str(project), write.question()]
        for case, spent in zip([*cases, Case("search", words, app.home.root)], times, strict=True):
            spent.append(spawn(case))
    base = statistics.median(times[0])
    app.close()
    return [
        {"case": "in process", "memories": size, **spread(inside, base), "answered": f"{found}/{len(inside)}"},
        {"case": "whole command", "memories": size, **spread(times[1], base)},
        {"case": "python -c pass", "memories": size, **spread(times[0], base)},
    ]


def measure(sizes: list[int], rounds: int, stores: Path | None) -> list[Row]:
    """Measure on stores of several sizes, kept in ``stores`` or made for this run."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder:
        return [row for size in sizes for row in at_size(stores or Path(folder), size, rounds)]


def numbers(text: str) -> list[int]:
    """Return the numbers in a list with commas."""
    return [int(part) for part in text.split(",")]


def sized(description: str | None) -> argparse.ArgumentParser:
    """Return the command line of a benchmark on stores of several sizes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sizes", "--size", type=numbers, default=[1_000, 10_000, 100_000], help="memories")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--stores", type=Path, help="keep the stores in this folder and use those that are there")
    return parser


def main() -> None:
    """Measure and print."""
    report("search", sized(__doc__), measure)


if __name__ == "__main__":
    main()
