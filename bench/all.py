"""Every benchmark, one after the other, and the page of their results: ``docs/benchmarks.md``.

Run ``python -m bench.all [--quick] [--full] [--only NAME,NAME] [--output FILE]`` from the checkout. Each benchmark is a
process of its own. Without ``--output`` the page goes where it belongs; ``--full`` rebuilds a million events.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.timing import Row, heads, say, text

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
NAMES = ("hook", "action", "ingest", "search", "start", "rebuild", "peers", "folder")
_SIZED = {
    "quick": {
        "hook": "--rounds 3 --files 50 --events 60",
        "action": "--rounds 3 --memories 40",
        "ingest": "--files 60 --memories 40",
        "search": "--sizes 40 --rounds 2",
        "start": "--sizes 40 --rounds 2",
        "rebuild": "--size 100",
        "peers": "--events 5000 --differences 40 --first 200",
        "folder": "--events 300 --each 20",
    },
    "full": {"rebuild": "--size 1000000"},
    "": {},
}
_INTRODUCTION = """# Benchmarks

Written by `python -m bench.all`; every table is one run of one benchmark (`python -m bench.NAME`). What is compared
took turns within the run, so that a busy machine slows both sides alike: trust the ratios, not the milliseconds.
`p50_ms` and `p95_ms` are wall times, `ratio` is between medians. `events_s` counts by the wall clock, `events_cpu_s` by
the processor time of the measuring process alone. Load is the mean number of processes that wanted a core during
the minute before and after; above the number of cores every wall time is too long. Pace is the processor time of a
fixed piece of Python before and after (200,000 rounds of making a text of a number, testing it and storing the
outcome): it tells how fast this machine is, by which all other times can be compared with another machine's.
"""


def run(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Run one benchmark and return its result."""
    say(f"== {name} {' '.join(words)}")
    command = [sys.executable, "-m", f"bench.{name}", "--json", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=PAGE.parent.parent)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table of Markdown."""
    names = heads(rows)
    lines = [names, ["---"] + ["---:"] * (len(names) - 1)]
    lines += [[text(row.get(name)) for name in names] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def section(result: Mapping[str, Any]) -> str:
    """Return one benchmark's part of the page: what it says of itself, then its table."""
    name = result["bench"]
    told = import_module(f"bench.{name}").__doc__ or ""
    load, pace = ("{} to {}".format(*result[pair]) for pair in ("load", "pace_ms"))
    return f"## {name}\n\n{told.strip()}\n\nLoad {load}, pace {pace} ms.\n\n{table(result['items'])}\n"


def page(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole page."""
    facts = results[0]["machine"]
    today = dt.datetime.now(dt.UTC).date().isoformat()
    machine = (
        f"{facts['system']} on {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, "
        f"SQLite {facts['sqlite']}; {today}."
    )
    return "\n".join([_INTRODUCTION, machine + "\n", *(section(result) for result in results)])


def main() -> None:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to see that everything runs")
    parser.add_argument("--full", action="store_true", help="rebuild a million events")
    parser.add_argument("--only", default=",".join(NAMES), help="benchmarks, with commas")
    parser.add_argument("--output", type=Path, default=PAGE)
    parser.add_argument("--json", action="store_true", help="print all results as one document, too")
    options = parser.parse_args()
    sizes = _SIZED["quick" if options.quick else "full" if options.full else ""]
    results = []
    with tempfile.TemporaryDirectory(prefix="mz") as stores:
        for name in options.only.split(","):
            shared = ["--stores", stores] if name in ("search", "start") else []
            results.append(run(name, [*sizes.get(name, "").split(), *shared]))
            # After every one, so that a run that is given up has not been for nothing.
            options.output.write_text(page(results), encoding="utf-8")
    if options.json:
        print(json.dumps({"bench": "all", "items": results}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
