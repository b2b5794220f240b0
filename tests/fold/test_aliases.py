"""Aliases: one capture that was ingested twice is one event (DESIGN 5, rule 1)."""

from __future__ import annotations

from typing import Any

from memorize.fold import fold
from memorize.model import Event
from tests.fold.make import (
    STRANGER,
    claim,
    event,
    formed,
    name,
    noted,
    pinned,
    restored,
    retracted,
    status,
    superseded,
    texts,
)

NONCE = b"n" * 16


def twin(word: str, text: str, at: int, **header: Any) -> Event:
    return formed(word, text, at=at, header={"nonce": NONCE, **header})


def test_of_two_ingestions_of_one_capture_the_least_lamport_counts() -> None:
    state = fold([twin("late", "기억", 7), twin("early", "기억", 3)])
    assert state.aliases == {name("late"): name("early")}
    assert list(state.memories) == [name("early")]


def test_at_one_lamport_the_least_id_counts() -> None:
    low, high = sorted(("one", "other"), key=name)
    assert fold([twin("one", "x", 3), twin("other", "x", 3)]).aliases == {name(high): name(low)}


def test_a_third_twin_that_is_older_takes_over_from_the_first() -> None:
    state = fold([twin("a", "x", 5), twin("b", "x", 4), twin("c", "x", 3)])
    assert state.aliases == {name("a"): name("c"), name("b"): name("c")}


def test_events_without_a_nonce_never_alias() -> None:
    assert fold([formed("a", "같은 글"), formed("b", "같은 글")]).aliases == {}


def test_another_ordinal_kind_or_person_is_another_capture() -> None:
    state = fold(
        [
            twin("a", "x", 1),
            twin("b", "x", 1, ordinal=1),
            twin("c", "x", 1, person=STRANGER),
            noted("d", nonce=NONCE),
        ]
    )
    assert state.aliases == {}


def test_a_retraction_of_an_alias_retracts_the_capture() -> None:
    events = [twin("early", "기억", 3), twin("late", "기억", 7), retracted("r", "late", at=9)]
    assert status(fold(events), "early") == "retracted"


def test_a_retraction_of_an_alias_holds_before_the_event_that_counts_has_arrived_and_after() -> None:
    late, gone = twin("late", "기억", 7), retracted("r", "late", at=9)
    assert status(fold([late, gone]), "late") == "retracted"
    assert status(fold([late, gone, twin("early", "기억", 3)]), "early") == "retracted"


def test_an_aliased_retraction_counts_once_and_one_restore_of_either_cancels_it() -> None:
    gone = [retracted(word, "m", at=at, nonce=NONCE) for word, at in (("r1", 4), ("r2", 5))]
    assert fold([formed("m"), *gone]).memories[name("m")].by == (name("r1"),)
    for word in ("r1", "r2"):
        assert status(fold([formed("m"), *gone, restored("back", word)]), "m") == "live"


def test_what_only_an_alias_says_has_no_effect() -> None:
    one, other = retracted("r1", "m", at=4, nonce=NONCE), retracted("r2", "n", at=5, nonce=NONCE)
    state = fold([formed("m"), formed("n"), one, other])
    assert (status(state, "m"), status(state, "n")) == ("retracted", "live")


def test_an_edge_between_two_names_of_one_capture_is_no_edge() -> None:
    events = [twin("early", "기억", 3), twin("late", "기억", 7), superseded("s", "late", "early")]
    assert texts(*events) == ["기억"]


def test_a_claim_that_lists_an_alias_lists_the_capture() -> None:
    made = [twin(word, "기억", at) for word, at in (("early", 3), ("late", 7))]
    made = [one._replace(payload={**(one.payload or {}), "window": "w"}) for one in made]
    assert texts(*made) == []
    assert texts(*made, claim("c", "w", ["s"], ["late"])) == ["기억"]


def test_two_claims_of_one_observation_under_its_two_names_exclude_each_other() -> None:
    claims = [claim("c1", "w1", ["o1"], at=5), claim("c2", "w2", ["o2"], at=6)]
    twins = [noted("o1", nonce=NONCE, at=1), noted("o2", nonce=NONCE, at=2)]
    assert fold(claims).claims == {name("c1"): True, name("c2"): True}
    assert fold([*claims, *twins]).claims == {name("c1"): True, name("c2"): False}


def test_a_malformed_event_still_decides_which_event_counts() -> None:
    bad = event("early", "memory.formed", {"text": 7}, at=1, nonce=NONCE)
    state = fold([bad, twin("late", "기억", 2), pinned("p", "late")])
    assert state.aliases == {name("late"): name("early")}
    assert not state.memories
