"""When a daemon does a round of sync, and that what one device wrote is on another by itself."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from memorize.bootstrap import App, keeping, open_app
from memorize.bootstrap.syncing import Syncing
from memorize.daemon import life
from memorize.daemon.carrying import HEARTBEAT_S, QUIET_S, SETTLE_S, SPACING_S, Carrying, Due, Rest, Seen, rests
from memorize.model import OBSERVED_PROMPT, Draft
from memorize.sync import asking
from memorize.sync.keys import export_line, import_line, offer
from memorize.sync.targets import FOLDER, SSH, Target
from tests.daemon.kit import DECISION, Place, until
from tests.sync.hung import hung


def test_nothing_is_due_while_nothing_changes() -> None:
    done = Seen("7-aa", 1)
    due = Due(began=100.0, changed=90.0)
    assert not due.is_due(100.0 + HEARTBEAT_S - 1, done, done)
    assert due.is_due(100.0 + HEARTBEAT_S, done, done)


def test_what_was_written_here_is_handed_out_once_it_is_quiet_and_not_too_often() -> None:
    done, seen = Seen("7-aa", 1), Seen("8-bb", 1)
    assert not Due(began=0.0, changed=100.0).is_due(100.0 + QUIET_S - 0.1, done, seen)
    assert Due(began=0.0, changed=100.0).is_due(100.0 + QUIET_S, done, seen)
    assert not Due(began=100.0, changed=101.0).is_due(100.0 + SPACING_S - 0.1, done, seen)
    assert Due(began=100.0, changed=101.0).is_due(100.0 + SPACING_S, done, seen)


def test_what_came_into_the_folder_is_taken_in_as_soon_as_it_has_settled() -> None:
    done, seen = Seen("7-aa", 1), Seen("7-aa", 2)
    assert not Due(began=0.0, changed=100.0).is_due(100.0 + SETTLE_S / 2, done, seen)
    assert Due(began=0.0, changed=100.0).is_due(100.0 + SETTLE_S, done, seen)


def test_rounds_that_cannot_be_done_come_less_and_less_often() -> None:
    done, seen = Seen("7-aa", 1), Seen("8-bb", 1)
    waits = [
        next(s for s in range(0, 10_000, 10) if Due(0.0, -100.0, failures).is_due(float(s), done, seen))
        for failures in range(12)
    ]
    assert waits == sorted(waits)
    assert waits[:4] == [SPACING_S, 2 * SPACING_S, 4 * SPACING_S, 8 * SPACING_S]
    assert waits[-1] == 3600


def test_a_device_that_is_switched_off_is_left_alone_for_longer_and_longer_and_no_folder_is() -> None:
    folder, desktop = Target(FOLDER, "/동기화"), Target(SSH, "ssh://desktop")
    off = {folder.where: {"settled": False}, desktop.where: {"settled": False}}
    found: dict[str, Rest] = {}
    waits = []
    for _ in range(10):
        found = rests(found, [folder, desktop], off, 1000.0)
        assert found[folder.where] == Rest()
        waits.append(found[desktop.where].until - 1000.0)
    assert waits == sorted(waits)
    assert waits[:2] == [2 * SPACING_S, 4 * SPACING_S]
    assert waits[-1] == 3600
    assert rests(found, [desktop], {desktop.where: {"settled": True}}, 1000.0) == {desktop.where: Rest()}


def _other(root: Path, folder: Path, line: str) -> App:
    """Return a second device that shares key and folder."""
    app = open_app({**os.environ, "MEMORIZE_HOME": str(root)})
    keeping.take(app, import_line(line))
    Syncing(app).add(("folder", str(folder)))
    return app


def test_what_one_device_captured_is_on_the_other_by_itself(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "동기화"
    folder.mkdir()
    here = open_app(os.environ)
    Syncing(here).add(("folder", str(folder)))
    there = _other(tmp_path / "other state", folder, export_line(offer(keeping.keyring(here))))
    place.serve()
    place.capture("UserPromptSubmit", "s", prompt=DECISION)

    def arrived() -> bool:
        Syncing(there).rounds(Syncing(there).targets())
        return bool(there.search(DECISION, None, observations=True).hits)

    until(arrived, "the prompt on the other device")
    there.close()
    here.close()


def test_a_daemon_with_something_to_sync_with_stays_and_leaves_when_there_is_nothing_any_more(
    place: Place, tmp_path: Path
) -> None:
    folder = tmp_path / "sync"
    folder.mkdir()
    place.home.root.mkdir(parents=True, exist_ok=True)
    place.home.config.write_text("[daemon]\nidle_exit_s = 1\n", encoding="utf-8")
    app = open_app(os.environ)
    Syncing(app).add(("folder", str(folder)))
    process = place.launch()
    place.running()
    time.sleep(4)
    assert process.poll() is None
    assert life.status(place.home) is not None
    Syncing(app).remove((str(folder),))
    assert process.wait(180) == 0
    app.close()


def test_a_device_that_cannot_be_reached_does_not_keep_the_folder_waiting(place: Place, tmp_path: Path) -> None:
    folder, address = tmp_path / "동기화", "ssh://nobody.invalid"
    folder.mkdir()
    app = open_app(os.environ)
    syncing = Syncing(app)
    syncing.add(("folder", str(folder)))
    syncing.add((address,))
    now = 0.0
    carrying = Carrying(app.again(), lambda: now)
    tried = []
    for round_ in range(3):
        app.append([Draft(OBSERVED_PROMPT, {"text": f"{DECISION} {round_}"})])
        held = app.reader().digest()[0]
        for _ in range(3):  # it sees that there is something new, that it is quiet, and that the last round is over
            now += SPACING_S / 2
            carrying._look()
        last = syncing.last()
        assert last[str(folder)]["set"] == held
        assert last[str(folder)]["settled"]
        tried.append(last[address]["at_ms"])
    assert len(set(tried)) == 2
    carrying._watch.close()
    app.close()


def test_a_folder_that_hangs_is_told_and_keeps_no_other_waiting(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 3.0)
    folder, stuck = tmp_path / "동기화", tmp_path / "mounted"
    app = open_app(os.environ)
    syncing = Syncing(app)
    for path in (folder, stuck):
        path.mkdir()
        syncing.add(("folder", str(path)))
    now = 0.0
    carrying = Carrying(app.again(), lambda: now)

    def rounds() -> dict[str, Any]:
        nonlocal now
        app.append([Draft(OBSERVED_PROMPT, {"text": f"{DECISION} {now}"})])
        for _ in range(3):
            now += SPACING_S
            carrying._look()
        return dict(syncing.last())

    with hung(stuck):
        last = rounds()
        assert last[str(folder)]["settled"]
        assert last[str(folder)]["set"] == app.reader().digest()[0]
        assert "does not answer" in last[str(stuck)]["reason"]
    monkeypatch.setattr(asking, "ANSWER_S", 60.0)
    last = rounds()
    assert last[str(stuck)]["settled"], last
    carrying._watch.close()
    app.close()


@pytest.mark.parametrize("fault", ["missing", "file"])
def test_a_folder_that_is_not_there_keeps_a_daemon_from_nothing_else(place: Place, tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "sync"
    folder.mkdir()
    app = open_app(os.environ)
    Syncing(app).add(("folder", str(folder)))
    app.close()
    folder.rmdir()
    if fault == "file":
        folder.touch()
    place.serve()
    place.capture("UserPromptSubmit", "s", prompt=DECISION)
    until(lambda: not any((place.home.spool / "new").iterdir()), "the capture is taken in")
    until(lambda: Syncing(open_app(os.environ)).last(), "a round that says why")
    assert not folder.is_dir()
