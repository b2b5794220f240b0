"""Which places are one project, as a person sees and says it."""

from __future__ import annotations

import subprocess
import unicodedata
from pathlib import Path

import pytest

from tests.cli.kit import Person


def git(where: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=where, check=True, capture_output=True)


def repository(where: Path, remote: str = "") -> Path:
    where.mkdir()
    git(where, "init", "-q", "-b", "main")
    git(where, "commit", "-q", "--allow-empty", "-m", f"처음 {where}")
    if remote:
        git(where, "remote", "add", "origin", remote)
    return where


def keys(person: Person) -> dict[str, str]:
    return {item["name"]: item["key"] for item in person.gets("projects")["items"]}


def known(person: Person, where: Path, text: str) -> None:
    """Remember something at a place."""
    person.gets("remember", text, "--project", str(where))


def told(person: Person, where: Path) -> set[str]:
    return {item["text"] for item in person.gets("list", "--project", str(where))["items"]}


def test_two_places_are_joined_and_parted_again_by_name_key_or_directory(person: Person, tmp_path: Path) -> None:
    shop, front = repository(tmp_path / "shop"), repository(tmp_path / "화면")
    known(person, shop, "결제는 멱등 키를 쓴다")
    known(person, front, "the cart is a separate bundle")
    said = person.types("projects", "link", "shop", str(front))
    assert said.code == 0, said
    assert "one project" in said.out
    assert told(person, shop) == told(person, front) == {"결제는 멱등 키를 쓴다", "the cart is a separate bundle"}
    assert not person.gets("projects", "link", "화면", "shop")["linked"]
    key = keys(person)["shop"][:8]
    assert person.types("projects", "unlink", key, "화면").code == 0
    assert told(person, shop) == {"결제는 멱등 키를 쓴다"}
    assert told(person, front) == {"the cart is a separate bundle"}


def test_a_link_that_comes_by_way_of_a_third_project_is_named(person: Person, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        known(person, repository(tmp_path / name), f"about {name}")
    for pair in (("one", "two"), ("two", "three")):
        person.types("projects", "link", *pair)
    assert person.types("projects", "unlink", "one", "three").code == 44
    person.types("projects", "unlink", "one", "two")
    assert person.gets("projects", "link", "one", "three")["linked"]
    said = person.types("projects", "unlink", "one", "two")
    assert "still joined by way of" in said.err
    assert person.types("projects", "unlink", "two", "three").code == 0
    assert told(person, tmp_path / "two") == {"about two"}


def test_what_names_no_project_or_several_is_refused(person: Person, tmp_path: Path) -> None:
    known(person, repository(tmp_path / "shop"), "one")
    (tmp_path / "b").mkdir()
    known(person, repository(tmp_path / "b" / "shop"), "two")
    for words in (("link", "shop", "nothing"), ("unlink", "nothing", "shop"), ("link", "shop", "shop")):
        said = person.types("projects", *words)
        assert said.code == (45 if words == ("link", "shop", "shop") else said.code)
        assert said.code in (43, 45)
        assert "memorize projects" in said.err


def test_places_that_begin_with_the_same_commit_are_offered_never_joined(person: Person, tmp_path: Path) -> None:
    first = repository(tmp_path / "first", "https://example.com/me/first.git")
    git(tmp_path, "clone", "-q", "--no-local", str(first), "second")
    git(tmp_path / "second", "remote", "set-url", "origin", "git@example.com:you/fork.git")
    known(person, first, "first")
    known(person, tmp_path / "second", "second")
    assert told(person, first) == {"first"}
    items = {item["name"]: item for item in person.gets("projects")["items"]}
    assert all(item["key"] == item["root"] for item in items.values())


def test_one_repository_is_one_project_whatever_its_path_or_the_form_of_its_remote(
    person: Person, tmp_path: Path
) -> None:
    one = repository(tmp_path / "하나", "https://github.com/Me/Shop.git")
    two = repository(tmp_path / "two", "git@github.com:Me/Shop")
    git(one, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{one}", "shallow")
    git(tmp_path / "shallow", "remote", "set-url", "origin", "ssh://git@github.com/Me/Shop.git")
    known(person, one, "known once")
    for where in (two, tmp_path / "tree", tmp_path / "shallow"):
        assert told(person, where) == {"known once"}


def test_a_name_is_meant_before_the_digits_that_it_is_made_of_and_in_any_form(person: Person, tmp_path: Path) -> None:
    for name in ("a", "0", "결제"):
        known(person, repository(tmp_path / name), f"about {name}")
    for word in ("A", "0", unicodedata.normalize("NFD", "결제")):
        assert (
            person.gets("projects", "link", "결제", word)["b"]
            == keys(person)[unicodedata.normalize("NFC", word).lower()]
        )


def test_no_word_at_all_is_no_project_not_this_one(person: Person) -> None:
    person.remembers("지우지 마라")
    for words in (("erase", "--yes", "--project", ""), ("projects", "link", "", ".")):
        assert person.types(*words).code == 43
    assert person.gets("list")["total"] == 1


def test_joined_projects_are_erased_as_one_by_a_name_that_both_have(person: Person, tmp_path: Path) -> None:
    for where in (tmp_path / "shop", tmp_path / "b" / "shop"):
        where.parent.mkdir(exist_ok=True)
        known(person, repository(where), f"about {where}")
    assert person.types("erase", "--dry-run", "--project", "shop").code == 45
    person.types("projects", "link", str(tmp_path / "shop"), str(tmp_path / "b" / "shop"))
    found = person.gets("erase", "--dry-run", "--project", "SHOP")["items"]
    assert sum(one["kind"] == "memory.formed" for one in found) == 2


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("list",), "total"),
        (("search", "머지"), "total"),
        (("rules",), "total"),
        (("conflicts",), "total"),
        (("audit", "--dry-run"), "unjudged"),
        (("erase", "--dry-run", "--project"), "total"),
        (("erase", "--dry-run", "--project", "."), "total"),
        (("status",), "memories"),
    ],
)
def test_a_project_is_still_the_same_to_every_verb_when_its_first_commit_gave_it_another_key(
    person: Person, words: tuple[str, ...], what: str
) -> None:
    person.remembers("Merge PRs yourself (머지) when the checks are green.", "--on", "git-push")
    person.remembers("Never merge PRs yourself (머지), even when the checks are green.")
    before = person.gets(*words)[what]
    assert before > 0
    git(person.project, "init", "-q")
    git(person.project, "commit", "-q", "--allow-empty", "-m", "처음")
    assert person.gets(*words)[what] == before


def test_places_that_begin_alike_are_asked_about_once_and_not_after_an_answer(person: Person, tmp_path: Path) -> None:
    one = repository(tmp_path / "처음")
    known(person, one, "first seen without a remote")
    git(one, "remote", "add", "origin", "https://host/shop.git")
    known(person, one, "and then with one")
    other = tmp_path / "fork"
    git(tmp_path, "clone", "-q", str(one), str(other))
    git(other, "remote", "set-url", "origin", "https://host/fork.git")
    known(person, other, "a fork")
    said = person.types("projects").err.splitlines()
    assert len([line for line in said if "same commit" in line]) == 1, said
    words = next(line.split()[1:] for line in said if "projects link" in line)
    assert person.types(*words).code == 0
    assert "same commit" not in person.types("projects").err
    assert person.types("projects", "unlink", *words[2:]).code == 0
    assert "same commit" not in person.types("projects").err
