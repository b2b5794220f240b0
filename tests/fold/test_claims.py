"""Claims, and what consolidations made (DESIGN 5, rule 4)."""

from __future__ import annotations

from typing import Any

import pytest

from memorize.fold import State, fold
from memorize.model import Event
from tests.fold.make import (
    STRANGER,
    claim,
    confirmed,
    event,
    formed,
    judged,
    name,
    noted,
    pinned,
    restored,
    retracted,
    status,
    superseded,
    texts,
    unpinned,
)


def accepted(*events: Event) -> str:
    """Return the words of the accepted claims, of those called by one or two characters."""
    verdicts = fold(events).claims
    words = [f"{letter}{digit}" for letter in "etrx" for digit in ("", *"123456789")]
    return " ".join(word for word in words if verdicts.get(name(word)))


def test_a_claim_is_accepted() -> None:
    assert accepted(claim("e", "w", ["o1"])) == "e"


def test_of_two_claims_that_share_a_source_the_earlier_one_is_accepted() -> None:
    assert accepted(claim("e1", "w", ["o1", "o2"], at=2), claim("e2", "v", ["o2", "o3"], at=1)) == "e2"


def test_at_one_lamport_the_least_id_is_accepted() -> None:
    first = min("e1", "e2", key=name)
    assert accepted(claim("e1", "w", ["o"]), claim("e2", "v", ["o"])) == first


def test_a_refused_claim_blocks_nobody() -> None:
    claims = [claim("e1", "a", ["1"], at=1), claim("e2", "b", ["1", "2"], at=2), claim("e3", "c", ["2"], at=3)]
    assert accepted(*claims) == "e1 e3"


def test_claims_without_sources_are_all_accepted() -> None:
    assert accepted(claim("e1", "a"), claim("e2", "b")) == "e1 e2"


def test_claims_of_different_persons_don_t_exclude_each_other() -> None:
    assert accepted(claim("e1", "a", ["1"]), claim("e2", "b", ["1"], person=STRANGER)) == "e1 e2"


def test_a_redo_is_accepted_in_place_of_the_claim_it_names() -> None:
    assert accepted(claim("e", "a", ["1"], at=1), claim("r", "b", ["1"], redoes=["e"], at=9)) == "r"


def test_a_redo_refuses_even_a_claim_with_other_sources() -> None:
    assert accepted(claim("e", "a", ["1"], at=1), claim("r", "b", ["2"], redoes=["e"], at=9)) == "r"


def test_in_a_chain_of_redos_only_the_last_is_accepted() -> None:
    chain = [claim("e", "a", ["1"], at=1)]
    for number, earlier in ((1, "e"), (2, "r1"), (3, "r2")):
        chain.append(claim(f"r{number}", f"w{number}", ["1"], redoes=[earlier], at=1 + number))
        assert accepted(*chain) == f"r{number}"


def test_a_redo_stands_where_the_claim_it_refuses_stood_so_that_no_loser_comes_up_between() -> None:
    lost = claim("t", "t", ["1", "2"], at=2)
    assert accepted(claim("e", "a", ["1"], at=1), lost) == "e"
    assert accepted(claim("e", "a", ["1"], at=1), lost, claim("r", "b", ["1"], redoes=["e"], at=9)) == "r"


def test_the_end_of_a_chain_stands_where_its_beginning_stood() -> None:
    events = [
        claim("e", "a", ["1"], at=1),
        claim("t", "t", ["1"], at=2),
        claim("r1", "b", ["1"], redoes=["e"], at=3),
        claim("r2", "c", ["1"], redoes=["r1"], at=4),
    ]
    assert accepted(*events) == "r2"


def test_a_redo_that_loses_against_an_earlier_claim_still_refuses_what_it_names() -> None:
    events = [
        claim("x", "x", ["2"], at=1),
        claim("e", "a", ["1"], at=2),
        claim("r", "b", ["1", "2"], redoes=["e"], at=3),
    ]
    assert accepted(*events) == "x"


def test_of_two_redos_that_don_t_know_of_each_other_the_earlier_is_accepted() -> None:
    events = [claim("e", "a", ["1"], at=1), *(claim(f"r{n}", f"w{n}", ["1"], redoes=["e"], at=n) for n in (2, 3))]
    assert accepted(*events) == "r2"


def test_a_redo_of_a_redo_goes_before_a_rival_that_it_never_heard_of() -> None:
    events = [claim("e", "a", ["1"], at=1), *(claim(f"r{n}", f"w{n}", ["1"], redoes=["e"], at=n) for n in (2, 3))]
    assert accepted(*events, claim("r9", "z", ["1"], redoes=["r2"], at=9)) == "r9"


def test_a_ring_of_redos_refuses_all_its_members() -> None:
    events = [claim("r1", "a", ["1"], redoes=["r2"]), claim("r2", "b", ["2"], redoes=["r1"])]
    assert accepted(*events) == ""
    assert accepted(*events, claim("r3", "c", ["1"], redoes=["r1"])) == "r3"


def test_a_claim_that_names_itself_a_stranger_s_claim_or_another_kind_redoes_nothing() -> None:
    own = claim("e", "a", ["1"], redoes=["e", "o"])
    assert accepted(own, noted("o"), claim("r", "b", ["2"], redoes=["e"], person=STRANGER)) == "e r"


def test_a_malformed_redo_refuses_nothing() -> None:
    broken = event("r", "window.consolidated", {"window": 7, "sources": [], "events": []}, ["e"])
    assert accepted(claim("e", "a", ["1"]), broken) == "e"


# What a consolidation made


def made(text: str = "기억", word: str = "m", **more: Any) -> Event:
    return formed(word, text, window="w", **more)


def test_a_memory_of_a_window_is_not_shown_before_its_claim_has_arrived() -> None:
    assert texts(made()) == []
    assert status(fold([made()]), "m") == "shadowed"
    assert texts(made(), claim("c", "w", ["1"], ["m"])) == ["기억"]


def test_a_claim_that_does_not_list_it_or_has_another_window_does_not_help() -> None:
    assert texts(made(), claim("c", "w", ["1"], ["other"])) == []
    assert texts(made(), claim("c", "v", ["1"], ["m"])) == []
    assert texts(made(), claim("c", "w", ["1"], ["m"], person=STRANGER)) == []


def test_of_two_devices_that_consolidated_the_same_window_only_one_s_memories_are_shown() -> None:
    events = [
        formed("m1", "월요일에 배포한다", window="w1"),
        claim("c1", "w1", ["1"], ["m1"], at=5),
        formed("m2", "배포는 월요일", window="w2"),
        claim("c2", "w2", ["1"], ["m2"], at=4),
    ]
    state = fold(events)
    assert (status(state, "m1"), status(state, "m2")) == ("shadowed", "live")
    assert state.memories[name("m1")].by == (name("c1"),)


def test_a_memory_without_a_window_that_a_refused_claim_lists_is_shadowed_too() -> None:
    refused = [claim("c1", "w1", ["1"], at=1), claim("c2", "w2", ["1"], ["m"], at=2)]
    assert texts(formed("m"), *refused) == []
    assert texts(formed("m", "글"), claim("c2", "w2", ["1"], ["m"])) == ["글"]


PERSONS_WORDS = {
    "pinned": [pinned("p", "m")],
    "edited": [superseded("s", "nothing known", "m")],
    "confirmed": [confirmed("k", "m")],
}


@pytest.mark.parametrize("how", PERSONS_WORDS)
def test_a_memory_that_a_person_took_up_is_never_shadowed(how: str) -> None:
    refused = [claim("c1", "w1", ["1"], at=1), claim("c2", "w", ["1"], ["m"], at=2)]
    assert texts(made(), *refused) == []
    assert texts(made(), *refused, *PERSONS_WORDS[how]) == ["기억"]
    assert texts(made(), *PERSONS_WORDS[how]) == ["기억"]


def test_neither_a_stranger_nor_a_consolidation_takes_a_memory_up() -> None:
    assert texts(made(), pinned("p", "m", person=STRANGER), confirmed("k", "m", person=STRANGER)) == []
    by_window = [confirmed("k", "m", window="v"), superseded("s", "x", "m", window="v")]
    assert texts(made(), *by_window, claim("c", "v", ["2"], ["k", "s"])) == []


def test_a_pin_taken_back_and_an_edit_restored_protect_no_longer() -> None:
    assert texts(made(), pinned("p", "m"), unpinned("u", "p")) == []
    assert texts(made(), superseded("s", "x", "m"), restored("r", "s")) == []


def test_edges_confirmations_and_verdicts_of_a_window_wait_for_the_claim_too() -> None:
    events = [
        formed("old", "옛것"),
        formed("new", "새것"),
        formed("far", "먼것"),
        superseded("s", "new", "old", window="w"),
        confirmed("k", "new", window="w"),
        judged("j", "new", "far", window="w"),
    ]
    assert facts(fold(events)) == {"옛것": (0, 0), "새것": (0, 0), "먼것": (0, 0)}
    assert facts(fold([*events, claim("c", "w", ["1"], "skj")])) == {"새것": (1, 1), "먼것": (0, 1)}
    refused = [claim("b", "v", ["1"], at=0), claim("c", "w", ["1"], "skj")]
    assert facts(fold([*events, *refused])) == {"옛것": (0, 0), "새것": (0, 0), "먼것": (0, 0)}


def facts(state: State) -> dict[str, tuple[int, int]]:
    return {one.text: (one.confirmations, len(one.disputed)) for one in state.shown.values()}


def test_a_persons_retraction_needs_no_claim_even_when_a_claim_lists_it() -> None:
    refused = [claim("b", "v", ["1"], at=0), claim("c", "w", ["1"], ["r"])]
    assert texts(formed("m"), retracted("r", "m"), *refused) == []


def test_a_redo_shows_its_own_memories_and_shadows_the_earlier_ones() -> None:
    events = [
        formed("m1", "규칙이 찾은 것", window="w1"),
        claim("c1", "w1", ["1", "2"], ["m1"], at=2),
        formed("m2", "모델이 찾은 것", window="w2"),
    ]
    assert texts(*events) == ["규칙이 찾은 것"]
    assert texts(*events, claim("c2", "w2", ["1", "2"], ["m2"], ["c1"], at=3)) == ["모델이 찾은 것"]
