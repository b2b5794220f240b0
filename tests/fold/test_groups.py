"""Text groups, pins, confirmations and disputes (DESIGN 5, rules 5 and 8)."""

from __future__ import annotations

from typing import Any

from memorize.fold import Shown, fold, group_key
from memorize.model import Event, text_key
from tests.fold.make import (
    OTHER_PROJECT,
    PROJECT,
    STRANGER,
    claim,
    confirmed,
    erasure,
    event,
    formed,
    judged,
    name,
    pinned,
    retracted,
    superseded,
    texts,
    unpinned,
    words,
)

SAYING = "금요일에는 배포하지 않는다"


def said(word: str, at: int = 1, wall: int = 1000, **fields: Any) -> Event:
    return formed(word, SAYING, at=at, header={"wall": wall}, **fields)


def one(*events: Event) -> Shown:
    (shown,) = fold(events).shown.values()
    return shown


def by_text(*events: Event) -> dict[str, Shown]:
    return {shown.text: shown for shown in fold(events).shown.values()}


def test_the_same_text_formed_twice_is_one_memory_shown() -> None:
    shown = one(said("a"), said("b", at=2))
    assert shown.members == shown.live == tuple(sorted((name("a"), name("b"))))
    assert (shown.id, shown.lamport) == (name("b"), 2)
    assert shown.key == group_key(b"", "project", PROJECT, "fact", text_key(SAYING))


def test_the_stored_key_decides_not_the_text() -> None:
    assert one(formed("a", "Use Tabs", text_key="k"), formed("b", "탭을 쓴다", text_key="k", at=2)).text == "탭을 쓴다"
    assert len(fold([formed("a", "x", text_key="k"), formed("b", "x", text_key="l")]).shown) == 2


def test_another_scope_project_kind_or_person_is_another_group() -> None:
    events = [
        said("a"),
        said("b", project=OTHER_PROJECT),
        said("c", scope="personal"),
        said("d", kind="decision"),
        formed("e", SAYING, header={"person": STRANGER}),
    ]
    assert len(fold(events).shown) == 5


def test_a_personal_memory_is_one_across_projects() -> None:
    shown = one(said("a", scope="personal"), said("b", at=2, scope="personal", project=OTHER_PROJECT))
    assert (len(shown.live), shown.project) == (2, OTHER_PROJECT)


def test_the_fields_are_those_of_the_member_with_the_greatest_order_whatever_the_wall_says() -> None:
    shown = one(
        said("a", at=2, wall=1, importance=3, trust="external", triggers=["git-push"]),
        said("b", at=1, wall=9, importance=9, trust="user", triggers=["git-commit"]),
    )
    assert (shown.importance, shown.trust, shown.triggers) == (3, "external", ("git-push",))
    assert shown.recency == 9


def test_a_member_that_is_not_live_does_not_speak() -> None:
    events = [said("a", importance=2), said("b", at=2, importance=9), retracted("r", "b")]
    shown = one(*events)
    assert (shown.importance, shown.live, len(shown.members)) == (2, (name("a"),), 2)


def test_an_erased_member_is_no_member() -> None:
    assert one(said("a"), said("b"), erasure("e", "b")).members == (name("a"),)


def test_forgetting_every_known_member_hides_the_text_until_it_is_said_again() -> None:
    events = [said("a"), said("b"), retracted("r", "a", "b")]
    assert texts(*events) == []
    assert texts(*events, said("c")) == [SAYING]


def test_sources_are_united_and_begin_with_those_of_the_member_that_speaks() -> None:
    x, y, z = name("x"), name("y"), name("z")
    assert one(said("a", sources=[x, y]), said("b", at=2, sources=[z, y, z])).sources == (z, y, x)


def test_sources_named_twice_by_one_member_are_named_once() -> None:
    assert one(said("a", sources=[name("x"), name("y"), name("x")])).sources == (name("x"), name("y"))


def test_what_a_member_replaced_counts_even_when_only_its_twin_is_live() -> None:
    events = [said("a"), said("b", at=2), formed("old"), formed("new", "새"), superseded("s1", "a", "old")]
    shown = by_text(*events, superseded("s2", "new", "a"))
    assert (shown[SAYING].live, shown[SAYING].supersedes) == ((name("b"),), (name("old"),))
    assert set(shown["새"].supersedes) == {name("a"), name("old")}


# Pins and confirmations


def test_a_pin_on_one_member_pins_the_group_until_that_pin_is_taken_back() -> None:
    events = [said("a"), said("b", at=2), pinned("p", "a")]
    assert one(*events).pinned
    assert not one(*events, unpinned("u", "p")).pinned
    assert one(*events, unpinned("u", "p"), pinned("p2", "a")).pinned


def test_a_concurrent_pin_survives_an_unpin() -> None:
    assert one(said("a"), pinned("p", "a"), pinned("q", "a"), unpinned("u", "p")).pinned


def test_a_pin_on_a_forgotten_member_does_not_pin_the_memory_formed_anew() -> None:
    assert not one(said("a"), pinned("p", "a"), retracted("r", "a"), said("b", at=2)).pinned


def test_pins_and_confirmations_follow_supersede_edges() -> None:
    events = [
        formed("a"),
        formed("b"),
        formed("c", "지금", header={"wall": 5}),
        pinned("p", "a"),
        confirmed("k", "b", "a", wall=7),
        superseded("s1", "b", "a"),
        superseded("s2", "c", "b"),
    ]
    shown = one(*events)
    assert (shown.text, shown.pinned, shown.confirmations, shown.recency) == ("지금", True, 1, 7)


def test_one_confirmation_of_two_members_counts_once_and_two_count_twice() -> None:
    events = [said("a"), said("b"), confirmed("k", "a", "b", wall=3000)]
    assert (one(*events).confirmations, one(*events).recency) == (1, 3000)
    assert one(*events, confirmed("k2", "b")).confirmations == 2


def test_a_stranger_neither_pins_nor_confirms() -> None:
    shown = one(said("a"), pinned("p", "a", person=STRANGER), confirmed("k", "a", person=STRANGER, wall=9**9))
    assert (shown.pinned, shown.confirmations, shown.recency) == (False, 0, 1000)


def test_impossible_wall_times_are_cut() -> None:
    assert one(said("a", wall=-7)).recency == 0
    assert one(said("a", wall=2**64 - 1)).recency == 2**53
    assert one(said("a"), confirmed("k", "a", wall=2**64 - 1)).recency == 2**53


# Disputes

TWO = [formed("a", "탭을 쓴다"), formed("b", "빈칸을 쓴다")]


def test_two_live_memories_that_contradict_each_other_are_both_shown_as_disputed() -> None:
    shown = by_text(*TWO, judged("j", "a", "b"))
    assert shown["탭을 쓴다"].disputed == (name("b"),)
    assert shown["빈칸을 쓴다"].disputed == (name("a"),)


def test_a_dispute_ends_when_one_side_is_forgotten_or_replaced() -> None:
    assert by_text(*TWO, judged("j", "a", "b"), retracted("r", "b"))["탭을 쓴다"].disputed == ()
    assert by_text(*TWO, judged("j", "a", "b"), superseded("s", "a", "b"))["탭을 쓴다"].disputed == ()
    twins = [formed("a2", "탭을 쓴다"), formed("b2", "빈칸을 쓴다")]
    for gone in "ab":
        shown = by_text(*TWO, *twins, judged("j", "a", "b"), retracted("r", gone))
        assert [one.disputed for one in shown.values()] == [(), ()]


def test_a_dispute_names_the_member_that_is_shown() -> None:
    twin = formed("b2", "빈칸을 쓴다", at=5)
    assert by_text(*TWO, twin, judged("j", "a", "b"))["탭을 쓴다"].disputed == (name("b2"),)


def test_only_the_verdict_contradicts_makes_a_dispute_and_none_within_a_group() -> None:
    for verdict in ("same", "refines", "replaces", "unrelated"):
        assert not by_text(*TWO, judged("j", "a", "b", verdict=verdict))["탭을 쓴다"].disputed
    assert not one(said("a"), said("b"), judged("j", "a", "b")).disputed
    assert not by_text(*TWO, judged("j", "a", "a"))["탭을 쓴다"].disputed
    assert not by_text(*TWO, event("j", "memory.judged", {"verdict": "contradicts"}, ["a"]))["탭을 쓴다"].disputed


def test_a_later_verdict_that_names_the_earlier_one_takes_it_back() -> None:
    events = [*TWO, judged("j", "a", "b"), judged("j2", "a", "b", "j", verdict="unrelated")]
    assert not by_text(*events)["탭을 쓴다"].disputed
    stranger = judged("j2", "a", "b", "j", verdict="unrelated", person=STRANGER)
    assert by_text(*TWO, judged("j", "a", "b"), stranger)["탭을 쓴다"].disputed


def test_memories_of_two_persons_may_dispute() -> None:
    theirs = formed("b", "빈칸을 쓴다", header={"person": STRANGER})
    assert by_text(TWO[0], theirs, judged("j", "a", "b"))["빈칸을 쓴다"].disputed == (name("a"),)


def test_what_was_left_out_of_a_memory_has_a_plain_stand_in() -> None:
    needed = {"kind", "text", "text_key", "importance", "scope", "project"}
    bare = event("a", "memory.formed", {key: value for key, value in words("글").items() if key in needed})
    shown = one(bare)
    assert (shown.confidence, shown.trust, shown.branch, shown.paths) == (50, "external", "", ())
    assert (shown.single, shown.expires_at, shown.sources) == (False, None, ())


def test_a_claim_in_another_window_does_not_touch_a_persons_memory() -> None:
    assert texts(said("a"), claim("c", "w", ["1"], ["x"])) == [SAYING]
