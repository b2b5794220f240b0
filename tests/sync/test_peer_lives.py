"""What happens to state directories, and what a peer makes of it: real logs and indexes, sessions in this process."""

from __future__ import annotations

import shutil
from pathlib import Path

from memorize.bootstrap import App, open_app
from memorize.model import Draft
from memorize.sync.handshake import Role
from memorize.sync.peer import session
from memorize.sync.port import Envelope
from memorize.sync.session import Outcome
from tests.sync.devices import device, ring
from tests.sync.peers import Pen, Traffic, talk


def captures(app: App, *texts: str) -> None:
    app.append([Draft("observed.note", {"text": text}, number) for number, text in enumerate(texts)])


def meets(one: App, other: App) -> tuple[Outcome, Traffic]:
    """Let two devices speak until they are done; both must hold the same then."""
    for app in (one, other):
        app.reader()  # as every verb does: makes an index anew that is missing
    first = session(one.holding, ring(one), Role.INITIATOR)
    second = session(other.holding, ring(other), Role.RESPONDER)
    traffic = talk(first, second)
    assert first.outcome is not None
    assert second.outcome is not None
    assert first.outcome.converged, first.outcome
    assert second.outcome.converged, second.outcome
    assert one.holding.digest() == other.holding.digest()
    assert one.reader().digest() == other.reader().digest()
    return first.outcome, traffic


def notes(app: App) -> list[str]:
    """Return the words of all notes that a device holds."""
    connection = app.reader().connection
    rows = connection.execute("select id from events where kind = 'observed.note'").fetchall()
    found = [app.reader().event(row[0]) for row in rows]
    return sorted(event.payload["text"] for event in found if event is not None and event.payload is not None)


def copied(app: App, to: Path) -> Path:
    app.close()
    shutil.copytree(app.home.root, to, symlinks=True)
    return to


def reopened(root: Path) -> App:
    return open_app({"MEMORIZE_HOME": str(root)})


def test_a_state_directory_that_was_restored_loses_nothing_and_is_refused_nothing(tmp_path: Path) -> None:
    mine = device(tmp_path / "mine")
    peer = device(tmp_path / "peer", mine)
    captures(mine, "하나")
    backup = copied(mine, tmp_path / "backup")
    captures(mine, *(f"after the backup {number}" for number in range(5)))
    meets(mine, peer)
    mine.close()
    shutil.rmtree(mine.home.root)
    shutil.copytree(backup, mine.home.root)
    restored = reopened(mine.home.root)
    captures(restored, *(f"after the restore {number}" for number in range(5)))
    meets(restored, peer)
    assert len(notes(restored)) == len(notes(peer)) == 11
    captures(restored, "그리고 계속")
    meets(peer, restored)
    assert "그리고 계속" in notes(peer)


def test_a_cloned_state_directory_goes_on_beside_its_twin(tmp_path: Path) -> None:
    mine = device(tmp_path / "mine")
    captures(mine, "공통")
    peer = device(tmp_path / "peer", mine)
    twin = reopened(copied(mine, tmp_path / "clone"))
    mine = reopened(mine.home.root)
    for number in range(4):
        captures(mine, f"mine {number}")
        captures(twin, f"쌍둥이 {number}")
    meets(mine, peer)
    meets(twin, peer)
    meets(mine, peer)
    meets(mine, twin)
    assert len(notes(mine)) == len(notes(twin)) == len(notes(peer)) == 9


def test_two_events_with_one_number_of_one_writer_are_kept_and_passed_on(tmp_path: Path) -> None:
    pen = Pen(writer=b"\x0a" * 16)
    one, same = pen.write("한쪽"), Pen(writer=b"\x0a" * 16).write("다른 쪽")
    places = [device(tmp_path / "a")]
    places += [device(tmp_path / name, places[0]) for name in ("b", "c")]
    places[0].holding.receive([one])
    places[1].holding.receive([same])
    meets(places[0], places[1])
    meets(places[1], places[2])
    assert set(notes(places[2])) >= {"한쪽", "다른 쪽"}


def test_without_its_index_a_device_sends_and_gets_nothing_twice(tmp_path: Path) -> None:
    mine = device(tmp_path / "mine")
    peer = device(tmp_path / "peer", mine)
    captures(mine, *(f"note {number}" for number in range(30)))
    meets(mine, peer)
    mine.close()
    for path in mine.home.root.glob("index.sqlite*"):
        path.unlink()
    again = reopened(mine.home.root)
    outcome, traffic = meets(again, peer)
    assert (outcome.sent, outcome.received, traffic.turns) == (0, 0, 3)


def test_what_only_a_relay_has_of_a_device_that_is_gone_reaches_everybody(tmp_path: Path) -> None:
    gone = device(tmp_path / "gone")
    relay = device(tmp_path / "relay", gone)
    late = device(tmp_path / "late", gone)
    captures(gone, "마지막 말")
    meets(gone, relay)
    gone.close()
    shutil.rmtree(gone.home.root)
    meets(late, relay)
    assert "마지막 말" in notes(late)


def test_a_kind_that_nobody_knows_yet_is_passed_on_byte_for_byte(tmp_path: Path) -> None:
    event: Envelope = Pen().write("나중에", "later.kind", detail=[1, {"깊이": "x"}])
    one = device(tmp_path / "one")
    other = device(tmp_path / "other", one)
    one.holding.receive([event._replace(signature=b"s" * 64)])
    meets(one, other)
    assert list(other.holding.get([event.id])) == [event._replace(signature=b"s" * 64)]
