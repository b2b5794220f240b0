"""Keys at the command line: carrying them to another device, joining it, renewing them."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memorize.agents.hookfiles import put_hook_files
from memorize.bootstrap import keeping, open_app
from memorize.bootstrap.scoping import Scoping
from memorize.log.redact import redact
from memorize.log.segments import frame_event, read_segment
from memorize.paths import Home
from memorize.sync.port import Envelope
from tests.cli.kit import Person, Said

TEXT = "환불은 멱등 키로 한다"


class Line:
    """Standard input with something in it."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())

    def isatty(self) -> bool:
        return False


def _gives(person: Person, monkeypatch: pytest.MonkeyPatch, text: str, *more: str) -> Said:
    monkeypatch.setattr(sys, "stdin", Line(text))
    return person.types("key", "import", *more)


@pytest.fixture
def other(person: Person, tmp_path: Path) -> Home:
    """Another device of the same person."""
    home = Home(tmp_path / "다른 기기")
    put_hook_files(home, sys.executable)
    (home.hook / "nodaemon").touch()
    return home


@contextmanager
def _at(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as there:
        there.setenv("MEMORIZE_HOME", str(home.root))
        yield


def _line(person: Person) -> str:
    said = person.types("key", "export")
    assert said.code == 0
    assert said.out.count("\n") == 1
    return said.out


def _files(home: Home) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in home.keys.iterdir()}
    return found | {"identity": home.identity.read_bytes()}


def _log(person: Person) -> list[dict[str, Any]]:
    items = person.gets("log", "--limit", "1000")["items"]
    assert isinstance(items, list)
    return items


def test_export_prints_one_line_and_nothing_else(person: Person) -> None:
    said = person.types("key", "export")
    assert said.out.startswith("memorize-key-1:")
    assert said.err == ""
    assert person.types("key", "export").out == said.out


def test_keys_are_for_this_user_only(person: Person, monkeypatch: pytest.MonkeyPatch, other: Home) -> None:
    person.remembers(TEXT)
    with _at(other, monkeypatch):
        line = _line(person)
    assert _gives(person, monkeypatch, line).code == 0
    for path in person.home.keys.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(person.home.keys.stat().st_mode) == 0o700


def test_a_device_without_a_past_takes_over_the_store(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _at(other, monkeypatch):
        person.remembers("there")
        line = _line(person)
        store = person.gets("key", "show")["store"]
    said = _gives(person, monkeypatch, line)
    assert said.code == 0
    assert person.gets("key", "show")["store"] == store
    assert not [event for event in _log(person) if event["kind"] == "store.joined"]


def test_a_device_with_a_past_joins_keeps_it_and_writes_to_the_other_store(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = person.remembers(TEXT)
    before = person.gets("key", "show")
    with _at(other, monkeypatch):
        person.remembers("배포는 금요일에 하지 않는다")
        line = _line(person)
        theirs = person.gets("key", "show")
    said = _gives(person, monkeypatch, line)
    assert "joined store" in said.out
    after = person.gets("key", "show")
    assert after["store"] == theirs["store"]
    assert after["key"] == theirs["key"]
    assert [one["key"] for one in after["older"]] == [before["key"]]
    assert person.types("show", mine[:8]).code == 0
    joined = [event for event in _log(person) if event["kind"] == "store.joined"]
    assert len(joined) == 1
    new = person.remembers("나중에 온 것")
    stores = _stores(person.home)
    assert stores[mine] == before["store"]
    assert stores[new] == theirs["store"]
    assert person.types("verify").code == 0


def _stores(home: Home) -> dict[str, str]:
    with_stores = {}
    for path in home.segments.iterdir():
        app = open_app({"MEMORIZE_HOME": str(home.root)})
        found = read_segment(app.files, str(path))
        assert found.header is not None
        for frame in found.frames:
            if frame.type == 1:
                event = frame_event(frame)
                assert event.header.store == found.header.store, "a segment is of one store"
                with_stores[event.id.hex()] = event.header.store.hex()
    return with_stores


def test_importing_the_same_line_again_changes_nothing(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.remembers(TEXT)
    with _at(other, monkeypatch):
        line = _line(person)
    assert _gives(person, monkeypatch, line).code == 0
    before, events = _files(person.home), len(_log(person))
    said = _gives(person, monkeypatch, line)
    assert said.code == 0
    assert "nothing was changed" in said.out
    assert (_files(person.home), len(_log(person))) == (before, events)


def test_a_join_that_was_cut_short_is_mended_by_doing_it_again(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.remembers(TEXT)
    identity = person.home.identity.read_bytes()
    with _at(other, monkeypatch):
        line = _line(person)
        store = person.gets("key", "show")["store"]
    assert _gives(person, monkeypatch, line).code == 0
    person.home.identity.write_bytes(identity)  # as if it had never been replaced
    assert "joined store" in _gives(person, monkeypatch, line).out
    assert person.gets("key", "show")["store"] == store


def test_importing_back_a_store_that_was_left_says_so_and_changes_nothing(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.remembers(TEXT)
    old = _line(person)
    with _at(other, monkeypatch):
        line = _line(person)
    assert _gives(person, monkeypatch, line).code == 0
    before = _files(person.home)
    said = _gives(person, monkeypatch, old)
    assert "has already gone on" in said.out
    assert _files(person.home) == before


def test_two_devices_that_each_imported_the_other_end_in_one_store(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.remembers(TEXT)
    mine = _line(person)
    with _at(other, monkeypatch):
        person.remembers("거기")
        theirs = _line(person)
        assert "joined" in _gives(person, monkeypatch, mine).out
        crossed = _line(person)
    assert "joined" in _gives(person, monkeypatch, theirs).out
    assert _gives(person, monkeypatch, crossed).code == 0
    settled = _line(person)
    with _at(other, monkeypatch):
        assert _gives(person, monkeypatch, settled).code == 0
        there = person.gets("key", "show")
    here = person.gets("key", "show")
    assert (here["store"], here["key"]) == (there["store"], there["key"])
    assert here["store"] == min(here["joined"])


@pytest.mark.parametrize("text", ["", "\n", "memorize-key-1:", "내 열쇠\n", "memorize-key-1:AAAA\n", "\0" * 70_000])
def test_a_wrong_line_is_refused_and_changes_nothing(
    person: Person, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    person.remembers(TEXT)
    before = _files(person.home)
    said = _gives(person, monkeypatch, text)
    assert said.code == 50
    assert said.out == ""
    assert _files(person.home) == before


def test_a_cut_line_is_refused_and_changes_nothing(
    person: Person, other: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.remembers(TEXT)
    before = _files(person.home)
    with _at(other, monkeypatch):
        line = _line(person).strip()
    for end in range(0, len(line), 7):
        assert _gives(person, monkeypatch, line[:end]).code == 50
    assert _files(person.home) == before


def test_the_line_is_no_argument(person: Person) -> None:
    assert person.types("key", "import", "memorize-key-1:AAAA").code == 2


def test_show_tells_no_secret(person: Person) -> None:
    person.types("key", "rotate")
    shown = json.dumps(person.gets("key", "show")) + person.types("key", "show").out
    for path in person.home.keys.glob("*.key"):
        assert path.read_bytes().hex() not in shown


@pytest.mark.parametrize("form", ["{}", "{}\n", "echo {} | memorize key import", "KEY='{}'", "말하자면 {}입니다"])
def test_a_line_that_an_agent_sees_does_not_come_into_the_log(person: Person, form: str) -> None:
    """Whoever has an agent run "key export" would else have the keys in what is synchronised."""
    line = _line(person).strip()
    shown = redact(form.format(line))
    assert line[20:60] not in shown
    assert "[redacted:" in shown


def test_after_a_rotation_both_keys_are_there_and_the_key_file_is_the_new_one(person: Person) -> None:
    before = person.gets("key", "show")
    made = person.gets("key", "rotate")
    after = person.gets("key", "show")
    assert after["key"] == made["key"] != before["key"]
    assert after["generation"] == 1
    assert [one["key"] for one in after["older"]] == [before["key"]]
    app = open_app(os.environ)
    ring = keeping.keyring(app)
    assert (person.home.keys / f"{after['store']}.key").read_bytes() == ring.current.secret


def test_a_lost_ring_leaves_the_current_key(person: Person) -> None:
    person.types("key", "rotate")
    key = person.gets("key", "show")["key"]
    (person.home.keys / "ring.json").unlink()
    assert person.gets("key", "show")["key"] == key


def test_a_damaged_ring_is_said_and_never_written_over(person: Person) -> None:
    person.types("key", "rotate")
    ring = person.home.keys / "ring.json"
    ring.write_text("{}", encoding="utf-8")
    assert person.types("key", "rotate").code == 51
    assert person.types("remember", TEXT).code == 0
    assert ring.read_text(encoding="utf-8") == "{}"


def test_a_project_with_a_scope_has_its_bodies_under_its_own_key(person: Person, tmp_path: Path) -> None:
    mine = person.remembers(TEXT)
    assert person.gets("key", "scope", "on")["changed"]
    assert not person.gets("key", "scope", "on")["changed"]
    assert person.types("forget", mine, "--reason", "비밀이 있었다").code == 0
    retraction = next(one["id"] for one in _log(person) if one["kind"] == "memory.retracted")
    app = open_app(os.environ)
    ring = keeping.keyring(app)
    scoping = Scoping(app, ring)
    key = ring.scope_for(person.gets("key", "show")["scopes"][0]["project"])
    assert key is not None
    held = _envelopes(person.home)
    assert scoping.scope_of(held[mine]) == (key.id, key.secret)
    assert scoping.scope_of(held[retraction]) == (key.id, key.secret), "its reason speaks of the project"
    hello = next(one["id"] for one in _log(person) if one["kind"] == "device.hello")
    assert scoping.scope_of(held[hello]) is None
    assert scoping.scope_of(held[mine]._replace(body=None)) is None
    assert person.gets("key", "scope", "off")["on"] is False
    assert Scoping(app, keeping.keyring(app)).scope_of(held[mine]) is None
    app.close()


def _envelopes(home: Home) -> dict[str, Envelope]:
    found = {}
    app = open_app({"MEMORIZE_HOME": str(home.root)})
    for path in home.segments.iterdir():
        for frame in read_segment(app.files, str(path)).frames:
            if frame.type == 1:
                event = frame_event(frame)
                found[event.id.hex()] = Envelope(event.id, event.header.lamport, frame.header, frame.body)
    return found
