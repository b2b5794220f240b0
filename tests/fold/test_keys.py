"""The connectivity keys: what they are, and what they leave apart."""

from __future__ import annotations

from memorize import model
from memorize.fold import capture_key, id_key, keys
from tests.fold.make import STRANGER, claim, erasure, event, formed, judged, linked, name, noted, restored, unlinked

NONCE = b"n" * 16


def test_an_event_has_its_own_key_and_that_of_its_capture() -> None:
    plain = noted("o", nonce=NONCE)
    assert keys(plain) == {id_key(name("o")), capture_key(plain.header)}
    assert keys(noted("o")) == {id_key(name("o"))}


def test_twins_share_a_key_and_events_of_another_person_ordinal_or_kind_do_not() -> None:
    first = keys(noted("a", nonce=NONCE))
    assert first & keys(noted("b", nonce=NONCE))
    assert not first & keys(noted("b", nonce=NONCE, ordinal=1))
    assert not first & keys(noted("b", nonce=NONCE, person=STRANGER))
    assert not first & keys(event("b", model.OBSERVED_PROMPT, {}, nonce=NONCE))


def test_deps_connect_only_where_they_mean_something() -> None:
    assert id_key(name("r")) in keys(restored("x", "r"))
    assert id_key(name("l")) in keys(unlinked("x", "l"))
    assert keys(event("x", model.OBSERVED_REPLY, {}, ["prompt"])) == {id_key(name("x"))}
    assert keys(formed("m")._replace(payload=None)) == {id_key(name("m"))}


def test_memories_of_one_text_share_a_key() -> None:
    assert keys(formed("a", "같은 글")) & keys(formed("b", "같은  글"))
    assert not keys(formed("a", "같은 글")) & keys(formed("b", "같은 글", kind="rule"))


def test_a_claim_has_the_keys_of_its_sources_of_what_it_made_and_of_what_it_redoes() -> None:
    assert keys(claim("c", "w", ["s"], ["m"], ["e"])) == {id_key(name(word)) for word in "csme"}


def test_an_erasure_has_the_keys_of_its_targets_and_a_link_those_of_its_projects() -> None:
    assert keys(erasure("e", "a", "b")) == {id_key(name(word)) for word in "eab"}
    assert keys(linked("l", "가", "b")) == {id_key(name("l")), b"p" + "가".encode(), b"pb"}


def test_a_verdict_connects_its_pair_only_when_it_finds_a_contradiction() -> None:
    assert keys(judged("j", "a", "b")) == {id_key(name(word)) for word in "jab"}
    for verdict in ("same", "refines", "replaces", "unrelated"):
        assert keys(judged("j", "a", "b", "i", verdict=verdict)) == {id_key(name(word)) for word in "ji"}


def test_keys_of_different_sorts_never_meet() -> None:
    assert {key[:1] for key in keys(formed("m", header={"nonce": NONCE}))} == {b"i", b"a", b"g"}
