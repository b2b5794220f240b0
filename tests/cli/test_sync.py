"""Several devices of one person at the command line, with a folder between them that some tool carries."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from memorize.bootstrap import open_app
from memorize.bootstrap.meeting import own_certificate
from memorize.log.files import RealFiles
from memorize.log.identity import key_path, peek
from memorize.paths import Home
from memorize.sync import asking, peers
from memorize.sync.folder import RealFolder
from memorize.sync.peers import Peer
from tests.cli.kit import Person, Said
from tests.sync.hung import hung

KEPT = "환불은 결제의 멱등 키를 다시 쓴다"


class Devices:
    """One person at several machines: each has a state directory and a name of its own."""

    def __init__(self, person: Person, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.person = person
        self.root = root
        self.folder = root / "동기화 folder"
        self.folder.mkdir()
        self._patch = monkeypatch

    def home(self, name: str) -> Home:
        return Home(self.root / f"state of {name}")

    def at(self, name: str) -> Person:
        """Sit down at a machine."""
        self._patch.setenv("MEMORIZE_HOME", str(self.home(name).root))
        self._patch.setattr(platform, "node", lambda: name)
        return self.person

    def give(self, text: str) -> None:
        """Have the next verb find a text on its standard input."""
        self._patch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode()), encoding="utf-8"))

    def share(self, first: str, *others: str) -> None:
        """Carry the key of the first device to the others, and add the folder on all of them."""
        line = self.at(first).types("key", "export").out
        for other in others:
            self.give(line)
            assert self.at(other).types("key", "import").code == 0
        for name in (first, *others):
            assert self.at(name).types("sync", "add", "folder", str(self.folder)).code == 0

    def rounds(self, *names: str) -> list[Said]:
        return [self.at(name).types("sync") for name in names]

    def digests(self, *names: str) -> set[str]:
        return {self.at(name).types("digest").out for name in names}

    def files(self) -> set[Path]:
        return {path for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def devices(person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Devices:
    return Devices(person, tmp_path, monkeypatch)


def test_two_devices_that_both_have_a_past_become_one_memory(devices: Devices) -> None:
    devices.at("노트북").remembers(KEPT, "--kind", "decision")
    devices.at("desktop").remembers("The staging database is read-only")
    devices.share("노트북", "desktop")
    assert [said.code for said in devices.rounds("노트북", "desktop", "노트북")] == [0, 0, 0]
    assert len(devices.digests("노트북", "desktop")) == 1
    for name in ("노트북", "desktop"):
        texts = {item["text"] for item in devices.at(name).gets("list", "--all-projects")["items"]}
        assert texts == {KEPT, "The staging database is read-only"}
        facts = devices.at(name).gets("sync", "status")
        assert facts["converged"], facts
        assert {(one["name"], one["here"]) for one in facts["devices"]} == {
            ("노트북", name == "노트북"),
            ("desktop", name == "desktop"),
        }


def test_a_second_round_carries_nothing(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a", "b", "a", "b")
    before = devices.files()
    report = devices.at("a").gets("sync")
    assert [(one["sent"], one["received"], one["settled"]) for one in report["items"]] == [(0, 0, True)]
    assert devices.files() == before


def test_status_and_doctor_say_what_was_not_handed_out_yet(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    assert "no round yet" in devices.at("a").types("sync", "status").out
    devices.rounds("a", "b")
    assert "converged (digest" in devices.at("a").types("status").out
    devices.at("a").remembers("one more")
    facts = devices.at("a").gets("sync", "status")
    assert not facts["converged"]
    assert "new events here" in facts["why"][0]
    checks = {one["name"]: one for one in devices.at("a").types("doctor", "--json").json["items"]}
    assert checks["sync"]["level"] == "ok"


def test_what_was_wiped_from_the_folder_is_handed_out_again(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a", "b", "a")
    shutil.rmtree(devices.folder / "memorize")
    devices.rounds("a", "b")
    assert devices.files()
    devices.share("a", "c")
    devices.rounds("c", "a", "b")
    assert len(devices.digests("a", "b", "c")) == 1


def test_a_device_that_has_nothing_to_tell_is_known_to_the_others(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "조용한 기계")
    devices.rounds("a", "조용한 기계", "a")
    names = {one["name"] for one in devices.at("a").gets("sync", "status")["devices"]}
    assert names == {"a", "조용한 기계"}


def test_an_erasure_is_carried_out_and_acknowledged_everywhere(devices: Devices) -> None:
    devices.at("a").remembers("고객 홍길동의 주소")
    devices.at("a").remembers(KEPT)
    devices.share("a", "b", "c")
    devices.rounds("a", "b", "c")
    assert devices.at("b").types("erase", "--matching", "홍길동", "--yes").code == 0
    devices.rounds("b", "a", "c", "b")
    status = devices.at("b").gets("erase", "--status")
    assert {one["name"]: one["open"] for one in status["items"]} == {"a": [], "b": [], "c": []}
    word = "홍길동".encode()
    for name in ("a", "b", "c"):
        lying = [path for path in devices.home(name).root.rglob("*") if path.is_file() and word in path.read_bytes()]
        assert lying == []
        assert devices.at(name).types("verify", "--deep").code == 0
    devices.rounds("a", "b", "c")
    assert len(devices.digests("a", "b", "c")) == 1


def test_a_folder_that_is_gone_makes_a_round_wait_and_loses_nothing(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a", "b", "a")
    before = devices.digests("a", "b")
    devices.folder.rename(devices.root / "elsewhere")
    said = devices.at("a").types("sync")
    assert said.code == 42
    assert "not there" in said.err
    assert "hint:" in said.err
    assert not devices.folder.exists()
    assert devices.digests("a", "b") == before
    (devices.root / "elsewhere").rename(devices.folder)
    assert devices.at("a").types("sync").code == 0


def test_a_folder_that_may_not_be_mounted_is_not_written_to_until_it_is_added_once_more(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.share("laptop")
    devices.at("laptop").types("remember", KEPT)
    devices.rounds("laptop")
    shutil.move(devices.folder, devices.root / "somewhere else")
    devices.folder.mkdir()
    monkeypatch.setattr(RealFolder, "place", lambda _: 12345)
    [said] = devices.rounds("laptop")
    assert said.code == 42
    assert "perhaps it is not mounted" in said.err
    assert not devices.files()
    assert devices.at("laptop").types("sync", "add", "folder", str(devices.folder)).code == 0
    assert [said.code for said in devices.rounds("laptop")] == [0]
    assert devices.files()


def test_a_restored_device_has_told_all_of_itself_after_one_round(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a", "b", "a")
    home, kept = devices.home("a").root, devices.root / "backup"
    shutil.copytree(home, kept)
    devices.at("a").remembers("백업 뒤에 적은 것")
    devices.rounds("a", "b")
    for entry in home.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(kept, home, dirs_exist_ok=True)
    devices.rounds("a", "b")
    held = devices.digests("a", "b")
    assert len(held) == 1
    devices.rounds("a", "b")
    assert devices.digests("a", "b") == held


@pytest.mark.parametrize("told", ["[1]", '{"%s": {"settled": 1, "at_ms": "어제"}}', '{"%s": {}}', "{", '{"%s": []}'])
def test_what_is_written_down_of_the_last_rounds_may_be_anything(devices: Devices, told: str) -> None:
    devices.share("a")
    devices.rounds("a")
    path = devices.home("a").receipts / "sync.json"
    path.write_text(told.replace("%s", str(devices.folder)), encoding="utf-8")
    assert "no round yet" in devices.at("a").types("sync", "status").out
    assert "no round yet" in devices.at("a").types("doctor").out
    assert devices.rounds("a")[0].code == 0
    assert devices.at("a").gets("sync", "status")["targets"][0]["settled"]


def test_a_note_of_a_round_that_has_fewer_fields_is_shown_all_the_same(devices: Devices) -> None:
    devices.share("a")
    devices.rounds("a")
    path = devices.home("a").receipts / "sync.json"
    path.write_text(json.dumps({str(devices.folder): {"settled": True, "at_ms": 1}}), encoding="utf-8")
    said = devices.at("a").types("sync", "status")
    assert (said.code, "all taken in" in said.out) == (0, True), said
    assert devices.at("a").types("status").code == devices.at("a").types("doctor").code == 0


@pytest.mark.parametrize(
    "content", ["", "{", "null", "[]", '{"targets": 3}', '{"peers": [{"name": "책상"}]}', "\ufeff"]
)
@pytest.mark.parametrize("which", ["sync", "peers"])
def test_a_damaged_list_of_what_is_synced_with_stops_nothing_else(devices: Devices, which: str, content: str) -> None:
    devices.share("a")
    devices.rounds("a")
    person, home = devices.at("a"), devices.home("a")
    path, verb, again = {
        "sync": (home.sync, ("sync",), ("sync", "add", "folder", str(devices.folder))),
        "peers": (home.peers, ("peer", "list"), ("peer", "list")),
    }[which]
    path.write_text(content, encoding="utf-8")
    person.remembers(KEPT)
    assert KEPT in person.types("list").out
    status = person.types("status")
    assert (status.code, str(path) in status.out) == (0, True), status
    assert str(path) in person.types("doctor").out
    refused = person.types(*verb)
    assert refused.code == 47, refused
    assert "move the file away" in refused.err
    assert path.read_text(encoding="utf-8") == content
    path.rename(home.root / "away")
    assert person.types(*again).code == 0
    assert devices.rounds("a")[0].code == 0
    assert person.gets("sync", "status")["converged"]


def test_a_device_that_is_only_paired_is_told_where_to_look(devices: Devices) -> None:
    person, home = devices.at("a"), devices.home("a")
    assert "sync add folder" in person.types("sync").out
    peers.change(home, RealFiles(), lambda _: [peers.Peer("책상", b"certificate")])
    said = person.types("sync")
    assert said.code == 0
    assert "memorize peer list" in said.out


def test_status_counts_what_came_from_others_as_part_of_the_log(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a", "b")
    kept = [*devices.home("b").segments.iterdir(), *devices.home("b").received.iterdir()]
    assert devices.at("b").gets("status")["log_bytes"] == sum(path.stat().st_size for path in kept)
    assert devices.home("b").received in {path.parent for path in kept}


def half_synced(devices: Devices) -> None:
    """Have the folder hold a pack that is cut, one of another key, one that is gone, and something else."""
    devices.at("a").remembers("first")
    devices.share("a", "b")
    for number in range(3):
        devices.at("a").remembers(f"{KEPT} {number}")
        devices.rounds("a")
    devices.at("stranger").remembers("not yours")
    devices.at("stranger").types("sync", "add", "folder", str(devices.folder))
    devices.rounds("stranger")
    cut, gone, *_ = sorted(devices.folder.glob(f"memorize/{peek(devices.home('a'), RealFiles()).store.hex()}/*/*.mzp"))
    cut.write_bytes(cut.read_bytes()[:300])
    gone.unlink()
    cut.with_name("0-0123456789abcdef.mzp").write_bytes(os.urandom(700))


def test_looking_at_a_folder_that_is_half_there_writes_nothing(devices: Devices) -> None:
    half_synced(devices)
    assert devices.rounds("b")[0].code == 42
    held, files = devices.digests("b"), devices.files()
    log = {path: path.read_bytes() for path in devices.home("b").root.rglob("*.mzs")}
    for verb in (("doctor",), ("sync", "status"), ("status",), ("erase", "--status"), ("verify",), ("projects",)):
        assert devices.at("b").types(*verb).code == 0, verb
    assert devices.digests("b") == held
    assert {path: path.read_bytes() for path in devices.home("b").root.rglob("*.mzs")} == log
    assert devices.files() == files


def test_placeholders_are_told_with_their_number_and_size(devices: Devices) -> None:
    devices.share("a", "b")
    for number in range(3):
        devices.at("a").remembers(f"{KEPT} {number}")
        devices.rounds("a")
    packs = sorted(devices.folder.glob("memorize/*/*/*.mzp"), key=lambda path: path.stat().st_mtime_ns)
    if not packs[0].stat().st_blocks:
        pytest.skip("this file system tells of no blocks")
    kept = {path: path.read_bytes() for path in packs[1:]}
    for path, data in kept.items():
        path.unlink()
        with path.open("wb") as stub:
            stub.truncate(1_000_000 + len(data))
    os.sync()
    assert devices.rounds("b")[0].code == 42
    words = f"{len(kept)} packs of 2.0 MB are only placeholders"
    for verb in (("sync", "status"), ("doctor",), ("status",)):
        said = devices.at("b").types(*verb).out
        assert words in said, said
        assert "not come whole" not in said
    for path, data in kept.items():
        path.write_bytes(data)
    assert [said.code for said in devices.rounds("b", "a")] == [0, 0]
    assert len(devices.digests("a", "b")) == 1


def test_a_damaged_pack_comes_again_when_it_is_deleted_as_the_message_says(devices: Devices) -> None:
    devices.share("a", "b")
    devices.at("a").remembers(KEPT)
    devices.rounds("a")
    (pack,) = devices.files()
    data = bytearray((devices.folder / pack).read_bytes())
    data[len(data) // 2] ^= 1
    (devices.folder / pack).write_bytes(data)
    said = devices.at("b").types("sync")
    assert said.code == 42
    assert "damaged: delete" in said.err
    (devices.folder / pack).unlink()
    assert {said.code for said in devices.rounds("a", "b", "a")} == {0}
    assert len(devices.digests("a", "b")) == 1


def test_a_device_with_another_key_of_the_same_store_writes_nothing(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a")
    before = devices.files()
    home = devices.home("b")
    found = peek(home, RealFiles())
    assert found is not None
    shutil.rmtree(home.keys)
    home.keys.mkdir()
    key_path(home, found.store).write_bytes(os.urandom(32))
    said = devices.at("b").types("sync")
    assert said.code == 42
    assert "key" in said.err
    assert devices.files() == before
    report = devices.at("b").types("sync", "--json")
    assert report.json["items"][0]["refused"] == 1


def lose_keys(devices: Devices, name: str, *, moved: bool) -> None:
    """Put a device back from a backup that left out what is secret; ``moved``: into another directory."""
    root = devices.home(name).root
    shutil.rmtree(devices.home(name).keys)
    if moved:
        root.rename(root.with_name("away"))
        shutil.copytree(root.with_name("away"), root)


@pytest.mark.parametrize("moved", [False, True])
def test_a_device_that_lost_its_keys_seals_nothing_until_it_has_them_again(devices: Devices, moved: bool) -> None:
    devices.share("a", "b")
    devices.at("b").remembers(KEPT)
    devices.rounds("a", "b", "a")
    lose_keys(devices, "b", moved=moved)
    devices.at("b").remembers("열쇠 없이")
    before = devices.files()
    said = devices.rounds("b")[0]
    assert said.code == 42
    assert "memorize key import" in said.err
    assert "memorize key import" in devices.at("b").types("doctor").out
    assert devices.at("b").types("key", "show").code == 55
    assert devices.files() == before
    devices.give(devices.at("a").types("key", "export").out)
    assert devices.at("b").types("key", "import").code == 0
    assert [said.code for said in devices.rounds("b", "a", "b")] == [0, 0, 0]
    assert len(devices.digests("a", "b")) == 1
    assert "열쇠 없이" in devices.at("a").types("list", "--all-projects").out


@pytest.mark.parametrize("moved", [False, True])
def test_keys_that_nobody_has_any_more_are_made_anew_when_asked_for(devices: Devices, moved: bool) -> None:
    devices.share("a")
    devices.at("a").remembers(KEPT)
    devices.rounds("a")
    lose_keys(devices, "a", moved=moved)
    said = devices.at("a").types("key", "rotate")
    assert said.code == 0
    assert 'delete the folder "memorize"' in said.err
    shutil.rmtree(devices.folder / "memorize")
    devices.at("a").remembers("그 뒤에")
    devices.rounds("a")
    devices.share("a", "b")
    devices.rounds("a", "b", "a")
    assert len(devices.digests("a", "b")) == 1


def test_a_device_that_lost_its_keys_may_join_somebody_else(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    lose_keys(devices, "a", moved=False)
    devices.at("b").remembers("another memory")
    devices.share("b", "a")
    assert [said.code for said in devices.rounds("a", "b", "a")] == [0, 0, 0]
    assert len(devices.digests("a", "b")) == 1


def test_the_packs_of_somebody_else_are_left_alone(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.at("stranger").remembers("not yours")
    for name in ("a", "stranger"):
        devices.at(name).types("sync", "add", "folder", str(devices.folder))
    assert [said.code for said in devices.rounds("a", "stranger", "a")] == [0, 0, 0]
    facts = devices.at("a").gets("sync", "status")
    assert facts["targets"][0]["foreign"] == 1
    assert "1 pack in it belongs to another memory" in devices.at("a").types("sync", "status").out
    assert "memorize key import" in devices.at("stranger").types("sync").err
    assert "belongs to another memory" in devices.at("a").types("doctor").out
    assert [item["text"] for item in devices.at("a").gets("list", "--all-projects")["items"]] == [KEPT]


def test_what_a_device_left_of_its_time_before_it_joined_belongs_to_nobody_else(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.at("b").remembers("b 혼자였을 때")
    for name in ("a", "b"):
        devices.at(name).types("sync", "add", "folder", str(devices.folder))
    devices.rounds("a", "b", "a")
    assert devices.at("a").gets("sync", "status")["targets"][0]["foreign"] == 1
    devices.share("a", "b")
    devices.rounds("b", "a", "b")
    assert len(devices.digests("a", "b")) == 1
    assert [devices.at(name).gets("sync", "status")["targets"][0]["foreign"] for name in ("a", "b")] == [0, 0]


def test_nothing_that_is_no_place_to_sync_with_is_added(devices: Devices) -> None:
    person = devices.at("a")
    home = devices.home("a").root
    person.types("version")
    for words in (
        ("folder", str(devices.root / "없는 folder")),
        ("folder", str(home)),
        ("folder", str(devices.root)),
        ("ssh://-oProxyCommand=x",),
        ("folder",),
        ("ftp://host",),
    ):
        said = person.types("sync", "add", *words)
        assert said.code == 40, words
        assert "hint:" in said.err
    assert person.types("sync", "remove", "ssh://nowhere").code == 41
    assert person.types("sync", "--only", "ssh://nowhere").code == 41
    assert person.gets("sync")["total"] == 0


def test_a_place_is_added_once_and_removed_by_its_name(devices: Devices) -> None:
    person = devices.at("a")
    assert person.gets("sync", "add", "folder", str(devices.folder))["added"]
    assert not person.gets("sync", "add", "folder", f"{devices.folder}/")["added"]
    assert person.gets("sync", "add", "ssh://me@desktop:2222")["added"]
    assert len(person.gets("sync", "status")["targets"]) == 2
    assert person.types("sync", "remove", str(devices.folder)).code == 0
    assert [one["where"] for one in person.gets("sync", "status")["targets"]] == ["ssh://me@desktop:2222"]


def test_a_device_that_never_comes_back_is_retired_by_name(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.at("옛 노트북").remembers("an old fact")
    devices.share("a", "옛 노트북")
    devices.rounds("a", "옛 노트북", "a")
    assert devices.at("a").types("sync", "retire", "a", "--yes").code == 48
    unknown = devices.at("a").types("sync", "retire", "누구", "--yes")
    assert (unknown.code, "옛 노트북 (" in unknown.err) == (48, True), unknown
    assert devices.at("a").types("sync", "retire", "옛 노트북", "--yes").code == 0
    assert len(devices.at("a").gets("log", "--kind", "device.retired")["items"]) == 1
    assert [one["retired"] for one in devices.at("a").gets("sync", "status")["devices"] if not one["here"]] == [True]
    assert "retired, last heard" in devices.at("a").types("sync", "status").out
    assert devices.rounds("a", "a")[-1].code == 0
    texts = {item["text"] for item in devices.at("a").gets("list", "--all-projects")["items"]}
    assert texts == {KEPT, "an old fact"}


def test_a_retired_device_that_is_still_paired_is_waited_for_no_more_and_told_how_to_forget(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "옛 노트북")
    devices.rounds("a", "옛 노트북", "a")
    old = open_app({"MEMORIZE_HOME": str(devices.home("옛 노트북").root)})
    met = Peer("옛 노트북", own_certificate(old).der, (), old.identity.device, 1)
    peers.change(devices.home("a"), RealFiles(), lambda known: peers.with_peer(known, met))
    person = devices.at("a")
    facts = person.gets("sync", "status")
    assert not facts["converged"]
    assert [one["retired"] for one in facts["peers"]] == [False]
    said = person.types("sync", "retire", "옛 노트북", "--yes")
    remedy = f"memorize peer remove {met.fingerprint.hex()[:12]}"
    assert remedy in said.err
    devices.rounds("a")
    facts = person.gets("sync", "status")
    assert facts["converged"], facts["why"]
    assert [one["retired"] for one in facts["peers"]] == [True]
    assert remedy in person.types("sync", "status").out
    checks = [one for one in person.types("doctor", "--json").json["items"] if one["name"] == "peer"]
    assert [(one["level"], one["do"]) for one in checks] == [("warn", remedy)]
    assert person.types(*remedy.split()[1:]).code == 0
    assert person.gets("sync", "status")["peers"] == []


def test_what_must_be_asked_is_not_done_where_nobody_can_be_asked(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.at("b").remembers("two")
    devices.share("a", "b")
    devices.rounds("a", "b", "a")
    devices.give("y\n")
    said = devices.at("a").types("sync", "retire", "b")
    assert said.code == 46
    assert "--yes" in said.err
    assert devices.at("a").gets("log", "--kind", "device.retired")["items"] == []


def test_a_pack_that_a_disk_spoilt_is_handed_out_again_by_whoever_made_it(devices: Devices) -> None:
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    devices.rounds("a")
    (path,) = [path for path in devices.files() if path.suffix == ".mzp"]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    said = devices.at("b").types("sync")
    assert said.code == 42
    assert "damaged" in said.err
    said = devices.at("a").types("sync", "--check")
    assert said.code == 0, said
    assert "1 pack of this device had been spoilt" in said.err
    assert "had been spoilt" in devices.at("a").types("sync", "status").out
    assert [one.code for one in devices.rounds("b", "a")] == [0, 0]
    assert len(devices.digests("a", "b")) == 1
    assert "had been spoilt" not in devices.at("a").types("sync", "status").out


def test_a_round_by_hand_says_that_the_folder_does_not_answer(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 1.0)
    devices.at("a").remembers(KEPT)
    devices.share("a", "b")
    with hung(devices.folder):
        said = devices.at("a").types("sync")
        assert said.code == 42
        assert "does not answer" in said.err
        assert "does not answer" in devices.at("a").types("sync", "status").out
    monkeypatch.setattr(asking, "ANSWER_S", 60.0)
    assert [one.code for one in devices.rounds("a", "b", "a")] == [0, 0, 0]
    assert len(devices.digests("a", "b")) == 1
