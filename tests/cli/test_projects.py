"""Which places are one project, as a person sees and says it."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
