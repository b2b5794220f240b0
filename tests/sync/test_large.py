"""What is promised of large stores, on replicas that live in memory (``bench.replicas``)."""

from __future__ import annotations

import os
from random import Random

import pytest

from bench.peers import talk
from bench.replicas import Replica, Row
from tests.counts import count, note

EVENTS = count("peers: events of the large store", quick=50_000, full=1_000_000)
DIFFERENCES = 1_000

pytestmark = pytest.mark.skipif("MEMORIZE_TEST_WHEEL" in os.environ, reason="benchmarks are the checkout's")


@pytest.fixture(scope="module")
def row() -> Row:
    return Row(EVENTS)


def test_equal_replicas_of_any_size_need_one_round_trip_of_two_small_messages(row: Row) -> None:
    line = talk("equal", Replica(row, bytearray(b"\1") * EVENTS), Replica(row, bytearray(b"\1") * EVENTS))
    assert line["messages"] == 3  # asked, answered, goodbye
    assert int(str(line["beside_bytes"])) < 4_000


@pytest.mark.parametrize("share", [0.5, 1.0, 0.9])
def test_a_thousand_differences_take_ten_messages_and_two_megabytes_at_most(row: Row, share: float) -> None:
    chance = Random(f"{share}")
    sides = [bytearray(b"\1") * EVENTS, bytearray(b"\1") * EVENTS]
    for place in chance.sample(range(EVENTS), DIFFERENCES):
        sides[chance.random() > share][place] = 0
    line = talk("scattered", *(Replica(row, held) for held in sides))
    note(
        f"peers: {DIFFERENCES:,} differences among {EVENTS:,}: {line['messages']} messages, {line['beside_bytes']:,} B"
    )
    assert line["moved"] == DIFFERENCES
    assert int(str(line["messages"])) <= 10
    assert int(str(line["beside_bytes"])) <= 2_000_000


def test_new_events_at_the_end_of_writers_need_no_ranges(row: Row) -> None:
    behind = bytearray(b"\1") * (EVENTS - DIFFERENCES) + bytearray(DIFFERENCES)
    line = talk("new ones", Replica(row, behind), Replica(row, bytearray(b"\1") * EVENTS))
    assert line["moved"] == DIFFERENCES
    assert int(str(line["messages"])) <= 5
    assert int(str(line["beside_bytes"])) < 10_000
