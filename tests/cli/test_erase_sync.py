"""Erasing on one device of several: nothing is left on any of them, nor in the folder between them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memorize.log.files import RealFiles
from memorize.sync import keys, pack
from memorize.sync.packfile import UNKNOWN_KEY, BadPack
from tests.cli.kit import Person
from tests.cli.test_sync import Devices

SECRET = "zebra-quagga-7391"
GEHEIM = "고양이밥통비밀번호"
KEPT = "월요일에만 배포한다"
ALL = ("노트북", "server", "desktop")
TEXT = f"the code is {SECRET} und {GEHEIM}"


@pytest.fixture
def devices(person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Devices:
    return Devices(person, tmp_path, monkeypatch)


def left(root: Path, *words: str) -> list[str]:
    """Return the files below a directory in which one of the words lies."""
    found = []
    for path in sorted(root.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        found += [f"{path.name}: {word}" for word in words if word.encode() in data]
    return found


def bodies(devices: Devices, *names: str) -> list[bytes]:
    """Return every body that a pack in the folder holds, opened with the keys of these devices."""
    rings = [keys.load(devices.home(name), RealFiles()) for name in names]
    stores = {key.id: key.secret for ring in rings for key in ring.keys}
    scopes = {key.id: key.secret for ring in rings for key in ring.scopes if key.secret}
    packs = [path for path in sorted(devices.files()) if path.suffix == ".mzp"]
    assert packs
    found: list[bytes] = []
    for path in packs:
        try:
            opened = pack.decode(path.read_bytes(), stores.get, scopes.get)
        except BadPack as error:
            if error.state != UNKNOWN_KEY:
                raise
            continue
        found += [one.body for one in opened.envelopes if one.body is not None]
    return found


def holding(devices: Devices, word: str, *names: str) -> int:
    return sum(word.encode() in body for body in bodies(devices, *names))


def waiting(devices: Devices, name: str) -> dict[str, int]:
    status = devices.at(name).gets("erase", "--status")
    return {one["name"]: len(one["open"]) for one in status["items"]}


def test_what_is_erased_on_one_device_is_on_no_other_and_in_no_pack(devices: Devices) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    devices.at("노트북").remembers(KEPT)
    devices.share("노트북", "server", "desktop")
    devices.rounds("노트북", "server", "desktop", "노트북", "server")
    assert left(devices.home("server").root, SECRET)
    assert holding(devices, GEHEIM, *ALL)
    said = devices.at("노트북").types("erase", wrong, "--yes")
    assert said.code == 0, said
    assert "memorize sync" in said.out
    assert waiting(devices, "노트북")["server"] == 1
    devices.rounds("노트북", "server", "desktop")
    for name in ("노트북", "server", "desktop"):
        assert left(devices.home(name).root, SECRET, GEHEIM) == [], name
        assert [item["text"] for item in devices.at(name).gets("list", "--all-projects")["items"]] == [KEPT]
        assert devices.at(name).types("verify", "--deep").code == 0
    assert left(devices.folder, SECRET, GEHEIM) == []
    devices.rounds("노트북", "server", "desktop", "노트북", "server", "desktop", "노트북")
    assert waiting(devices, "노트북") == {"노트북": 0, "server": 0, "desktop": 0}
    assert len(devices.digests("노트북", "server", "desktop")) == 1
    assert [holding(devices, word, *ALL) > 0 for word in (SECRET, GEHEIM, KEPT)] == [False, False, True]


def test_a_device_that_was_away_cannot_bring_it_back_and_loses_it_itself(devices: Devices) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    devices.share("노트북", "server", "away")
    devices.rounds("노트북", "server", "away", "노트북")
    devices.at("away").remembers("said far away, 멀리서")
    copy = devices.folder.with_name("as it was")
    shutil.copytree(devices.folder, copy)
    assert devices.at("노트북").types("erase", wrong, "--yes").code == 0
    devices.rounds("노트북", "server", "노트북")
    # A tool that brings old files back, and a device that publishes what it held.
    shutil.copytree(copy, devices.folder, dirs_exist_ok=True)
    devices.rounds("away", "노트북", "server", "away", "노트북", "server", "away", "노트북")
    for name in ("노트북", "server", "away"):
        assert left(devices.home(name).root, SECRET, GEHEIM) == [], name
        assert [item["text"] for item in devices.at(name).gets("list", "--all-projects")["items"]] == [
            "said far away, 멀리서"
        ]
    assert len(devices.digests("노트북", "server", "away")) == 1
    assert waiting(devices, "server") == {"노트북": 0, "server": 0, "away": 0}


def test_the_request_may_come_before_what_it_names(devices: Devices) -> None:
    devices.share("노트북", "new")
    wrong = devices.at("노트북").remembers(TEXT)
    assert devices.at("노트북").types("erase", wrong, "--yes").code == 0
    devices.rounds("노트북", "new", "노트북")
    assert left(devices.home("new").root, SECRET, GEHEIM) == []
    assert len(devices.digests("노트북", "new")) == 1
    assert devices.at("new").gets("show", wrong)["status"] == "erased"


def test_a_project_with_a_key_of_its_own_is_unreadable_in_old_packs_once_all_have_done_it(devices: Devices) -> None:
    laptop = devices.at("노트북")
    laptop.remembers(KEPT)
    assert laptop.types("key", "scope", "on").code == 0
    devices.share("노트북", "server")
    wrong = devices.at("노트북").remembers(TEXT)
    devices.rounds("노트북", "server", "노트북")
    old = {path: path.read_bytes() for path in devices.files() if path.suffix == ".mzp"}
    assert holding(devices, SECRET, "server")
    assert devices.at("노트북").types("erase", wrong, "--yes").code == 0
    devices.rounds("노트북", "server", "노트북", "server", "노트북", "server")
    for path, data in old.items():  # what the history of a sync tool may still hold
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for name in ("노트북", "server"):
        assert [holding(devices, word, name) > 0 for word in (SECRET, GEHEIM, KEPT)] == [False, False, True]
        assert [item["text"] for item in devices.at(name).gets("list", "--all-projects")["items"]] == [KEPT]
    assert len(devices.digests("노트북", "server")) == 1
