"""Ranges, runs and sums against a plain set of events."""

from __future__ import annotations

import sqlite3
import tempfile
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from memorize import model
from memorize.index import holdings, schema, sums
from memorize.index.projector import Projector
from memorize.model import Event, Header, Key, Stored
from memorize.sync.port import HIGHEST, LOWEST
from tests.counts import count
from tests.index.make import FILE, NOW, new_index

SETS = count("holdings: random sets of events", quick=60, full=400)
# Few buckets, their very edges, far ahead, and what a malformed header leaves.
LAMPORTS = st.one_of(
    st.integers(1, 40), st.integers(1, 5000), st.sampled_from([0, 1023, 1024, 1025, 2047, 2048, 2**40, 2**63 - 1])
)
WRITERS = [bytes([number]) * 16 for number in range(1, 4)]


class Given(NamedTuple):
    """One event as it comes, once without and once with its body, or in one way only."""

    number: int
    writer: int
    seq: int
    lamport: int
    bare: bool
    later: bool
    erases: int


GIVEN = st.builds(
    Given,
    st.integers(0, 2**16),
    st.integers(0, 2),
    st.integers(1, 30),
    LAMPORTS,
    st.booleans(),
    st.booleans(),
    st.integers(-20, 30),
)


def identity(number: int) -> bytes:
    """Return an id; those of neighbours begin alike, so that what is indexed of them collides."""
    return (number % 7).to_bytes(8, "big") + number.to_bytes(24, "big")


def event_of(one: Given, every: list[Given]) -> Event:
    kind, payload = model.OBSERVED_NOTE, {"text": f"기억 {one.number}"}
    if 0 <= one.erases < len(every):
        kind, payload = model.ERASE_REQUESTED, {"ids": [identity(every[one.erases].number)], "reason": ""}
    header = Header(
        1, b"s" * 16, b"r" * 16, WRITERS[one.writer], one.seq, b"", one.lamport, (), kind, 9, b"c" * 32,
        one.number.to_bytes(16, "big"), 0, b"b" * 16, 1, NOW - 1,
    )  # fmt: skip
    return Event(identity(one.number), header, payload)


class Plain:
    """The same, in two dictionaries."""

    def __init__(self) -> None:
        self.known: dict[bytes, Event] = {}
        self.held: set[bytes] = set()

    def take(self, event: Event, bare: bool) -> None:
        self.known.setdefault(event.id, event)
        if not bare:
            self.held.add(event.id)

    @property
    def counted(self) -> list[Event]:
        erased = {
            target
            for event in self.known.values()
            if event.kind == model.ERASE_REQUESTED and event.id in self.held and event.payload
            for target in event.payload["ids"]
            if target in self.known and self.known[target].kind not in model.INDELIBLE
        }
        found = [event for event in self.known.values() if event.id in self.held or event.id in erased]
        return sorted(found, key=lambda event: event.order)

    def between(self, low: Key, high: Key) -> list[Event]:
        return [event for event in self.counted if low <= event.order < high]


def digest(events: list[Event]) -> tuple[int, int]:
    return len(events), sum(int.from_bytes(event.id, "big") for event in events) % 2**256


def runs(events: list[Event]) -> dict[bytes, list[tuple[int, int]]]:
    found: dict[bytes, list[tuple[int, int]]] = {}
    for writer, seq in sorted({(event.header.writer, event.header.seq) for event in events}):
        known = found.setdefault(writer, [])
        if known and known[-1][1] == seq - 1:
            known[-1] = (known[-1][0], seq)
        else:
            known.append((seq, seq))
    return found


def twins(events: list[Event]) -> list[Key]:
    def number(event: Event) -> tuple[bytes, int]:
        return (event.header.writer, event.header.seq)

    together = [list(same) for _, same in groupby(sorted(events, key=number), number)]
    return sorted(event.order for same in together if len(same) > 1 for event in same)


def heads(plain: Plain) -> list[tuple[bytes, int, bytes]]:
    found = []
    for writer in WRITERS:
        known = [event for event in plain.known.values() if event.header.writer == writer]
        counted = {event.id for event in plain.counted}
        numbers = sorted(event.header.seq for event in known)
        if known and numbers == list(range(1, len(known) + 1)) and all(event.id in counted for event in known):
            last = max(known, key=lambda event: event.header.seq)
            found.append((writer, last.header.seq, last.id))
    return found


def check(connection: sqlite3.Connection, plain: Plain, cuts: list[Key]) -> None:
    events = plain.counted
    assert sums.flaw(connection) == ""
    assert holdings.everything(connection) == digest(events)
    assert {writer: found for writer, (_, found) in holdings.runs(connection).items()} == runs(events)
    assert holdings.twins(connection) == twins(events)
    assert holdings.heads(connection) == heads(plain)
    missing = [event.order for event in plain.known.values() if event.order not in {one.order for one in events}]
    assert holdings.wanted(connection) == sorted(missing)
    for low, high in pairwise(sorted({LOWEST, HIGHEST, *cuts})):
        inside = plain.between(low, high)
        assert holdings.digest(connection, low, high) == digest(inside)
        assert holdings.keys(connection, low, high, 5) == [event.order for event in inside[:5]]
        assert holdings.digest(connection, high, low) == (0, 0)
    edges = [LOWEST, *holdings.bounds(connection, LOWEST, HIGHEST, 4), HIGHEST]
    assert edges == sorted(set(edges))
    assert sum(holdings.digest(connection, low, high)[0] for low, high in pairwise(edges)) == len(events)
    for writer in WRITERS:
        frames = holdings.frames_of(connection, writer, 3, 20, 10**6)
        mine = [event for event in events if event.header.writer == writer and 3 <= event.header.seq <= 20]
        assert [frame.id for frame in frames] == [
            event.id for event in sorted(mine, key=lambda event: (event.header.seq, event.order))
        ]
    everybody = [event.id for event in plain.known.values()]
    assert [frame.id for frame in holdings.frames(connection, everybody)] == [event.id for event in events]


@settings(max_examples=SETS)
@given(st.lists(GIVEN, max_size=60, unique_by=lambda one: one.number), st.lists(LAMPORTS, max_size=4), st.randoms())
def test_every_answer_is_that_of_a_plain_set(every: list[Given], cuts: list[int], seeds) -> None:
    coming = [(one, one.bare) for one in every] + [(one, False) for one in every if one.later]
    seeds.shuffle(coming)
    plain = Plain()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.sqlite"
        projector = new_index(path)
        while coming:
            batch, coming = coming[:9], coming[9:]
            told = []
            for one, bare in batch:
                event = event_of(one, every)
                plain.take(event, bare)
                told.append(Stored(event._replace(payload=None) if bare else event, FILE, one.number * 300, 300, bare))
            projector.apply(told, {FILE: 1}, NOW)
        projector.close()
        connection = schema.open_read(path)
        keys = [event.order for event in plain.known.values()][:3]
        check(connection, plain, [(lamport, b"") for lamport in cuts] + keys)
        connection.close()


def many(path: Path, numbers: int, per_lamport: int = 1) -> Projector:
    projector = new_index(path)
    every = [
        Given(number, number % 3, number // 3 + 1, number // per_lamport + 1, False, False, -1)
        for number in range(numbers)
    ]
    projector.apply([Stored(event_of(one, every), FILE, one.number, 300) for one in every], {FILE: 1}, NOW)
    projector.close()
    return projector


def test_a_range_is_cut_into_parts_of_about_the_same_size(tmp_path: Path) -> None:
    for per_lamport in (1, 40, 20_000):
        path = tmp_path / f"{per_lamport}.sqlite"
        many(path, 20_000, per_lamport)
        connection = schema.open_read(path)
        for parts in (2, 16, 100):
            edges = [LOWEST, *holdings.bounds(connection, LOWEST, HIGHEST, parts), HIGHEST]
            sizes = [holdings.digest(connection, low, high)[0] for low, high in pairwise(edges)]
            assert len(sizes) <= parts
            assert sum(sizes) == 20_000
            assert max(sizes) <= 2.5 * 20_000 / parts
        assert holdings.bounds(connection, LOWEST, HIGHEST, 1) == []
        assert holdings.bounds(connection, LOWEST, (1, b""), 16) == []
        connection.close()


def test_a_part_no_larger_than_its_events_is_still_cut(tmp_path: Path) -> None:
    many(tmp_path / "i.sqlite", 3)
    connection = schema.open_read(tmp_path / "i.sqlite")
    assert holdings.bounds(connection, LOWEST, HIGHEST, 16) == holdings.keys(connection, LOWEST, HIGHEST, 9)[1:]
    connection.close()


def test_only_the_writers_of_segments_are_own(tmp_path: Path) -> None:
    projector = new_index(tmp_path / "i.sqlite")
    mine, theirs = b"\x01" * 16, b"\x02" * 16
    names = [f"segments/{mine.hex()}-00000001.mzs", f"received/{theirs.hex()}-00000001.mzs", "segments/odd-1.mzs"]
    projector.apply([], dict.fromkeys(names, 96), NOW)
    projector.close()
    connection = schema.open_read(tmp_path / "i.sqlite")
    assert holdings.own(connection) == {mine}
    connection.close()
