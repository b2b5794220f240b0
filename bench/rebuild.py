"""How fast the index is built anew from the log alone, and how much memory that takes.

Run ``python -m bench.rebuild [--size EVENTS] [--json]``. The log holds hook calls of a year and, of every five events,
about one memory. The rebuild runs in a process of its own, whose peak of memory is told; ``ratio`` is its time over
that of reading the log and checking every event, which no rebuild can do without.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.stores import Filler, new_project
from bench.timing import Row, environ, report, say
from memorize.bootstrap import App
from memorize.clock import SystemClock
from memorize.config import Config
from memorize.log.frames import EVENT
from memorize.log.segments import frame_event, read_segment
from memorize.paths import Home

_MEMORY_SHARE = 5


def peak_mib() -> float:
    """Return the most memory that this process ever held, without what its parent held when it was started."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        kib = int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    return round(kib / 1024, 1)


def child(root: Path) -> None:
    """Read the log, build the index, and print what either took."""
    app = App(Home(root), Config(), SystemClock())
    start = time.process_time()
    read = 0
    for path in sorted(app.home.segments.iterdir()):
        read += sum(
            bool(frame_event(frame)) for frame in read_segment(app.files, str(path)).frames if frame.type == EVENT
        )
    reading = time.process_time() - start
    wall, cpu = time.perf_counter(), time.process_time()
    events = app.rebuild()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if events != read:
        raise SystemExit(f"the log holds {read} events and the index {events}")
    found = {"events": events, "reading": reading, "wall": wall, "cpu": cpu, "peak_mib": peak_mib()}
    print(json.dumps(found))


def measure(size: int) -> list[Row]:
    """Write a log of about ``size`` events and rebuild its index; return the one row."""
    with tempfile.TemporaryDirectory(prefix="mz") as name:
        root = Path(name, "home")
        say(f"writing a log of {size:,} events")
        filler = Filler(root, new_project(Path(name, "checkout")), blind=True)
        filler.memories(max(1, size // _MEMORY_SHARE))
        # Every eight memories come with five events: their session, what was observed in it, and the claim.
        filler.captures(max(1, size - size // _MEMORY_SHARE * 13 // 8))
        filler.app.close()
        say("rebuilding")
        command = [sys.executable, "-m", "bench.rebuild", "--child", str(root)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environ(root))
        found = json.loads(done.stdout)
        log = sum(path.stat().st_size for path in (root / "segments").iterdir())
        index = (root / "index.sqlite").stat().st_size
    events = found["events"]
    return [
        {
            "case": "rebuild",
            "events": events,
            "seconds": round(found["wall"], 1),
            "events_s": round(events / found["wall"]),
            "events_cpu_s": round(events / found["cpu"]),
            "ratio": round(found["cpu"] / found["reading"], 2),
            "peak_mib": found["peak_mib"],
            "log_bytes": round(log / events),
            "index_bytes": round(index / events),
        }
    ]


def main() -> None:
    """Measure and print; with ``--child FOLDER`` rebuild there, for another process that measures."""
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="events in the log")
    report("rebuild", parser, measure)


if __name__ == "__main__":
    main()
