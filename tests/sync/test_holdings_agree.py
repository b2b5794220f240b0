"""The holding on a disk and the one in memory were written apart; fed the same, they must answer the same."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

from memorize.bootstrap.store import Store
from memorize.clock import FixedClock
from memorize.config import Config
from memorize.paths import Home
from memorize.sync.port import HIGHEST, LOWEST, Envelope, Key, SetDigest
from tests.counts import count
from tests.sync.simulator.clock import LocalClock, WorldTime
from tests.sync.simulator.holding import MemoryHolding
from tests.sync.simulator.replica import Replica
from tests.sync.simulator.words import draft, erasure

SETS = count("sync: sets of events in both holdings", quick=8, full=80)


def many_events(random: Random) -> list[Envelope]:
    """Return what two replicas wrote: twins, erasures and their targets, things of a later version, bodies left out."""
    clock = LocalClock(WorldTime(), 0, b"b" * 16)
    replicas = [Replica(number, random, b"s" * 16, clock, MemoryHolding()) for number in range(2)]
    made: list[Envelope] = []
    for _ in range(random.randint(5, 40)):
        one, other = random.sample(replicas, 2)
        way = random.random()
        if way < 0.1:
            one.become(other.state())  # from now on both write as the same writer
        elif way < 0.2:
            one.renew_writer()
        known = one.holding.events.values()
        told = erasure(random, known) if way > 0.85 else None
        one.capture(told or draft(random, known))
        made += one.ingest()
        if way < 0.4:
            other.holding.receive([made[-1]])
    bare = [one._replace(body=None) for one in random.sample(made, len(made) // 5)]
    return made + bare


def batches(random: Random, events: list[Envelope]) -> list[list[Envelope]]:
    shuffled = random.sample(events, len(events)) + random.sample(events, len(events) // 3)
    found = []
    while shuffled:
        size = random.randint(1, 12)
        found.append(shuffled[:size])
        shuffled = shuffled[size:]
    return found


def cut(random: Random, keys: list[Key]) -> Key:
    return random.choice([LOWEST, HIGHEST, *keys, *[(lamport, identity[:6]) for lamport, identity in keys]])


def assert_same_answers(random: Random, disk, memory: MemoryHolding) -> None:
    assert disk.digest() == memory.digest()
    assert disk.heads() == memory.heads()
    assert {writer: runs for writer, (_, runs) in disk.spans().items()} == {
        writer: runs for writer, (_, runs) in memory.spans().items()
    }
    keys = memory.keys(LOWEST, HIGHEST, 10**6)
    assert disk.keys(LOWEST, HIGHEST, 10**6) == keys
    for _ in range(4):
        low, high = sorted([cut(random, keys), cut(random, keys)])
        assert disk.range_digest(low, high) == memory.range_digest(low, high)
        assert disk.keys(low, high, 3) == memory.keys(low, high, 3)
        edges = [low, *disk.bounds(low, high, 4), high]
        assert edges == sorted(edges)
        whole = SetDigest(0, 0)
        for start, end in pairwise(edges):
            whole = whole.plus(disk.range_digest(start, end))
        assert whole == memory.range_digest(low, high)
    ids = [identity for _, identity in keys]
    assert sorted(disk.get([*ids, b"?" * 32])) == sorted(memory.get(ids))
    for _, runs in memory.spans().values():
        assert list(disk.of_spans(runs)) == list(memory.of_spans(runs))
    for head in memory.heads():
        back = memory.envelopes[head.id]
        assert disk.after(head, 1) == memory.after(head, 1) == []
        assert disk.after(head._replace(seq=0, id=b""), 1 << 20)[-1] == back


def test_both_answer_the_same_after_every_batch(ram: Path) -> None:
    for seed in range(SETS):
        random = Random(seed)
        app = Store(Home(ram / str(seed)), Config(), FixedClock())
        memory = MemoryHolding()
        app.ingest()
        memory.receive(app.holding.get([identity for _, identity in app.holding.keys(LOWEST, HIGHEST, 99)]))
        for batch in batches(random, many_events(random)):
            told = app.receive(batch)
            assert told.bad == 0
            memory.receive(batch)
            assert_same_answers(random, app.holding, memory)
        app.rebuild()
        assert_same_answers(random, app.holding, memory)
        app.close()
