from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.sync import wire
from memorize.sync.exchange import Pace
from tests.sync.peers import Pen, events, holding, sync


def test_equal_replicas_need_one_round_trip() -> None:
    both = events(3, 40)
    mine, theirs, traffic = sync(holding(both), holding(both))
    assert mine is not None
    assert theirs is not None
    assert mine.converged
    assert theirs.converged
    assert traffic.turns == 3  # asked, answered; the third only says goodbye
    assert [frame.kind for who, frame in traffic.frames if who == "other"][-1] == wire.TURN
    assert traffic.bytes < 6_000


def test_an_empty_device_gets_everything() -> None:
    all_of_them = events(4, 100)
    full, empty = holding(all_of_them), holding()
    for one, other in ((full, empty), (holding(), full)):
        mine, theirs, _ = sync(one, other)
        assert mine is not None
        assert mine.converged, mine
        assert theirs is not None
        assert theirs.converged
        assert one.digest() == other.digest() == full.digest()


@given(st.data())
def test_any_two_sets_become_their_union(data: st.DataObject) -> None:
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    everything = events(chance.randint(1, 5), chance.randint(1, 60))
    everything += Pen(lamport=chance.choice((0, 5, 10**6))).many(chance.randint(0, 50))
    parts = [[one for one in everything if chance.random() < share] for share in (chance.random(), chance.random())]
    one, other = holding(parts[0]), holding(parts[1])
    pace = Pace(
        chance.choice((300, 2_000, 512 * 1024)), chance.choice((1, 3_000, 10**6)), chance.choice((1, 500, 10**6))
    )
    mine, theirs, _ = sync(one, other, pace=pace)
    assert mine is not None
    assert mine.converged, mine
    assert theirs is not None
    assert theirs.converged, theirs
    assert set(one.envelopes) == set(other.envelopes) == {each.id for part in parts for each in part}
