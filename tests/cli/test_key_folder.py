"""Keys and a sync folder: devices that join, rotate and erase, some of them away meanwhile."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memorize.agents.hookfiles import put_hook_files
from memorize.bootstrap import keeping, open_app
from memorize.paths import Home
from memorize.sync.keys import Keyring
from tests.cli.kit import Person, Said

FIRST, SECOND = "환불은 멱등 키로 한다", "배포는 금요일에 하지 않는다"


class Line:
    """Standard input with something in it."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())

    def isatty(self) -> bool:
        return False


class Device:
    """A device of the person who types, in the same project."""

    def __init__(self, person: Person, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self._person = person
        self.home = home
        self._monkeypatch = monkeypatch
        put_hook_files(home, sys.executable)
        (home.hook / "nodaemon").touch()

    @contextmanager
    def _here(self, given: str = "") -> Iterator[None]:
        with self._monkeypatch.context() as there:
            there.setenv("MEMORIZE_HOME", str(self.home.root))
            there.setattr(sys, "stdin", Line(given))
            yield

    def tries(self, *words: str, given: str = "") -> Said:
        with self._here(given):
            return self._person.types(*words)

    def types(self, *words: str, given: str = "") -> Said:
        said = self.tries(*words, given=given)
        assert said.code == 0, said
        return said

    def remembers(self, text: str) -> str:
        with self._here():
            return self._person.remembers(text)

    def syncs(self) -> None:
        self.types("sync")

    def digest(self) -> str:
        return self.types("digest").out

    def knows(self, text: str) -> bool:
        return text in self.types("list", "--all-projects").out

    def ring(self) -> Keyring:
        app = open_app({"MEMORIZE_HOME": str(self.home.root)})
        try:
            return keeping.keyring(app)
        finally:
            app.close()

    def joins(self, other: Device) -> None:
        self.types("key", "import", given=other.types("key", "export").out)


Make = Callable[[str], Device]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "드라이브"
    made.mkdir()
    return made


@pytest.fixture
def device(person: Person, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    def make(name: str) -> Device:
        made = Device(person, Home(tmp_path / name), monkeypatch)
        made.types("sync", "add", "folder", str(folder))
        return made

    return make


def _rounds(*devices: Device, times: int = 2) -> None:
    for _ in range(times):
        for one in devices:
            one.syncs()


def test_two_devices_with_a_past_that_join_come_to_hold_the_same_by_a_folder(device: Make) -> None:
    desk, laptop = device("책상"), device("노트북")
    desk.remembers(FIRST)
    laptop.remembers(SECOND)
    laptop.joins(desk)
    _rounds(desk, laptop)
    assert desk.digest() == laptop.digest()
    assert desk.knows(SECOND)
    assert laptop.knows(FIRST)


def test_two_devices_that_synced_apart_before_they_joined_come_to_hold_the_same(device: Make) -> None:
    desk, laptop = device("책상"), device("노트북")
    desk.remembers(FIRST)
    laptop.remembers(SECOND)
    desk.syncs()
    laptop.syncs()  # the folder holds another store's packs, too
    assert not laptop.knows(FIRST)
    laptop.joins(desk)
    _rounds(laptop, desk)
    assert desk.digest() == laptop.digest()


def test_a_third_device_follows_when_the_one_it_shared_a_store_with_joins_another(device: Make) -> None:
    desk, old, laptop = device("책상"), device("헌 책상"), device("노트북")
    old.joins(desk)
    desk.remembers(FIRST)
    _rounds(desk, old)
    laptop.remembers(SECOND)
    desk.joins(laptop)
    _rounds(desk, laptop, old, times=3)
    assert len({one.digest() for one in (desk, old, laptop)}) == 1
    assert len({one.ring().store for one in (desk, old, laptop)}) == 1
    assert old.knows(SECOND)


def test_a_device_that_was_away_during_rotations_follows_when_it_comes_back(device: Make) -> None:
    desk, laptop = device("책상"), device("노트북")
    laptop.joins(desk)
    desk.remembers(FIRST)
    _rounds(desk, laptop)
    for _ in range(2):  # the laptop is away
        desk.types("key", "rotate")
        desk.syncs()
    desk.remembers(SECOND)
    desk.syncs()
    _rounds(laptop, desk)
    assert laptop.ring().current == desk.ring().current
    assert laptop.knows(SECOND)
    assert laptop.digest() == desk.digest()


def test_two_devices_that_rotate_at_once_come_to_one_key(device: Make) -> None:
    desk, laptop = device("책상"), device("노트북")
    laptop.joins(desk)
    _rounds(desk, laptop)
    desk.types("key", "rotate")
    laptop.types("key", "rotate")
    desk.remembers(FIRST)
    laptop.remembers(SECOND)
    _rounds(desk, laptop, times=3)
    assert laptop.ring().current == desk.ring().current
    assert laptop.digest() == desk.digest()


def test_after_an_erasure_the_history_of_the_folder_cannot_be_read_and_the_rest_still_can(
    device: Make, folder: Path, tmp_path: Path
) -> None:
    desk, laptop = device("책상"), device("노트북")
    desk.types("key", "scope", "on")
    laptop.joins(desk)
    gone = desk.remembers(FIRST)
    desk.remembers(SECOND)
    _rounds(desk, laptop)
    history = tmp_path / "기록"
    shutil.copytree(folder, history)
    key = desk.ring().scopes[0]
    desk.types("erase", gone, "--yes")
    _rounds(desk, laptop, times=3)
    for one in (desk, laptop):
        ring = one.ring()
        assert key.id in ring.gone
        assert ring.scope_secret(key.id) is None
        assert key.secret not in b"".join(path.read_bytes() for path in one.home.keys.iterdir())
        assert key.secret.hex().encode() not in b"".join(path.read_bytes() for path in one.home.keys.iterdir())
    assert desk.ring().scope_for(key.project) == laptop.ring().scope_for(key.project)
    # A device that only has the new key reads everything but what was erased, though it meets the old packs, too.
    fresh = device("새 기기")
    fresh.joins(desk)
    for path in history.rglob("*.mzp"):
        target = folder / path.relative_to(history)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    _rounds(fresh, desk, laptop, times=3)
    assert fresh.knows(SECOND)
    assert not fresh.knows(FIRST)
    assert len({one.digest() for one in (desk, laptop, fresh)}) == 1


def test_a_device_without_the_scope_key_knows_that_something_was_and_reads_it_once_it_has_the_key(
    device: Make, folder: Path
) -> None:
    desk, laptop = device("책상"), device("노트북")
    laptop.joins(desk)
    desk.types("key", "scope", "on")
    desk.remembers(FIRST)
    desk.syncs()
    assert FIRST.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*.mzp"))
    said = laptop.tries("sync")
    assert said.code == 42
    assert "memorize key import" in said.out + said.err
    assert not laptop.knows(FIRST)
    laptop.joins(desk)
    laptop.syncs()
    assert laptop.knows(FIRST)
