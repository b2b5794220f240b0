"""Boundaries reach the daemon's round whoever took them in; projects become known and linked on the way."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memorize.bootstrap import App, open_app
from memorize.limits import STOP_OBSERVATIONS_MIN
from memorize.log.lock import Lock
from memorize.model import OBSERVED_PROMPT, PROJECT_LINKED, PROJECT_SEEN, WINDOW_CONSOLIDATED
from tests.index.test_place import git
from tests.test_bootstrap import app as app
from tests.test_bootstrap import drop, remember
from tests.test_bootstrap import project as project


def again(app: App) -> App:
    """Return the program as another process has it."""
    return open_app({"MEMORIZE_HOME": str(app.home.root)})


def work(app: App) -> None:
    while app.work_once():
        pass


def said(app: App, project: Path, session: str = "s1") -> None:
    drop(app, "UserPromptSubmit", project, session_id=session, prompt="We decided to use ULIDs. 환불은 한 번만 한다.")
    drop(app, "Stop", project, session_id=session, last_assistant_message="Done.")


def claims(app: App) -> int:
    return len(app.reader().log(kind=WINDOW_CONSOLIDATED))


@pytest.mark.parametrize("event", ["SessionEnd", "SessionStart"])
def test_a_boundary_that_another_process_took_in_is_acted_on(app: App, project: Path, event: str) -> None:
    said(app, project)
    work(app)
    drop(app, event, project, reason="other", source="compact")
    assert again(app).ingest().files == 1
    work(app)
    assert claims(app) == 1


def test_a_boundary_waits_for_the_worker_that_is_busy(app: App, project: Path) -> None:
    work(app)
    said(app, project)
    drop(app, "SessionEnd", project, reason="other")
    app.catch_up = False
    with Lock(app.home.locks / "consolidate"):
        work(app)
    assert claims(app) == 0
    app.catch_up = False
    work(app)
    assert claims(app) == 1


def test_a_session_that_goes_on_is_left_alone(app: App, project: Path) -> None:
    work(app)
    said(app, project, "runs")
    said(app, project, "ends")
    drop(app, "SessionEnd", project, session_id="ends", reason="other")
    work(app)
    assert [one.session for one in app.open_windows()] == ["runs"]


def test_a_long_session_is_read_at_the_end_of_a_turn_without_being_over(app: App, project: Path) -> None:
    work(app)
    for number in range(STOP_OBSERVATIONS_MIN - 1):
        drop(app, "UserPromptSubmit", project, prompt=f"단계 {number}: We decided on step {number}.")
    work(app)
    assert claims(app) == 0
    drop(app, "Stop", project, last_assistant_message="Done so far.")
    work(app)
    assert claims(app) == 1
    assert app.open_windows() == []


def test_a_rebuilt_index_numbers_anew_and_no_boundary_is_lost(app: App, project: Path) -> None:
    said(app, project)
    work(app)
    other = again(app)
    drop(app, "SessionEnd", project, reason="other")
    other.ingest()
    other.rebuild()
    work(app)
    assert claims(app) == 1


def test_windows_outlive_the_renewal_of_the_replica(app: App, project: Path) -> None:
    said(app, project)
    drop(app, "SessionEnd", project, reason="other")
    app.ingest()
    replica = app.identity.replica
    app.close()
    moved = app.home.root.with_name("moved")
    shutil.copytree(app.home.root, moved)
    restored = open_app({"MEMORIZE_HOME": str(moved)})
    assert restored.identity.replica != replica
    assert len(restored.open_sessions()) == 1
    work(restored)
    assert (claims(restored), restored.open_windows()) == (1, [])


def test_by_hand_the_windows_of_every_device_are_consolidated(app: App, project: Path) -> None:
    said(app, project)
    app.ingest()
    app.close()
    identity = app.home.identity.read_text().replace(app.identity.device.hex(), "ab" * 16)
    app.home.identity.write_text(identity.replace(app.identity.replica.hex(), "cd" * 16))
    app.home.index.unlink()
    (next(app.home.segments.iterdir())).rename(app.home.received / "old.mzs")
    other = again(app)
    assert other.open_windows() == []
    assert [len(one.events) for one in other.windows_of(None)] == [2]
    assert other.consolidate().windows == 1


def test_the_first_capture_of_any_kind_makes_its_project_known_once(app: App, project: Path) -> None:
    for _ in range(3):
        drop(app, "UserPromptSubmit", project, prompt="안녕")
    drop(app, "SessionStart", project, source="startup")
    app.ingest()
    drop(app, "Stop", project, last_assistant_message="끝")
    assert [event.kind for event in app.reader().log(kind=PROJECT_SEEN)] == [PROJECT_SEEN]
    assert app.reader().log(limit=1)[0].header.kind == "observed.reply"
    assert len(app.reader().log(kind=OBSERVED_PROMPT)) == 3


def test_a_session_in_a_renamed_project_is_told_its_memory_before_and_after_the_link(app: App, project: Path) -> None:
    git(project, "init", "-q")
    identity = remember(app, project, "가격은 센트다.")
    old = app.place(str(project)).project
    git(project, "commit", "-q", "--allow-empty", "-m", "첫")
    again_app = again(app)
    place = again_app.place(str(project))
    assert place.project != old
    view = again_app.reader()
    assert [item[0] for item in again_app.context(place, "s", reader=view).items] == [identity]
    drop(again_app, "SessionStart", project, source="startup")
    (link,) = again_app.reader().log(kind=PROJECT_LINKED)
    assert (link.payload, link.header.ordinal) == ({"a": old, "b": place.project}, 101)
    (seen, _) = again_app.reader().log(kind=PROJECT_SEEN)
    assert seen.header.nonce == link.header.nonce
    assert [item[0] for item in again_app.context(place, "s").items] == [identity]


def test_windows_of_a_linked_project_belong_to_it(app: App, project: Path) -> None:
    git(project, "init", "-q")
    said(app, project)
    app.ingest()
    git(project, "commit", "-q", "--allow-empty", "-m", "첫")
    other = again(app)
    assert len(other.windows_of(other.here(str(project)).project)) == 1
    assert other.consolidate(project=other.place(str(project)).project).windows == 1


def test_an_opt_out_keeps_a_place_unknown(app: App, project: Path) -> None:
    (project / ".memorize.toml").write_text("capture = false\n", encoding="utf-8")
    said(app, project)
    app.here(str(project))
    assert app.reader().log(kind=PROJECT_SEEN) == []
