from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memorize.bootstrap import App, open_app
from memorize.model import Draft
from memorize.sync.handshake import Role
from memorize.sync.peer import PeerReport, sync_stream
from memorize.sync.ssh import PREAMBLE, Child
from tests.cli.kit import Person
from tests.sync.devices import PATIENCE_S, device, ring, serve_words
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
