"""State directories that were restored from a backup, or copied: nothing is lost, nothing is refused, it is told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memorize import model
from memorize.bootstrap import App
from memorize.cli import checks
from memorize.clock import SystemClock
from memorize.config import Config
from memorize.log.identity import COPIED, KNOWN_ELSEWHERE
from memorize.log.verify import CLEAN, verify
from memorize.model import Draft
from memorize.paths import Home
from tests.sync.test_holding import everything, exchange


def started(root: Path) -> App:
    app = App(Home(root), Config(), SystemClock())
    app.ingest()
    return app


def note(app: App, *texts: str) -> list[bytes]:
    return [app.append([Draft(model.OBSERVED_NOTE, {"text": text})])[0] for text in texts]


def texts(app: App) -> set[str]:
    found = app.reader().log(kind=model.OBSERVED_NOTE, limit=1000)
    return {str(event.payload["text"]) for event in found if event.payload}


def refill(root: Path, backup: Path) -> None:
    """Put a backup back into a directory that stays the same one, as a restore in place does."""
    for entry in root.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(backup, root, dirs_exist_ok=True)


def told(app: App) -> list[str]:
    return [one.text for one in checks.run(app, without=("hooks", "daemon", "models")) if one.name == "replica"]


@pytest.mark.parametrize("works_before_it_syncs", [True, False])
def test_a_directory_restored_in_place_loses_nothing(tmp_path: Path, works_before_it_syncs: bool) -> None:
    app, peer = started(tmp_path / "상태"), started(tmp_path / "peer")
    note(app, "어제", "yesterday")
    app.close()
    shutil.copytree(app.home.root, tmp_path / "backup")
    app = started(tmp_path / "상태")
    note(app, "오늘", "today", "이어서")
    exchange(app, peer)
    app.close()
    refill(app.home.root, tmp_path / "backup")

    app = started(tmp_path / "상태")
    before = app.identity
    assert "오늘" not in texts(app)
    if works_before_it_syncs:
        note(app, "twin of today", "다른 오늘")
    exchange(peer, app)
    note(app, "after all")
    exchange(app, peer)

    assert texts(app) == texts(peer) >= {"어제", "yesterday", "오늘", "today", "이어서", "after all"}
    assert ("다른 오늘" in texts(peer)) == works_before_it_syncs
    assert bool(app.holding.twins()) == works_before_it_syncs
    assert app.reader().digest() == peer.reader().digest()
    assert app.identity.replica != before.replica
    assert [note.what for note in app.identity.notes][-1] == KNOWN_ELSEWHERE
    assert KNOWN_ELSEWHERE in told(app)[0]
    assert verify(app.home, deep=True).exit == CLEAN
    again = app.identity
    exchange(app, peer)
    assert app.identity == again
    app.close()
    peer.close()


def test_a_copied_directory_beside_its_twin_goes_on_under_its_own_name(tmp_path: Path) -> None:
    app, peer = started(tmp_path / "하나"), started(tmp_path / "peer")
    note(app, "vor der Kopie", "함께")
    app.close()
    shutil.copytree(app.home.root, tmp_path / "copy")
    app, copy = started(tmp_path / "하나"), started(tmp_path / "copy")
    assert copy.identity.replica != app.identity.replica
    assert copy.identity.writer != app.identity.writer
    note(app, "from the first")
    note(copy, "복사본에서")
    exchange(app, peer)
    exchange(copy, peer)
    exchange(app, peer)
    everybody = {"vor der Kopie", "함께", "from the first", "복사본에서"}
    assert texts(app) == texts(copy) == texts(peer) == everybody
    assert len({one.reader().digest() for one in (app, copy, peer)}) == 1
    assert COPIED in told(copy)[0]
    assert told(app) == []
    for one in (app, copy, peer):
        assert verify(one.home, deep=True).exit == CLEAN
        one.close()


def test_a_directory_that_lost_its_end_gets_it_back_from_others(tmp_path: Path) -> None:
    app, peer = started(tmp_path / "상태"), started(tmp_path / "peer")
    note(app, "처음")
    app.close()
    (segment,) = app.home.segments.glob("*.mzs")
    early = segment.read_bytes()
    app = started(tmp_path / "상태")
    note(app, "나중", "later")
    exchange(app, peer)
    app.close()
    segment.write_bytes(early)
    app = started(tmp_path / "상태")
    assert "나중" not in texts(app)
    note(app, "neu")
    exchange(app, peer)
    assert texts(app) == texts(peer) == {"처음", "나중", "later", "neu"}
    assert len(everything(app)) == len(everything(peer))
    app.close()
    peer.close()


@pytest.mark.parametrize("kept", [("identity",), ("identity", "keys"), ("identity", "keys", "segments")])
def test_an_identity_that_came_back_without_what_it_wrote_gives_no_number_twice(
    tmp_path: Path, kept: tuple[str, ...]
) -> None:
    app, peer = started(tmp_path / "상태"), started(tmp_path / "peer")
    note(app, "하나", "two", "셋")
    exchange(app, peer)
    before = app.identity
    app.close()
    for entry in app.home.root.iterdir():
        if entry.name not in kept:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for segment in app.home.segments.glob("*.mzs"):
        segment.unlink()

    app = started(tmp_path / "상태")
    note(app, "새로", "again")
    assert app.identity.writer != before.writer
    exchange(app, peer)
    assert texts(app) == texts(peer) == {"하나", "two", "셋", "새로", "again"}
    assert not app.holding.twins()
    assert app.reader().digest() == peer.reader().digest()
    assert verify(app.home, deep=True).exit == CLEAN
    app.close()
    peer.close()
