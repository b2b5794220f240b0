"""Erasures, and events whose body is not there (DESIGN 5, rule 6)."""

from __future__ import annotations

import pytest

from memorize import model
from memorize.fold import digest, fold, rows
from tests.fold.make import (
    STRANGER,
    claim,
    erasure,
    event,
    formed,
    linked,
    name,
    noted,
    restored,
    retracted,
    status,
    superseded,
    texts,
)

NONCE = b"n" * 16


def test_an_erased_memory_is_shown_no_more_and_its_text_is_in_no_row() -> None:
    state = fold([formed("m", "비밀 암호"), erasure("e", "m")])
    assert status(state, "m") == "erased"
    assert state.memories[name("m")].by == (name("e"),)
    assert not state.shown
    assert state.erased == {name("m")}
    assert all("비밀".encode() not in value for _, value in rows(state))


def test_it_makes_no_difference_whether_the_body_is_still_there() -> None:
    whole = [formed("m", "비밀"), erasure("e", "m"), superseded("s", "m", "old"), formed("old")]
    bare = [one._replace(payload=None) if one.id == name("m") else one for one in whole]
    assert digest(rows(fold(whole))) == digest(rows(fold(bare)))


def test_a_malformed_body_is_no_longer_malformed_once_it_is_erased() -> None:
    bad = event("m", model.MEMORY_FORMED, {"text": 1})
    assert fold([bad]).quarantined == {name("m")}
    erased = fold([bad, erasure("e", "m")])
    assert erased.quarantined == frozenset()
    assert digest(rows(erased)) == digest(rows(fold([bad._replace(payload=None), erasure("e", "m")])))


def test_erasing_one_name_of_a_capture_erases_all() -> None:
    twins = [formed(word, "비밀", at=at, header={"nonce": NONCE}) for word, at in (("a", 1), ("b", 2), ("c", 3))]
    for word in "abc":
        assert fold([*twins, erasure("e", word)]).erased == {name("a"), name("b"), name("c")}


def test_an_erasure_that_is_itself_an_alias_still_erases() -> None:
    twins = [erasure("e1", "x", at=1, nonce=NONCE), erasure("e2", "m", at=2, nonce=NONCE)]
    assert status(fold([formed("m"), *twins]), "m") == "erased"


def test_an_erasure_cannot_be_cancelled() -> None:
    events = [formed("m"), erasure("e", "m"), restored("r", "e", "m"), erasure("e2", "e"), retracted("t", "e")]
    assert status(fold(events), "m") == "erased"


@pytest.mark.parametrize("kind", sorted(model.INDELIBLE))
def test_claims_erasures_and_devices_cannot_be_erased(kind: str) -> None:
    payload = {"window": "w", "sources": [b"s"], "events": [], "ids": [name("m")]}
    state = fold([event("x", kind, payload), formed("m", "글"), erasure("e", "x")])
    assert state.erased == ({name("m")} if kind == model.ERASE_REQUESTED else frozenset())
    assert state.claims == ({name("x"): True} if kind == model.WINDOW_CONSOLIDATED else {})


def test_another_person_erases_nothing() -> None:
    assert texts(formed("m", "기억"), erasure("e", "m", person=STRANGER)) == ["기억"]


def test_an_erasure_waits_for_what_it_names() -> None:
    assert fold([erasure("e", "m")]).erased == frozenset()
    assert fold([erasure("e", "o"), noted("o")]).erased == {name("o")}


def test_an_erased_memory_still_stands_for_what_it_replaced() -> None:
    events = [formed("new"), formed("old"), superseded("s", "new", "old")]
    assert texts(*events, erasure("e", "new")) == []


def test_an_erased_retraction_still_retracts_and_an_erased_restore_still_restores() -> None:
    events = [formed("m", "기억"), retracted("r", "m"), erasure("e", "r", "b")]
    assert texts(*events) == []
    assert texts(*events, restored("b", "r")) == ["기억"]


def test_an_erased_edit_still_stands() -> None:
    assert texts(formed("new", "새"), formed("old"), superseded("s", "new", "old"), erasure("e", "s")) == ["새"]


def test_an_erased_link_joins_nothing_for_its_keys_are_gone() -> None:
    assert fold([linked("l", "a", "b"), erasure("e", "l")]).projects == {}


def test_an_event_whose_body_has_not_arrived_is_as_if_it_were_not_known() -> None:
    """The set digest does not count it, and equal sets must have equal states."""
    bare = [one._replace(payload=None) for one in (formed("m"), retracted("r", "o"), superseded("s", "m", "o"))]
    others = [formed("o", "기억")]
    assert fold([*bare, *others]) == fold(others)
    assert texts(bare[0], formed("m", "글")) == texts(formed("m", "글"), bare[0]) == ["글"]
    assert fold([*bare, *others, erasure("e", "m")]).erased == {name("m")}


def test_an_event_whose_body_has_not_arrived_is_no_first_ingestion_of_a_capture() -> None:
    twins = [formed(word, "글", at=at, header={"nonce": NONCE}) for word, at in (("a", 1), ("b", 2))]
    bare = twins[0]._replace(payload=None)
    assert fold([bare, twins[1]]) == fold([twins[1]])
    assert fold([bare, twins[1], erasure("e", "b")]).erased == {name("a"), name("b")}


def test_a_claim_whose_body_has_not_arrived_claims_nothing() -> None:
    assert fold([claim("c", "w", ["s"])._replace(payload=None)]).claims == {}


def test_an_erased_event_with_a_window_needs_any_accepted_claim_that_lists_it() -> None:
    edit = superseded("s", "new", "old", window="w1")
    events = [formed("new", "새"), formed("old", "헌"), edit, erasure("e", "s")]
    assert texts(*events, claim("c", "w9", ["o"], ["s"])) == ["새"]
    refused = [claim("c", "w1", ["o"], ["s"], at=2), claim("d", "w2", ["o"], at=1)]
    assert texts(*events, *refused) == ["새", "헌"]
