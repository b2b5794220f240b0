"""Payloads of every wrong shape: kept, counted, without effect, never raised (DESIGN 5, rule 6)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize import model
from memorize.fold import digest, fold, keys, rows
from memorize.model import Event
from tests.fold.events import spoiled
from tests.fold.make import claim, erasure, event, formed, judged, linked, name, noted, superseded, texts, words

READ = [
    model.MEMORY_FORMED,
    model.MEMORY_SUPERSEDED,
    model.MEMORY_RETRACTED,
    model.MEMORY_RESTORED,
    model.MEMORY_PINNED,
    model.MEMORY_UNPINNED,
    model.MEMORY_CONFIRMED,
    model.MEMORY_JUDGED,
    model.WINDOW_CONSOLIDATED,
    model.ERASE_REQUESTED,
    model.PROJECT_LINKED,
    model.PROJECT_UNLINKED,
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.characters(categories=["Cs"])
    | st.binary(max_size=40)
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(scalars.filter(lambda key: key == key), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("payload", [[], "글", 7, b"x", True, object()])
def test_a_payload_that_is_no_map_is_quarantined(kind: str, payload: Any) -> None:
    state = fold([event("x", kind, payload)])
    assert state.quarantined == {name("x")}
    assert not state.memories
    assert not state.claims


WRONG_IN_A_MEMORY: dict[str, list[Any]] = {
    "kind": [None, "", 1, ["fact"]],
    "text": [None, "", b"bytes", 5],
    "text_key": [None, "", 5],
    "scope": [None, "", "team", 1, ["project"]],
    "project": [None, "", 7, ["a"]],
    "importance": [None, 0, 11, -1, 2**70, True, "5", 5.0],
    "confidence": [-1, 101, True, "5", 2**70],
    "trust": ["root", 1, ["user"]],
    "single": [0, 1, "yes"],
    "expires_at": [-1, 2**53 + 1, 2**70, "tomorrow", True, 1.5],
    "paths": ["a/b", [1], {"a": 1}, 0],
    "tags": ["태그", [None]],
    "triggers": ["git-commit", [["git-commit"]], {}],
    "sources": ["x", [1], ["text"], [b""], 0, {}],
    "branch": [1, []],
    "subject": [1],
    "predicate": [{}],
    "object": [b"x"],
    "obsolete_when": [0],
    "window": [0, b"w", []],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in WRONG_IN_A_MEMORY.items() for value in values]
)
def test_a_memory_with_one_wrong_field_is_quarantined_and_stops_no_other(field: str, value: Any) -> None:
    bad = event("x", model.MEMORY_FORMED, words("나쁜 것", **{field: value}))
    state = fold([bad, formed("m", "좋은 것")])
    assert state.quarantined == {name("x")}
    assert [shown.text for shown in state.shown.values()] == ["좋은 것"]


@pytest.mark.parametrize(
    "bad",
    [
        claim("x", "w")._replace(payload={"window": "w", "sources": None, "events": []}),
        claim("x", "w")._replace(payload={"window": "", "sources": [], "events": []}),
        claim("x", "w")._replace(payload={"window": b"w", "sources": [], "events": []}),
        claim("x", "w")._replace(payload={"window": "w", "sources": [1], "events": []}),
        claim("x", "w")._replace(payload={"window": "w", "sources": [], "events": "ab"}),
        erasure("x")._replace(payload={"ids": None}),
        erasure("x")._replace(payload={"ids": [name("m"), 3]}),
        erasure("x")._replace(payload={}),
        judged("x", "m", "n", verdict="perhaps"),
        judged("x", "m", "n")._replace(payload={"verdict": ["contradicts"]}),
        superseded("x", "n", "m")._replace(payload={"window": 3}),
        linked("x", "a", ""),
        linked("x", "a", "b")._replace(payload={"a": "a"}),
        noted("x", malformed=True),
        event("x", "later.kind", None, malformed=True),
    ],
)
def test_a_malformed_event_is_quarantined_and_has_no_effect(bad: Event) -> None:
    good = [formed("m", "하나"), formed("n", "둘")]
    state = fold([*good, bad])
    assert state.quarantined == {name("x")}
    assert state._replace(quarantined=frozenset()) == fold(good)


def test_fields_and_kinds_that_are_not_known_are_no_fault() -> None:
    state = fold([formed("m", "글", colour=["빨강", {"deep": [1]}]), event("x", "later.kind", {"a": 2**70})])
    assert state.quarantined == frozenset()
    assert [shown.text for shown in state.shown.values()] == ["글"]


def test_a_memory_kind_that_is_not_known_is_shown_all_the_same() -> None:
    assert texts(formed("m", "글", kind="insight")) == ["글"]


def test_half_a_surrogate_is_a_text_like_any_other() -> None:
    state = fold([formed("m", "\ud800", text_key="\ud800", project="\udfff"), linked("l", "\ud800", "b")])
    assert len(state.shown) == 1
    assert digest(rows(state))


@given(st.sampled_from(READ), anything, st.booleans())
def test_nothing_raises_on_any_payload(kind: str, payload: Any, malformed: bool) -> None:
    bad = event("x", kind, payload, ["m", "x", "y"], malformed=malformed)
    events = [bad, formed("m", "글"), erasure("e", "y")]
    digest(rows(fold(events)))
    assert keys(bad)


FULL = [
    formed("x", branch="b", subject="s", sources=[b"x" * 32], paths=["p"], single=True, window=None),
    claim("x", "w", ["1"], ["m"], ["c"]),
    superseded("x", "m", "n", window="w"),
    judged("x", "m", "n", window="w"),
    erasure("x", "m"),
    linked("x", "a", "b"),
]


@given(st.sampled_from(FULL), st.randoms(use_true_random=False), anything, st.data())
def test_nothing_raises_when_one_field_is_garbage(
    good: Event, random: Random, garbage: Any, data: st.DataObject
) -> None:
    payload: Any = spoiled(random, dict(good.payload or {}))
    if data.draw(st.booleans()):
        field = data.draw(st.sampled_from(sorted(good.payload or {})))
        payload = {**(good.payload or {}), field: garbage}
    bad = good._replace(payload=payload)
    digest(rows(fold([bad, formed("m"), formed("n"), erasure("e", "x")])))
    digest(rows(fold([bad, formed("m"), formed("n")])))
    assert keys(bad)
