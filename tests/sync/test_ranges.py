from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorize.ids import random_id
from memorize.sync import ranges
from memorize.sync.port import HIGHEST, LOWEST, Envelope, Holding, Key
from memorize.sync.ranges import LIST_MAX, Range, answer, first, from_fields, split, to_frames
from memorize.sync.wire import Frame, Garbled, encode
from tests.counts import count
from tests.sync.peers import Pen, events, holding, received


def over_the_wire(told: list[Range]) -> list[Range]:
    data = b"".join(encode(Frame(5, 1, fields)) for fields in to_frames(told, 2_000))
    return [one for frame in received(data) for one in from_fields(*frame.fields)]


def reconcile(one: Holding, other: Holding, budget: int, chance: random.Random) -> tuple[set[bytes], set[bytes], int]:
    """Let both answer ranges until nothing is left; return what each would send, and how many messages it took."""
    sides = (one, other)
    sent: tuple[set[bytes], set[bytes]] = (set(), set())
    told, hearer, messages = first(one), 1, 1
    while told:
        messages += 1
        heard = over_the_wire(told)
        heard += chance.sample(heard, min(len(heard), 2)) if chance.random() < 0.2 else []  # again, in any order
        said = answer(sides[hearer], heard, budget)
        for rest in said.rests:
            keys = sides[hearer].keys(rest.low, rest.high, 10**6)
            sent[hearer].update(identity for _, identity in keys if identity not in rest.known)
        sent[1 - hearer].update(said.wants)
        told, hearer = said.ranges, 1 - hearer
        assert messages < 2_000
    return sent[0], sent[1], messages


@settings(max_examples=count("peers: reconciled pairs of sets", quick=60, full=400))
@given(st.integers(0, 2**32))
def test_ranges_find_exactly_the_differences(seed: int) -> None:
    chance = random.Random(seed)
    everything = events(chance.randint(1, 4), chance.randint(1, 120))
    shares = (chance.choice((0, 0.02, 0.5, 0.98, 1)), chance.choice((0.5, 0.98, 1)))
    mine, theirs = ([one for one in everything if chance.random() < share] for share in shares)
    found = reconcile(holding(mine), holding(theirs), chance.choice((500, 3_000, 10**6)), chance)
    assert found[0] == {one.id for one in mine} - {one.id for one in theirs}
    assert found[1] == {one.id for one in theirs} - {one.id for one in mine}


def test_many_events_of_one_lamport_number_are_told_apart() -> None:
    mine = [Pen(lamport=6).write() for _ in range(300)]
    found = reconcile(holding(mine[:-1]), holding(mine[1:]), 10**6, random.Random(1))
    assert found[:2] == ({mine[0].id}, {mine[-1].id})


def test_equal_sets_need_one_message_and_its_empty_answer() -> None:
    both = events(2, 400)
    sent, asked, messages = reconcile(holding(both), holding(both), 10**6, random.Random(1))
    assert (sent, asked, messages) == (set(), set(), 2)


class Alike:
    """Ids that begin alike: bounds that keep only the beginning of an id would never part them."""

    def __init__(self, count: int) -> None:
        self._keys = [(7, b"\x05" * 20 + number.to_bytes(12, "big")) for number in range(count)]
        self._all = holding(Envelope(identity, 7, b"", b"") for _, identity in ())

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        return [key for key in self._keys if low <= key < high][:limit]

    def bounds(self, low: Key, high: Key, parts: int) -> list[Key]:
        inside = self.keys(low, high, 10**6)
        return sorted({inside[len(inside) * part // parts] for part in range(1, parts)})

    def range_digest(self, low: Key, high: Key) -> object:
        total = sum(int.from_bytes(identity, "big") for _, identity in self.keys(low, high, 10**6))
        return ranges.SetDigest(len(self.keys(low, high, 10**6)), total % 2**256)


def test_ids_that_begin_alike_still_make_smaller_ranges() -> None:
    parts = split(Alike(500), LOWEST, HIGHEST, 16)  # type: ignore[arg-type]
    assert len(parts) >= 8
    assert all(isinstance(part.told, bytes) for part in parts)


def test_a_small_set_is_told_at_once() -> None:
    few = events(1, LIST_MAX)
    (only,) = first(holding(few))
    assert only == Range(LOWEST, HIGHEST, tuple(one.id for one in few))


@pytest.mark.parametrize(
    "fields",
    [
        (5, b"", [[0, b"", b"f" * 16]]),  # from a key to itself
        (5, b"b", [[0, b"a", b"f" * 16]]),
        (0, b"", [[2**63, b"", b"f" * 16]]),  # beyond every Lamport number
        (2**64 - 1, b"", [[2**64 - 1, b"", b"f" * 16]]),
        (0, b"", [[None, b"", b"f" * 16], [None, b"", b"f" * 16]]),
        (0, b"", [[None, b"", b"f" * 16], [1, b"", b"f" * 16]]),
    ],
)
def test_ranges_that_do_not_ascend_are_garbled(fields: tuple[int, bytes, list[object]]) -> None:
    with pytest.raises(Garbled):
        from_fields(*fields)


def test_gaps_between_ranges_are_not_answered() -> None:
    told = [Range((1, b""), (2, b""), b"f" * 16), Range((9, b"x"), HIGHEST, (random_id() * 2,))]
    assert over_the_wire(told) == told
