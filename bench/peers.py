"""What two replicas say to each other until they hold the same, beside the events themselves.

Run ``python -m bench.peers [--events N] [--differences N] [--first N] [--json]``. Two replicas of a store in memory
hold all of it but for some events; every case is one session, frame for frame as it would go over ssh or TLS.
``messages`` are turns of both sides, the goodbye too; ``beside_bytes`` all that is not an event; ``ratio`` compares it
with a list of all ids that one side holds, 32 bytes each. The aim for 1,000 differences among a million is at most
10 messages and 2 MB. ``first sync`` fills an empty device: between two replicas in memory, and between two state
directories with their logs and indexes, whose ``events_s`` is what a person waits for.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from bench.replicas import Replica, Row
from bench.stores import SEED, new_app
from bench.timing import Row as Line
from bench.timing import report, say
from bench.words import Author
from memorize.ids import random_id
from memorize.log.codec import encode, tidy
from memorize.model import OBSERVED_NOTE, Header
from memorize.sync.handshake import Role
from memorize.sync.port import Envelope, Holding
from memorize.sync.session import Session
from memorize.sync.wire import EVENTS, PACKED, PIECE
from memorize.sync.wire import encode as to_bytes

_KEY = bytes(32)
_STORE = bytes(16)
_BATCH = 1_000


def talk(name: str, one: Holding, other: Holding) -> Line:
    """Hold one session and return what it took; both sides must end up with the same."""
    sides = [Session(one, _KEY, _STORE, Role.INITIATOR), Session(other, _KEY, _STORE, Role.RESPONDER)]
    messages = frames = beside = events = 0
    begun = time.perf_counter()
    speaking = sides[0].opening()
    while speaking:
        messages += 1
        for frame in speaking:
            size = len(to_bytes(frame))
            frames += 1
            if frame.kind in (EVENTS, PACKED, PIECE):
                events += size
            else:
                beside += size
        sides.reverse()
        speaking = sides[0].on(speaking)
    spent = time.perf_counter() - begun
    if not all(side.outcome is not None and side.outcome.converged for side in sides):
        raise SystemExit(f"{name}: {[side.outcome for side in sides]}")
    held = one.digest()
    moved = sum(side.outcome.received for side in sides if side.outcome is not None)
    return {
        "case": name,
        "events": held.events,
        "moved": moved,
        "messages": messages,
        "frames": frames,
        "beside_bytes": beside,
        "event_bytes": events,
        "ratio": round(beside / (32 * held.events), 4),
        "seconds": round(spent, 2),
        "events_s": round(moved / spent) if moved else None,
    }


def cases(events: int, differences: int) -> Iterator[tuple[str, bytearray, bytearray]]:
    """Yield names and what both sides hold."""
    chance = Random(SEED)
    whole = bytearray(b"\1") * events
    yield "equal", whole[:], whole[:]
    parts = [whole[:], whole[:]]
    for number, place in enumerate(chance.sample(range(events), differences)):
        parts[number % 2][place] = 0
    yield "scattered on both sides", *parts
    holes = whole[:]
    for place in chance.sample(range(events), differences):
        holes[place] = 0
    yield "scattered on one side", holes, whole[:]
    yield "the last ones on one side", whole[:-differences] + bytes(differences), whole[:]
    yield "first sync in memory", bytearray(min(events, 100 * differences)), bytearray()


def in_memory(events: int, differences: int) -> list[Line]:
    """Measure the resync of replicas in memory."""
    say(f"a store of {events:,} events")
    row = Row(events)
    lines = []
    for name, one, other in cases(events, differences):
        if not other:
            say(f"a store of {len(one):,} events")
            row, other = Row(len(one)), bytearray(b"\1") * len(one)
        say(name)
        lines.append(talk(name, Replica(row, one), Replica(row, other)))
    return lines


def written(count: int) -> Iterator[list[Envelope]]:
    """Yield batches of notes of one writer."""
    author, writer, prev = Author(SEED), random_id(), b""
    batch: list[Envelope] = []
    for seq in range(1, count + 1):
        fields = (1, _STORE, bytes(16), writer, seq, prev, seq, (), OBSERVED_NOTE, 0, b"", b"", 0, b"", 1, seq)
        made = encode(Header(*fields), tidy({"text": author.prose(200)}), random_id())
        prev = made.event.id
        batch.append(Envelope(prev, seq, made.header, made.body))
        if len(batch) == _BATCH or seq == count:
            yield batch
            batch = []


def on_disk(count: int) -> Line:
    """Measure the first sync between two state directories."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder:
        full, empty = (new_app(Path(folder, name)) for name in ("full", "empty"))
        say(f"a state directory of {count:,} events")
        for batch in written(count):
            full.holding.receive(batch)
        empty.reader()
        say("first sync of state directories")
        line = talk("first sync of state directories", empty.holding, full.holding)
        full.close()
        empty.close()
    return line


def measure(events: int, differences: int, first: int) -> list[Line]:
    """Bring two stores in memory to the same, then an empty one to what a state directory holds."""
    return [*in_memory(events, differences), on_disk(first)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the store in memory")
    parser.add_argument("--differences", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=20_000, help="events of the state directory")
    report("peers", parser, measure)


if __name__ == "__main__":
    main()
