"""What a sync folder costs: time to publish and to take in, and the bytes that a sync tool has to carry.

Run ``python -m bench.folder [--events N] [--each N] [--json]``. ``publish`` and ``take in`` carry all events at once
from one state directory to an empty one, with logs and indexes as a person has them; ``known`` reads once more what
is held already, after the catalog was lost. Their ``ratio`` is processor time over that of ``publish``. ``a day of
rounds`` publishes the same events a few at a time, as a busy day does: ``written`` are all bytes that ever appeared in
the folder, ``ratio`` compares them with one pack of everything, ``files`` is how many were there at most. The aim is a
ratio of at most 4; a log that grows and is carried whole in every round would have ``whole_ratio``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.peers import written
from bench.stores import new_app
from bench.timing import Row, report, say
from memorize.bootstrap import App
from memorize.clock import FixedClock
from memorize.sync.catalog import Catalog
from memorize.sync.folder import RealFolder
from memorize.sync.folder_sync import FolderReport, Keys, sync_folder
from memorize.sync.plan import PACE
from memorize.sync.port import Envelope
from memorize.sync.ring import Keyring, StoreKey, key_id

_SECRET = bytes(32)
_STORE = bytes(16)
_RING = Keyring(_STORE, (StoreKey(key_id(_SECRET), _SECRET, _STORE),))
_ROUND_MS = 30_000
# The events came from nowhere, so whoever holds them publishes them at once.
_PACE = PACE._replace(relay=0, step=0)


class Device:
    """A state directory that syncs through a folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.app: App = new_app(root)
        self.app.reader()
        self.catalog = Catalog()
        self.folder = RealFolder(str(folder), str(root / "outbox"), self.app.files)
        self.wall = 1_796_000_000_000

    def sync(self) -> FolderReport:
        """Do one round."""
        self.wall += _ROUND_MS
        report = sync_folder(
            self.app.holding,
            Keys(_RING),
            self.folder,
            self.catalog,
            FixedClock(self.wall),
            self.app.identity.replica,
            pace=_PACE,
        )
        if report.paused:
            raise SystemExit(report.paused)
        return report


def at_once(root: Path, events: int) -> list[Row]:
    """Measure a large past."""
    shared = root / "folder"
    shared.mkdir()
    full, empty = Device(root / "full", shared), Device(root / "empty", shared)
    say(f"a state directory of {events:,} events")
    for batch in written(events):
        full.app.holding.receive(batch)
    lines = [_timed("publish", events, full.sync)]
    size = sum(path.stat().st_size for path in shared.rglob("*.mzp"))
    lines[0] |= {"written": size, "bytes_an_event": round(size / events)}
    base = lines[0].pop("cpu")
    lines[0]["ratio"] = 1.0
    lines.append(_timed("take in", events, empty.sync))
    if full.app.holding.digest() != empty.app.holding.digest():
        raise SystemExit("the devices differ")
    empty.catalog = Catalog()
    lines.append(_timed("known", events, empty.sync))
    for line in lines[1:]:
        line["ratio"] = round(line.pop("cpu") / base, 2)
    full.app.close()
    empty.app.close()
    return lines


def _timed(name: str, events: int, work: Callable[[], FolderReport]) -> Row:
    say(name)
    begun, cpu = time.perf_counter(), time.process_time()
    work()
    spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {
        "case": name,
        "events": events,
        "seconds": round(spent, 2),
        "events_s": round(events / spent),
        "events_cpu_s": round(events / max(cpu, 0.001)),
        "cpu": max(cpu, 0.001),
    }


def a_few_at_a_time(root: Path, events: int, each: int, whole: int) -> Row:
    """Measure a day: a round whenever ``each`` events have come. ``whole``: size of one pack of all of them."""
    shared = root / "day"
    shared.mkdir()
    device = Device(root / "busy", shared)
    seen: dict[str, int] = {}
    most = rounds = grown = growing = 0
    say(f"rounds of {each} events")
    begun = time.perf_counter()
    for part in _parts(events, each):
        device.app.holding.receive(part)
        rounds += 1
        device.sync()
        found = {entry.path: entry.size for entry in device.folder.listing().entries}
        seen |= found
        most = max(most, len(found))
        grown += sum(len(one.header) + len(one.body or b"") for one in part)
        growing += grown
    spent = time.perf_counter() - begun
    device.app.close()
    total = sum(seen.values())
    return {
        "case": "a day of rounds",
        "events": events,
        "seconds": round(spent, 2),
        "rounds": rounds,
        "round_ms": round(1000 * spent / rounds, 1),
        "written": total,
        "bytes_an_event": round(total / events),
        "ratio": round(total / whole, 2),
        "whole_ratio": round(growing / whole),
        "files": most,
    }


def _parts(events: int, each: int) -> Iterator[list[Envelope]]:
    part: list[Envelope] = []
    for batch in written(events):
        for event in batch:
            part.append(event)
            if len(part) == each:
                yield part
                part = []
    if part:
        yield part


def measure(events: int, each: int) -> list[Row]:
    """Publish and take in a store at once, then a few events at a time."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder:
        lines = at_once(Path(folder), events)
        size = lines[0]["written"]
        assert isinstance(size, int)
        return [*lines, a_few_at_a_time(Path(folder), events, each, size)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--each", type=int, default=20, help="events of one round of the day")
    report("folder", parser, measure)


if __name__ == "__main__":
    main()
