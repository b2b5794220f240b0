"""The promises of the fold over dense random sets of events (DESIGN 5).

Hypothesis looks for a small counterexample; the seeded runs see many more sets in the same time.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from memorize.fold import digest, finish, fold, keys, row_hash, rows
from memorize.model import Event
from tests.counts import count
from tests.fold import reference
from tests.fold.events import event_set, event_sets

Rows = dict[bytes, bytes]
PERMUTED = count("fold: permutations, groupings, repetitions", quick=200, full=2_500)
SHRINKABLE = count("fold: sets against the reference (hypothesis)", quick=100, full=1_000)
LATE = count("fold: seeded sets that arrive in batches", quick=80, full=1_000)
SEEDED = count("fold: seeded sets against the reference", quick=400, full=3_000)


def table(events: Iterable[Event]) -> Rows:
    pairs = list(rows(fold(events)))
    found = dict(pairs)
    assert len(found) == len(pairs), "a row came twice"
    return found


def parts(events: Iterable[Event]) -> list[list[Event]]:
    """Split a set into its parts connected through shared keys."""
    found: list[tuple[set[bytes], list[Event]]] = []
    for event in events:
        mine, members = set(keys(event)), [event]
        apart = []
        for part in found:
            if part[0].isdisjoint(mine):
                apart.append(part)
            else:
                mine |= part[0]
                members = part[1] + members
        found = [*apart, (mine, members)]
    return [members for _, members in found]


class Index:
    """What an index does: keep events by key, fold the connected part of each batch, replace its rows."""

    def __init__(self) -> None:
        self.events: dict[bytes, Event] = {}
        self.links: dict[bytes, set[bytes]] = {}
        self.rows: Rows = {}
        self.count = self.total = 0

    def part(self, start: Iterable[bytes]) -> list[Event]:
        """Return the known events connected with these keys."""
        seen: set[bytes] = set()
        waiting, found = list(start), {}
        while waiting:
            key = waiting.pop()
            if key in seen:
                continue
            seen.add(key)
            for identity in self.links.get(key, ()):
                if identity not in found:
                    found[identity] = self.events[identity]
                    waiting.extend(keys(found[identity]))
        return list(found.values())

    def apply(self, batch: list[Event]) -> None:
        touched = {key for event in batch for key in keys(event)}
        for key, value in rows(fold(self.part(touched))):
            assert self.rows.pop(key) == value
            self.count -= 1
            self.total -= row_hash(key, value)
        for event in batch:
            self.events[event.id] = event
            for key in keys(event):
                self.links.setdefault(key, set()).add(event.id)
        for key, value in rows(fold(self.part(touched))):
            assert key not in self.rows
            self.rows[key] = value
            self.count += 1
            self.total += row_hash(key, value)


def batches(random: Random, events: list[Event]) -> list[list[Event]]:
    shuffled = random.sample(events, len(events))
    found = []
    while shuffled:
        size = random.randint(1, 6)
        found.append(shuffled[:size])
        shuffled = shuffled[size:]
    return found


@settings(max_examples=PERMUTED)
@given(event_sets(), st.integers(0, 2**32 - 1))
def test_any_permutation_grouping_and_repetition_gives_one_state_digest(events: list[Event], seed: int) -> None:
    random = Random(seed)
    expected = digest(rows(fold(events)))
    again = events + [random.choice(events) for _ in range(random.randint(0, 8))]
    random.shuffle(again)
    assert digest(rows(fold(again))) == expected
    assert digest(rows(fold(iter(again[::-1])))) == expected
    index = Index()
    for batch in batches(random, again):
        index.apply(batch)
    assert finish(index.count, index.total) == expected


@settings(max_examples=SHRINKABLE)
@given(event_sets())
def test_the_reference_fold_agrees(events: list[Event]) -> None:
    assert table(events) == dict(rows(reference.fold(events)))


def test_the_reference_fold_agrees_on_many_seeded_sets() -> None:
    for seed in range(SEEDED):
        events = event_set(Random(seed), 32)
        assert table(events) == dict(rows(reference.fold(events))), f"seed {seed}"


def test_the_parts_of_a_set_that_share_no_key_fold_alone() -> None:
    for seed in range(SEEDED):
        events = event_set(Random(seed))
        whole = table(events)
        union: Rows = {}
        for part in parts(events):
            found = table(part)
            assert union.keys().isdisjoint(found), f"seed {seed}"
            union |= found
        assert union == whole, f"seed {seed}"


def test_late_events_folded_with_what_they_touch_give_the_same_as_from_scratch() -> None:
    for seed in range(LATE):
        random = Random(seed)
        events = event_set(random, 40)
        index = Index()
        for batch in batches(random, events):
            index.apply(batch)
            assert finish(index.count, index.total) == digest(rows(fold(index.events.values()))), f"seed {seed}"


def test_it_makes_no_difference_whether_the_bodies_of_erased_events_are_gone() -> None:
    for seed in range(SEEDED):
        events = event_set(Random(seed), 32)
        state = fold(events)
        bare = [one._replace(payload=None, malformed=False) if one.id in state.erased else one for one in events]
        assert table(bare) == table(events), f"seed {seed}"


def test_the_random_sets_reach_every_outcome() -> None:
    seen: set[str] = set()
    for seed in range(400):
        state = fold(event_set(Random(seed), 32))
        seen.update(memory.status for memory in state.memories.values())
        seen.update(f"claim {accepted}" for accepted in state.claims.values())
        for shown in state.shown.values():
            fields = ("pinned", "confirmations", "disputed", "contested", "supersedes")
            seen.update(field for field in fields if getattr(shown, field))
            seen.update(["several live"] if len(shown.live) > 1 else [])
        seen.update(field for field in ("aliases", "erased", "quarantined", "projects") if getattr(state, field))
    assert seen == {
        *("live", "superseded", "shadowed", "retracted", "erased", "claim True", "claim False", "several live"),
        *("pinned", "confirmations", "disputed", "contested", "supersedes"),
        *("aliases", "erased", "quarantined", "projects"),
    }
