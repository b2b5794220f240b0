from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from memorize.bootstrap import App, open_app
from memorize.model import Draft
from memorize.sync.handshake import Role
from memorize.sync.peer import PeerReport, sync_peer, sync_stream
from memorize.sync.ssh import PREAMBLE, Child
from tests.cli.kit import Person
from tests.sync.devices import PATIENCE_S, Sshd, device, ring, serve_command, serve_words, sshd
from tests.sync.peers import Pen


def served(app: App, other: Path) -> PeerReport:
    return sync_stream(Child([*serve_words(other), "--stdio"]).stream, app.holding, ring(app), Role.INITIATOR)


def says(root: Path, data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the verb with these bytes as the other side, which then closes."""
    return subprocess.run([*serve_words(root), "--stdio"], input=data, capture_output=True, timeout=PATIENCE_S)


def test_what_was_remembered_on_either_device_is_found_on_both(tmp_path: Path, person: Person) -> None:
    person.remembers("환불은 14일 안에 한다")
    mine = open_app({"MEMORIZE_HOME": str(person.home.root)})
    other = device(tmp_path / "다른 기기", mine)
    other.holding.receive([Pen().write("written elsewhere")])
    report = served(mine, other.home.root)
    assert report.converged, report
    assert report.received >= 1
    assert served(mine, other.home.root).sent == 0
    assert mine.holding.digest() == other.holding.digest()
    assert mine.reader().digest() == other.reader().digest()
    found = other.search("환불", None)
    assert any("14일" in hit.row.text for hit in found.hits)


def test_what_lies_in_the_spool_of_the_other_side_is_served_too(tmp_path: Path) -> None:
    mine = device(tmp_path / "mine")
    other = device(tmp_path / "other", mine)
    other.put([Draft("observed.note", {"text": "아직 스풀에"})])
    other.close()
    before = mine.holding.digest().events
    report = served(mine, other.home.root)
    assert report.converged
    assert mine.holding.digest().events > before


def test_nothing_but_the_exchange_is_on_standard_output(tmp_path: Path) -> None:
    mine = device(tmp_path / "mine")
    done = says(mine.home.root, b"")
    assert done.stdout == PREAMBLE
    assert b"closed the connection" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\5\1\xc1\xc1\xc1\xc1", bytes(5_000)])
def test_somebody_who_speaks_something_else_is_told_so_and_left(tmp_path: Path, data: bytes) -> None:
    mine = device(tmp_path / "mine")
    done = says(mine.home.root, data)
    assert done.stdout.startswith(PREAMBLE)
    assert b"protocol" in done.stdout
    assert b"does not keep to the protocol" in done.stderr


def test_without_the_option_it_only_says_what_it_is_for(person: Person) -> None:
    said = person.types("serve")
    assert said.code == 2
    assert "--stdio" in said.err
    assert "memorize sync ssh://" in person.types("serve", "--help").out


def visits(root: Path) -> tuple[dict[str, Any], str]:
    """Return what ``sync status`` says on a machine, as data and in words."""
    words = [*serve_words(root)[:-1], "sync", "status"]
    told = subprocess.run([*words, "--json"], capture_output=True, timeout=PATIENCE_S, check=True)
    return json.loads(told.stdout), subprocess.run(words, capture_output=True, timeout=PATIENCE_S, text=True).stdout


def until_noted(root: Path, count: int) -> tuple[dict[str, Any], str]:
    """The other side is done first; what it came to is written behind it."""
    end = time.monotonic() + PATIENCE_S
    while len((told := visits(root))[0]["visits"]) < count and time.monotonic() < end:
        time.sleep(0.1)
    return told


def over_ssh(server: Sshd, app: App, other: Path) -> PeerReport:
    app.greet()
    command, me = serve_command(other), app.identity.replica
    return sync_peer(server.address, app.holding, ring(app), command=command, options=server.options, me=me)


def test_the_machine_that_was_reached_by_ssh_tells_who_came_and_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: "노트북")
    mine = device(tmp_path / "mine")
    mine.append([Draft("observed.note", {"text": "여기서"})])
    other, stranger = device(tmp_path / "other", mine), device(tmp_path / "stranger")
    root = other.home.root
    other.close()
    assert visits(root)[0]["visits"] == []
    with sshd(tmp_path / "sshd") as server:
        assert over_ssh(server, mine, root).converged
        facts, words = until_noted(root, 1)
        (visit,) = facts["visits"]
        assert (visit["device"], visit["name"]) == (mine.device(), "노트북")
        assert (visit["settled"], visit["address"]) == (True, "127.0.0.1")
        assert visit["received"] >= 2
        assert facts["converged"], facts
        assert f"reached by 노트북 ({mine.device()[:8]}) from 127.0.0.1" in words
        assert "both held the same" in words
        # Nothing new the next time; a stranger is told apart from it, and what hindered him is said.
        assert over_ssh(server, mine, root).converged
        assert not over_ssh(server, stranger, root).converged
        facts, words = until_noted(root, 2)
    assert [(one["name"], one["settled"]) for one in facts["visits"]] == [("", False), ("노트북", True)]
    assert facts["visits"][1]["received"] == 0
    assert "memorize key export" in words
    assert not facts["converged"]
    assert "key import" in facts["why"][0]


def test_what_is_written_after_a_visit_is_not_converged_any_more(tmp_path: Path) -> None:
    mine = device(tmp_path / "mine")
    other = device(tmp_path / "other", mine)
    assert served(mine, other.home.root).converged
    facts, words = until_noted(other.home.root, 1)
    assert facts["converged"]
    assert "reached by a device " in words
    other.append([Draft("observed.note", {"text": "그 뒤에"})])
    assert "new events here since it came" in visits(other.home.root)[0]["why"][0]


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'[{"device": 1}]', b'{"a": []}', b"[" * 50_000])
def test_a_damaged_list_of_visits_hinders_nothing(tmp_path: Path, data: bytes) -> None:
    mine = device(tmp_path / "mine")
    other = device(tmp_path / "other", mine)
    other.home.visits.write_bytes(data)
    assert visits(other.home.root)[0]["visits"] == []
    assert served(mine, other.home.root).converged
    assert len(until_noted(other.home.root, 1)[0]["visits"]) == 1
