"""When the key of the project at a path changes: the same repository is linked, another one in its place is not."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from memorize import model
from memorize.index import moved, schema
from memorize.index.place import locate
from memorize.index.projector import Projector
from tests.index import make
from tests.index.test_place import git

DEVICE = "d" * 32


class World:
    """One path of one device, and what the index was told of it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "가게"
        self.path.mkdir()
        self.elsewhere = root
        self._seed = random.Random(7)
        self._at = 0
        self._projector: Projector = make.new_index(root / "index.sqlite")
        self.index: sqlite3.Connection = schema.open_read(root / "index.sqlite")

    def tell(self, kind: str, payload: dict[str, object], deps: tuple[bytes, ...] = ()) -> bytes:
        """Append an event; return its id."""
        self._at += 1
        event = make.event(kind, payload, self._at, self._seed, deps=deps)
        self._projector.apply(make.stored([event], self._at), {make.FILE: self._at * 1_000}, make.NOW)
        return event.id

    def visit(self) -> str:
        """Come to the path as a session does; return the key that was linked with the present one, "" for none."""
        place = locate(self.path, DEVICE)
        old = moved.former_key(self.index, DEVICE, place)
        seen = {"key": place.project, "name": place.name, "path": place.root, "device": DEVICE}
        self.tell(model.PROJECT_SEEN, {**seen, "identities": [list(pair) for pair in place.identities]})
        if old:
            self.link = self.tell(model.PROJECT_LINKED, {"a": old, "b": place.project})
        assert moved.former_key(self.index, DEVICE, place) == ""
        return old

    def commit(self, text: str = "첫 커밋") -> None:
        git(self.path, "commit", "-q", "--allow-empty", "-m", text)

    def begin(self) -> None:
        git(self.path, "init", "-q", "-b", "main")

    def is_cloned(self, name: str) -> None:
        """Put a clone of another repository into the path, whose commits lie in a pack."""
        source = self.elsewhere / name
        source.mkdir()
        git(source, "init", "-q", "-b", "main")
        git(source, "commit", "-q", "--allow-empty", "-m", name)
        shutil.rmtree(self.path)
        git(self.elsewhere, "clone", "-q", f"file://{source}", str(self.path))
        shutil.rmtree(self.path / ".git" / "objects")
        (self.path / ".git" / "objects").mkdir()
        log = self.path / ".git" / "logs" / "HEAD"
        log.write_text(log.read_text().replace(f"file://{source}", f"https://git.example.com/{name}.git"))
        git(self.path, "remote", "set-url", "origin", f"git@git.example.com:{name}.git")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def first_commit(world: World) -> None:
    world.begin()
    world.visit()
    world.commit()


def first_remote(world: World) -> None:
    world.begin()
    world.commit()
    world.visit()
    git(world.path, "remote", "add", "origin", "https://git.example.com/a.git")


def renamed_remote(world: World) -> None:
    first_remote(world)
    world.visit()
    git(world.path, "remote", "set-url", "origin", "https://git.example.com/b.git")


def renamed_remote_without_commits(world: World) -> None:
    world.begin()
    git(world.path, "remote", "add", "origin", "https://git.example.com/a.git")
    world.visit()
    git(world.path, "remote", "set-url", "origin", "https://git.example.com/b.git")


def renamed_remote_of_a_clone(world: World) -> None:
    world.is_cloned("a")
    world.visit()
    git(world.path, "remote", "set-url", "origin", "https://git.example.com/new-owner/a.git")


@pytest.mark.parametrize(
    "change", [first_commit, first_remote, renamed_remote, renamed_remote_without_commits, renamed_remote_of_a_clone]
)
def test_a_repository_whose_key_alone_has_changed_is_linked_once(world: World, change: Callable[[World], None]) -> None:
    before = locate(world.path, DEVICE).project
    change(world)
    old = world.visit()
    assert old not in ("", locate(world.path, DEVICE).project)
    assert world.visit() == ""
    assert {old, locate(world.path, DEVICE).project} <= set(moved.family(world.index, old))
    assert before  # a path is a project, too


def other_root(world: World) -> None:
    first_commit(world)
    world.visit()
    shutil.rmtree(world.path / ".git")
    world.begin()
    world.commit("ein anderer Anfang")


def other_root_after_a_look_without_git(world: World) -> None:
    first_commit(world)
    world.visit()
    shutil.rmtree(world.path / ".git")
    world.visit()
    world.begin()
    world.commit("다른 시작")


def other_clone(world: World) -> None:
    world.is_cloned("a")
    world.visit()
    world.is_cloned("b")


def clone_over_a_plain_directory(world: World) -> None:
    world.visit()
    world.is_cloned("b")


def marker(world: World) -> None:
    world.begin()
    world.commit()
    world.visit()
    (world.path / ".memorize.toml").write_text('id = "내 것"\n', encoding="utf-8")


def no_log_and_commits_that_cannot_be_reached(world: World) -> None:
    world.is_cloned("a")
    shutil.rmtree(world.path / ".git" / "logs")
    world.visit()
    git(world.path, "remote", "set-url", "origin", "https://git.example.com/b.git")


@pytest.mark.parametrize(
    "change",
    [
        other_root,
        other_root_after_a_look_without_git,
        other_clone,
        clone_over_a_plain_directory,
        marker,
        no_log_and_commits_that_cannot_be_reached,
    ],
)
def test_another_repository_at_the_same_path_is_another_project(world: World, change: Callable[[World], None]) -> None:
    change(world)
    assert world.visit() == ""


def test_a_link_that_was_undone_is_not_made_again(world: World) -> None:
    first_commit(world)
    old = world.visit()
    new = locate(world.path, DEVICE).project
    world.tell(model.PROJECT_UNLINKED, {}, deps=(world.link,))
    assert moved.family(world.index, old) == (old,)
    world.tell(model.PROJECT_SEEN, {"key": old, "name": "x", "path": str(world.path), "device": DEVICE})
    assert world.visit() == ""
    assert moved.family(world.index, new) == (new,)


def test_a_remote_taken_away_and_set_again_needs_no_second_link(world: World) -> None:
    first_remote(world)
    assert world.visit()
    git(world.path, "remote", "remove", "origin")
    assert world.visit() == ""
    git(world.path, "remote", "add", "origin", "https://git.example.com/a.git")
    assert world.visit() == ""


def test_a_repository_that_packed_its_commits_is_known_by_its_log(world: World) -> None:
    world.begin()
    world.commit()
    world.visit()
    git(world.path, "remote", "add", "origin", "https://git.example.com/a.git")
    git(world.path, "-c", "gc.writeCommitGraph=false", "gc", "-q", "--prune=now")
    shutil.rmtree(world.path / ".git" / "objects")
    (world.path / ".git" / "objects").mkdir()
    assert world.visit()
