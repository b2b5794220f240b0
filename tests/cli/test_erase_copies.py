"""Erasures and state directories that were copied, moved or restored: nobody is done while a copy may hold the text."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memorize.log import identity
from memorize.log.files import RealFiles
from memorize.log.identity import peek
from tests.cli.kit import Person
from tests.cli.test_erase_sync import GEHEIM, TEXT, left
from tests.cli.test_sync import Devices
from tests.sync.test_restored import refill


@pytest.fixture
def devices(person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Devices:
    machine = tmp_path / "machine-id"
    machine.write_text("0123456789abcdef\n", encoding="ascii")
    monkeypatch.setattr(identity, "_MACHINE_FILES", (str(machine),))
    made = Devices(person, tmp_path, monkeypatch)
    made.at("노트북").remembers("월요일에만 배포한다")
    made.share("노트북", "server")
    made.rounds("노트북", "server", "노트북")
    return made


def replica(devices: Devices, name: str) -> str:
    found = peek(devices.home(name), RealFiles())
    assert found is not None
    return found.replica.hex()


def waiting(devices: Devices, at: str = "server") -> set[str]:
    """Return the replicas that are not known to have done every erasure, as one device sees it."""
    status = devices.at(at).gets("erase", "--status")
    return {one["replica"] for item in status["items"] for one in item["replicas"] if one["open"]}


def said(devices: Devices, at: str = "server") -> str:
    return devices.at(at).types("erase", "--status").out


def restore(devices: Devices, name: str, backup: Path) -> None:
    shutil.rmtree(devices.home(name).root)
    shutil.copytree(backup, devices.home(name).root)


def test_a_copy_that_is_offline_keeps_its_device_from_being_done(devices: Devices) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    shutil.copytree(devices.home("노트북").root, devices.home("copy").root)
    devices.rounds("copy", "노트북", "server", "노트북")
    copy = replica(devices, "copy")
    assert copy != replica(devices, "노트북")
    assert devices.at("노트북").types("erase", wrong, "--yes").code == 0
    devices.rounds("노트북", "server", "노트북", "server")
    assert left(devices.home("copy").root, GEHEIM)
    assert waiting(devices) == waiting(devices, "노트북") == {copy}
    assert f"replica {copy[:8]}" in said(devices)
    assert "all done; this device" not in said(devices, "노트북")
    devices.rounds("copy", "노트북", "server")
    assert not left(devices.home("copy").root, GEHEIM)
    assert waiting(devices) == waiting(devices, "노트북") == set()
    assert "replica" not in said(devices)


def test_a_directory_restored_to_its_place_stands_for_what_it_was(devices: Devices) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    devices.rounds("노트북", "server")
    backup = devices.root / "backup"
    shutil.copytree(devices.home("노트북").root, backup)
    first = replica(devices, "노트북")
    restore(devices, "노트북", backup)
    devices.rounds("노트북", "server")
    second = replica(devices, "노트북")
    assert second != first
    assert devices.at("server").types("erase", wrong, "--yes").code == 0
    devices.rounds("server")
    assert waiting(devices) == {second}
    devices.rounds("노트북", "server")
    assert waiting(devices) == set()
    # Restored once more, from before the erasure: all of it is to be done again, and by this one alone.
    restore(devices, "노트북", backup)
    devices.at("노트북").remembers("복원한 뒤")
    devices.rounds("노트북", "server", "노트북", "server")
    assert not left(devices.home("노트북").root, GEHEIM)
    assert waiting(devices) == set()
    assert replica(devices, "노트북") not in (first, second)


def test_a_directory_that_is_put_back_after_it_was_given_up_counts_again(devices: Devices) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    devices.rounds("노트북", "server")
    first, aside = replica(devices, "노트북"), devices.root / "aside"
    shutil.copytree(devices.home("노트북").root, devices.root / "backup")
    devices.home("노트북").root.rename(aside)
    shutil.copytree(devices.root / "backup", devices.home("노트북").root)
    devices.rounds("노트북", "server")
    second = replica(devices, "노트북")
    devices.home("노트북").root.rename(devices.root / "given up")
    aside.rename(devices.home("노트북").root)
    devices.at("노트북").remembers("다시 여기서")
    devices.rounds("노트북", "server")
    assert replica(devices, "노트북") == first
    assert devices.at("server").types("erase", wrong, "--yes").code == 0
    devices.rounds("server")
    assert waiting(devices) == {first, second}


def test_what_a_directory_was_before_its_content_was_restored_is_named_until_a_person_says_it_is_gone(
    devices: Devices,
) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    devices.rounds("노트북", "server")
    backup = devices.root / "backup"
    shutil.copytree(devices.home("노트북").root, backup)
    devices.at("노트북").remembers("백업 뒤에")
    devices.rounds("노트북", "server")
    first = replica(devices, "노트북")
    refill(devices.home("노트북").root, backup)
    devices.rounds("노트북", "server")
    assert replica(devices, "노트북") != first
    assert devices.at("server").types("erase", wrong, "--yes").code == 0
    devices.rounds("server", "노트북", "server", "노트북")
    assert waiting(devices) == waiting(devices, "노트북") == {first}
    assert "sync retire REPLICA" in said(devices)
    assert devices.at("노트북").types("sync", "retire", replica(devices, "노트북"), "--yes").code == 48
    assert devices.at("노트북").types("sync", "retire", first[:8], "--yes").code == 0
    devices.rounds("노트북", "server")
    assert waiting(devices) == waiting(devices, "노트북") == set()
    assert [one["retired"] for one in devices.at("server").gets("sync", "status")["devices"]] == [False, False]
    assert len(devices.digests("노트북", "server")) == 1


def test_a_moved_directory_is_not_taken_for_one_that_replaced_another(devices: Devices) -> None:
    wrong = devices.at("노트북").remembers(TEXT)
    devices.home("노트북").root.rename(devices.home("moved").root)
    devices.rounds("moved")  # the same directory, at another path
    shutil.copytree(devices.home("moved").root, devices.home("노트북").root)
    devices.rounds("노트북", "server", "moved")
    moved, copy = replica(devices, "moved"), replica(devices, "노트북")
    assert moved != copy
    assert devices.at("server").types("erase", wrong, "--yes").code == 0
    assert waiting(devices) >= {moved, copy}


def test_a_directory_restored_from_before_its_first_word_still_answers_for_what_it_published(
    devices: Devices,
) -> None:
    new = devices.at("new")
    assert new.types("key", "export").code == 0
    shutil.copytree(devices.home("new").root, devices.root / "backup")
    devices.share("노트북", "new")
    wrong = devices.at("new").remembers(TEXT)
    devices.rounds("new", "노트북")
    first = replica(devices, "new")
    packs = {path for path in devices.files() if path.parent.name == first and not path.name.startswith("9-")}
    assert packs
    restore(devices, "new", devices.root / "backup")
    devices.share("노트북", "new")
    devices.rounds("new", "노트북", "new")
    second = replica(devices, "new")
    assert second != first
    assert not list(devices.home("new").segments.glob(f"*{first}*"))
    checks = [one for one in devices.at("new").types("doctor", "--json").json["items"] if one["name"] == "identity"]
    assert f"it was replica {first[:8]} before" in checks[0]["text"]
    assert devices.at("new").types("erase", wrong, "--yes").code == 0
    devices.rounds("new", "노트북", "server", "new", "노트북")
    assert not packs & devices.files()  # nobody else would ever take the text out of them
    assert waiting(devices, "노트북") == set()
    assert len(devices.digests("new", "노트북", "server")) == 1
