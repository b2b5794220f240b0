"""Retractions, restores and supersede edges (DESIGN 5, rules 2, 3 and 7)."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest

from memorize.fold import fold
from memorize.model import Event
from tests.fold.make import (
    STRANGER,
    claim,
    erasure,
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


def live(*events: Event) -> str:
    """Return the words of the live memories among a..z."""
    states = fold(events).memories
    words = [*"abcdefghijklmnopqrstuvwxyz"]
    return "".join(word for word in words if name(word) in states and states[name(word)].status == "live")


ABC = [formed("a", importance=5), formed("b", importance=5), formed("c", importance=5)]


def test_a_retraction_hides_what_it_names_and_nothing_else() -> None:
    assert live(*ABC, retracted("r", "a", "b")) == "c"


def test_a_memory_formed_again_later_or_concurrently_survives_the_retraction_of_its_twin() -> None:
    assert texts(formed("m1", "배포 금지"), retracted("r", "m1"), formed("m2", "배포 금지")) == ["배포 금지"]


def test_a_restore_cancels_the_retraction_it_names_and_a_concurrent_one_still_holds() -> None:
    assert live(*ABC, retracted("r", "a"), restored("back", "r")) == "abc"
    assert live(*ABC, retracted("r", "a"), retracted("r2", "a"), restored("back", "r")) == "bc"
    assert live(*ABC, retracted("r", "a"), retracted("r2", "a"), restored("back", "r", "r2")) == "abc"


def test_a_restore_cannot_be_cancelled_and_a_new_retraction_holds() -> None:
    events = [*ABC, retracted("r", "a"), restored("back", "r"), retracted("r2", "back"), restored("b2", "back")]
    assert live(*events) == "abc"
    assert live(*events, retracted("r3", "a")) == "bc"


def test_a_dep_on_the_wrong_kind_is_ignored_alone() -> None:
    events = [*ABC, noted("n"), retracted("r", "n", "r", "p", "a"), pinned("p", "b", "n")]
    assert live(*events) == "bc"
    assert live(*events, restored("back", "p", "a", "n", "r")) == "abc"
    assert live(*ABC, noted("n"), superseded("s", "n", "a")) == "abc"
    assert live(*ABC, noted("n"), superseded("s", "a", "n", "b")) == "ac"


def test_an_edge_hides_its_old_sides() -> None:
    state = fold([*ABC, superseded("s", "a", "b", "c")])
    memory = state.memories[name("b")]
    assert (memory.status, memory.by, memory.heirs) == ("superseded", (name("s"),), (name("a"),))
    assert live(*ABC, superseded("s", "a", "b", "c")) == "a"


def test_an_edge_waits_for_its_new_side() -> None:
    assert live(formed("b"), superseded("s", "a", "b")) == "b"
    assert live(formed("b"), superseded("s", "a", "b"), formed("a")) == "a"


def test_an_edge_from_a_retracted_or_shadowed_memory_does_not_count() -> None:
    assert live(*ABC, superseded("s", "a", "b"), retracted("r", "a")) == "bc"
    assert live(formed("a", window="w"), formed("b"), superseded("s", "a", "b")) == "b"
    shadow_lifted = claim("c1", "w", ["1"], ["a"])
    assert live(formed("a", window="w"), formed("b"), superseded("s", "a", "b"), shadow_lifted) == "a"


def test_an_edge_from_an_expired_or_erased_memory_counts() -> None:
    assert live(formed("a", expires_at=1), formed("b"), superseded("s", "a", "b")) == "a"
    assert live(*ABC, superseded("s", "a", "b"), erasure("e", "a")) == "c"


def test_an_edge_from_a_superseded_memory_counts() -> None:
    assert live(*ABC, superseded("s", "a", "b"), superseded("s2", "b", "c")) == "a"


def test_when_only_the_middle_of_a_chain_is_forgotten_its_old_side_comes_back() -> None:
    chain = [*ABC, superseded("s", "a", "b"), superseded("s2", "b", "c")]
    assert live(*chain, retracted("r", "b")) == "ac"


def test_forgetting_the_transitive_set_leaves_nothing_to_come_back_and_one_restore_undoes_it() -> None:
    chain = [*ABC, superseded("s", "a", "b"), superseded("s2", "b", "c")]
    shown = next(iter(fold(chain).shown.values()))
    assert shown.supersedes == tuple(sorted((name("b"), name("c"))))
    forgotten = [*chain, retracted("r", "a", "b", "c")]
    assert live(*forgotten) == ""
    assert live(*forgotten, restored("back", "r")) == "a"


def test_a_restore_cancels_an_edit() -> None:
    assert live(*ABC, superseded("s", "a", "b"), restored("back", "s")) == "abc"


def test_a_memory_says_everything_in_force_against_it_so_that_a_restore_can_name_it_all() -> None:
    events = [*ABC, superseded("s", "a", "b"), retracted("r", "b"), superseded("s2", "c", "b"), restored("x", "s2")]
    memory = fold(events).memories[name("b")]
    assert (memory.status, set(memory.by)) == ("retracted", {name("r"), name("s")})


def test_of_several_reasons_the_strongest_is_the_status() -> None:
    edge = [formed("new"), superseded("s", "new", "m", window="v"), claim("c", "v", ["1"], ["s"])]
    events = [formed("m", window="w")]
    for more, expected in (
        ([], "shadowed"),
        (edge, "shadowed"),
        ([retracted("r", "m")], "retracted"),
        ([erasure("e", "m")], "erased"),
    ):
        events += more
        assert status(fold(events), "m") == expected


@pytest.mark.parametrize("strong", "abc")
def test_in_a_ring_of_edits_the_most_important_member_stays(strong: str) -> None:
    ring = [formed(word, importance=9 if word == strong else 3) for word in "abc"]
    edges = [superseded("s1", "a", "b"), superseded("s2", "b", "c"), superseded("s3", "c", "a")]
    assert live(*ring, *edges) == strong


def test_in_a_ring_of_equals_the_greatest_id_stays() -> None:
    edges = [superseded("s1", "a", "b"), superseded("s2", "b", "a")]
    assert live(*ABC[:2], *edges) == max("a", "b", key=name)


def test_the_winner_of_a_ring_obeys_edges_from_outside() -> None:
    ring = [
        formed("a", importance=9),
        formed("b", importance=3),
        superseded("s1", "a", "b"),
        superseded("s2", "b", "a"),
    ]
    assert live(*ring, formed("c"), superseded("s3", "c", "a")) == "c"


def test_a_member_superseded_from_outside_leaves_the_winner_alone() -> None:
    ring = [
        formed("a", importance=9),
        formed("b", importance=3),
        superseded("s1", "a", "b"),
        superseded("s2", "b", "a"),
    ]
    assert live(*ring, formed("c"), superseded("s3", "c", "b")) == "ac"
    shown = {one.id: one.supersedes for one in fold([*ring, formed("c"), superseded("s3", "c", "b")]).shown.values()}
    assert shown[name("c")] == (name("b"),)


def test_an_erased_member_never_wins_a_ring() -> None:
    ring = [
        formed("a", importance=9),
        formed("b", importance=3),
        superseded("s1", "a", "b"),
        superseded("s2", "b", "a"),
    ]
    assert live(*ring, erasure("e", "a")) == "b"


def test_a_ring_is_broken_by_a_retraction_of_one_member() -> None:
    edges = [superseded("s1", "a", "b"), superseded("s2", "b", "c"), superseded("s3", "c", "a")]
    assert live(*ABC, *edges, retracted("r", "b")) == "c"


def test_a_chain_longer_than_the_stack_is_followed() -> None:
    words = [f"편집 {number}" for number in range(5_000)]
    events = [formed(word) for word in words]
    events += [superseded(f"s{new}", new, old) for old, new in pairwise(words)]
    (shown,) = fold(events).shown.values()
    assert (shown.text, len(shown.supersedes)) == ("편집 4999", 4_999)


def test_edit_and_forget_at_once_the_edit_survives() -> None:
    edit = [formed("new", "금요일에도 배포한다"), superseded("s", "new", "old")]
    for events in permutations([formed("old", "금요일에는 안 한다"), retracted("r", "old"), *edit]):
        assert texts(*events) == ["금요일에도 배포한다"]


def test_two_edits_at_once_are_both_shown_until_an_event_names_both() -> None:
    edits = [
        formed("old"),
        formed("x", "하나"),
        formed("y", "둘"),
        superseded("s1", "x", "old"),
        superseded("s2", "y", "old"),
    ]
    assert texts(*edits) == ["둘", "하나"]
    assert texts(*edits, superseded("s3", "x", "y")) == ["하나"]


def test_another_person_overrules_nothing_but_contests() -> None:
    theirs = [retracted("r", "a", person=STRANGER), superseded("s", "b", "a", person=STRANGER)]
    state = fold([*ABC, *theirs])
    assert status(state, "a") == "live"
    assert state.memories[name("a")].contested == tuple(sorted((name("r"), name("s"))))
    assert [set(one.contested) for one in state.shown.values() if one.text == "a"] == [{name("r"), name("s")}]


def test_a_contest_ends_with_the_restore_of_the_one_who_raised_it() -> None:
    theirs = [retracted("r", "a", person=STRANGER)]
    assert fold([*ABC, *theirs, restored("x", "r")]).memories[name("a")].contested == (name("r"),)
    assert fold([*ABC, *theirs, restored("x", "r", person=STRANGER)]).memories[name("a")].contested == ()


def test_a_person_may_give_up_an_own_memory_for_another_persons() -> None:
    theirs = formed("x", "남의 것", header={"person": STRANGER})
    events = [formed("a", "내 것"), theirs, pinned("p", "a"), superseded("s", "x", "a")]
    (shown,) = fold(events).shown.values()
    assert (shown.text, shown.pinned) == ("남의 것", False)
