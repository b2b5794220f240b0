"""The chain of one memory, on a projection that the real projector wrote."""

from __future__ import annotations

import random

import pytest

from memorize import model
from memorize.index import schema
from memorize.model import text_key
from memorize.recall.history import history
from tests.index.make import event, new_index, stored

WORDS = {"first": "금액은 실수로 다룬다.", "second": "금액은 정수로 다룬다.", "third": "Amounts are integers in cents."}


def formed(words, lamport, seed, **fields):
    payload = {
        "kind": "decision", "text": words, "text_key": text_key(words), "importance": 5, "confidence": 80,
        "scope": "project", "project": "a" * 32, "trust": "user", **fields,
    }  # fmt: skip
    return event(model.MEMORY_FORMED, payload, lamport, seed)


@pytest.fixture
def chain():
    seed = random.Random(7)
    first, second, third = (formed(words, at, seed) for at, words in enumerate(WORDS.values(), 1))
    double = formed(WORDS["first"], 4, seed)
    replaced = event(model.MEMORY_SUPERSEDED, {"reason": "edited"}, 5, seed, deps=(second.id, first.id, double.id))
    again = event(model.MEMORY_SUPERSEDED, {"reason": "edited"}, 6, seed, deps=(third.id, second.id))
    pinned = event(model.MEMORY_PINNED, {}, 7, seed, deps=(third.id,))
    unpinned = event(model.MEMORY_UNPINNED, {}, 8, seed, deps=(pinned.id,))
    gone = event(model.MEMORY_RETRACTED, {"reason": "wrong"}, 9, seed, deps=(third.id,))
    back = event(model.MEMORY_RESTORED, {}, 10, seed, deps=(gone.id,))
    kept = event(model.MEMORY_CONFIRMED, {}, 11, seed, deps=(third.id,))
    other = formed("nothing to do with it", 12, seed)
    return [first, second, third, double, replaced, again, pinned, unpinned, gone, back, kept, other]


def steps(events, path, identity):
    projector = new_index(path)
    projector.apply(stored(events), {}, 1_796_000_000_000)
    projector.close()
    base = schema.open_read(path)
    found = history(base, identity)
    base.close()
    return found


def test_the_whole_chain_is_told_in_order_from_any_of_its_ends(chain, tmp_path):
    told = steps(chain, tmp_path / "one.sqlite", chain[0].id)
    assert [step.what for step in told] == [
        "formed", "formed", "formed", "formed", "superseded", "superseded",
        "pinned", "unpinned", "retracted", "restored", "confirmed",
    ]  # fmt: skip
    assert [step.text for step in told][:5] == [*WORDS.values(), WORDS["first"], "edited"]
    assert [step.id for step in told] == [one.id for one in chain[:-1]]
    assert told[5].about == (chain[2].id, chain[1].id)
    for number, end in enumerate(chain[1:4]):
        assert steps(chain, tmp_path / f"end {number}.sqlite", end.id) == told


def test_the_order_of_arrival_does_not_change_it(chain, tmp_path):
    told = steps(chain, tmp_path / "one.sqlite", chain[2].id)
    mixed = list(chain)
    random.Random(3).shuffle(mixed)
    assert steps(mixed, tmp_path / "two.sqlite", chain[2].id) == told


def test_an_unconnected_memory_has_a_chain_of_one_and_an_unknown_id_none(chain, tmp_path):
    assert [step.what for step in steps(chain, tmp_path / "one.sqlite", chain[-1].id)] == ["formed"]
    assert steps(chain, tmp_path / "two.sqlite", bytes(32)) == []
