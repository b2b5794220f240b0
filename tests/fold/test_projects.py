"""Joined projects (DESIGN 5, projects)."""

from __future__ import annotations

from memorize.fold import fold
from tests.fold.make import STRANGER, event, linked, name, unlinked


def test_a_link_makes_two_projects_one_and_the_least_key_stands_for_both() -> None:
    state = fold([linked("l", "b", "a")])
    assert state.projects == {"a": "a", "b": "a"}
    assert (state.root("b"), state.root("고아")) == ("a", "고아")


def test_links_join_transitively_whatever_their_direction() -> None:
    assert set(fold([linked("1", "d", "c"), linked("2", "b", "d"), linked("3", "c", "가")]).projects.values()) == {"b"}


def test_an_unlink_undoes_the_link_it_names_and_a_concurrent_one_still_holds() -> None:
    links = [linked("l", "a", "b"), linked("l2", "b", "a")]
    assert fold([links[0], unlinked("u", "l")]).projects == {}
    assert fold([*links, unlinked("u", "l")]).projects == {"a": "a", "b": "a"}
    assert fold([*links, unlinked("u", "l", "l2", "u")]).projects == {}


def test_a_link_of_a_project_with_itself_is_nothing() -> None:
    assert fold([linked("l", "a", "a")]).projects == {}


def test_a_stranger_does_not_undo_a_link() -> None:
    assert fold([linked("l", "a", "b"), unlinked("u", "l", person=STRANGER)]).projects == {"a": "a", "b": "a"}


def test_a_malformed_link_is_quarantined() -> None:
    assert fold([event("l", "project.linked", {"a": "a", "b": 7})]).quarantined == {name("l")}
