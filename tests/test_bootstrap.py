"""The parts put together: one state directory, real log and index, no subprocess."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memorize.bootstrap import App, open_app
from memorize.errors import BadConfig, UnknownMemory
from memorize.log.spool import put_capture
from memorize.model import CONTEXT_DELIVERED, MEMORY_FORMED, OBSERVED_PROMPT, WINDOW_CONSOLIDATED, Draft
from memorize.recall import changes
from memorize.recall.brief import brief_file_name


@pytest.fixture
def app(tmp_path: Path) -> App:
    return open_app({"MEMORIZE_HOME": str(tmp_path / "state")})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "프로젝트"
    folder.mkdir()
    return folder


def drop(app: App, event: str, project: Path, agent: str = "claude", **fields: object) -> bytes:
    """Drop what a hook would drop; return the nonce."""
    call = {"session_id": "s1", "cwd": str(project), **fields}
    return put_capture(app.home, agent, event, json.dumps(call).encode(), app.clock)


def remember(app: App, project: Path, text: str, **fields: object) -> bytes:
    place = app.place(str(project))
    payload = changes.formed(text, "decision", "project", place.project, 7, **fields)
    return app.append(changes.remembered(payload), place=place)[0]


def test_what_was_written_is_read_at_once(app: App, project: Path) -> None:
    identity = remember(app, project, "환불은 취소와 다르다.")
    assert app.group(identity).text == "환불은 취소와 다르다."
    assert [hit.row.id for hit in app.search("환불", app.place(str(project)).project).hits] == [identity]


def test_ids_come_back_in_order_of_ordinal(app: App) -> None:
    payloads = [changes.formed(text, "fact", "personal", "", 5) for text in ("a", "b", "c")]
    ids = app.append([Draft(MEMORY_FORMED, payload, number) for number, payload in enumerate(payloads)])
    assert [app.group(identity).text for identity in ids] == ["a", "b", "c"]


def test_a_window_is_open_until_a_claim_names_its_sources(app: App, project: Path) -> None:
    for text in ("We decided to use ULIDs.", "환불은 반드시 한 번만 한다."):
        drop(app, "UserPromptSubmit", project, prompt=text)
    app.ingest()
    (window,) = app.open_windows()
    assert [event.kind for event in window.events] == [OBSERVED_PROMPT] * 2
    assert app.consolidate().memories == 2
    assert app.open_windows() == []
    drop(app, "Stop", project, last_assistant_message="Done.")
    assert [len(one.events) for one in app.open_windows()] == [1]


def test_a_window_below_the_minimum_waits(app: App, project: Path) -> None:
    drop(app, "UserPromptSubmit", project, prompt="We decided to use ULIDs.")
    app.ingest()
    assert app.consolidate(observations_min=2).small == 1
    assert len(app.open_windows()) == 1


def test_two_workers_that_read_one_window_leave_one_claim_in_force(app: App, project: Path) -> None:
    from memorize.consolidate.rules import extract
    from memorize.consolidate.windows import answer

    drop(app, "UserPromptSubmit", project, prompt="We decided to use ULIDs.")
    app.ingest()
    (window,) = app.open_windows()
    for nonce in (b"1" * 16, b"2" * 16):
        app.append(answer(window, extract(window), "rules", nonce))
    claims = app.reader().log(kind=WINDOW_CONSOLIDATED)
    assert len(claims) == 2
    assert [hit.row.text for hit in app.search("", None, kinds=["decision"]).hits] == ["We decided to use ULIDs."]
    assert len(app.search("", None, kinds=["decision"], dead=True).hits) == 2


def test_the_daemons_round_consolidates_behind_the_end_of_a_session(app: App, project: Path) -> None:
    drop(app, "SessionStart", project, source="startup")
    drop(app, "UserPromptSubmit", project, prompt="We decided to use ULIDs.")
    drop(app, "Stop", project, last_assistant_message="Done.")
    assert app.work_once() > 0
    drop(app, "SessionEnd", project, reason="other")
    while app.work_once():
        pass
    assert [one.kind for one in app.reader().log(kind=WINDOW_CONSOLIDATED)] == [WINDOW_CONSOLIDATED]


def test_a_session_that_ended_while_nobody_looked_is_caught_up_with(app: App, project: Path) -> None:
    for event, fields in (
        ("UserPromptSubmit", {"prompt": "We decided to use ULIDs."}),
        ("Stop", {"last_assistant_message": "Done."}),
        ("SessionEnd", {"reason": "other"}),
    ):
        drop(app, event, project, **fields)
    app.ingest()
    later = open_app({"MEMORIZE_HOME": str(app.home.root)})
    assert later.work_once() == 1
    assert later.open_windows() == []


def test_a_printed_brief_is_recorded_for_its_session(app: App, project: Path) -> None:
    identity = remember(app, project, "Prices are cents.")
    nonce = drop(app, "SessionStart", project, source="startup")
    record = {"agent": "claude", "project": "p", "event": "SessionStart", "tokens": 9}
    record["items"] = [[identity.hex(), "standing", 700_000]]
    line = nonce.hex().encode() + b"\n" + json.dumps(record).encode()
    put_capture(app.home, "memorize", "delivered", line, app.clock)
    app.ingest()
    (event,) = app.reader().log(kind=CONTEXT_DELIVERED)
    assert event.payload is not None
    assert (event.payload["session"], event.payload["items"]) == ("s1", [[identity, "standing", 700_000]])


@pytest.mark.parametrize("record", [b"", b"zz\n{}", b"\xff\n[]", b'00\n{"items": [[1]]}', b"00\n" + b"[" * 9_999])
def test_a_spoiled_delivery_record_is_set_aside_and_stops_nothing(app: App, project: Path, record: bytes) -> None:
    put_capture(app.home, "memorize", "delivered", record, app.clock)
    drop(app, "UserPromptSubmit", project, prompt="계속")
    report = app.ingest()
    assert (report.bad, report.files) == (1, 1)


def test_an_unknown_agent_is_set_aside(app: App, project: Path) -> None:
    drop(app, "UserPromptSubmit", project, agent="nobody", prompt="x")
    assert app.ingest().bad == 1


def test_a_project_that_is_known_is_not_told_again(app: App, project: Path) -> None:
    for _ in range(3):
        drop(app, "SessionStart", project, source="startup")
        app.ingest()
    assert len(app.reader().log(kind="project.seen")) == 1


def test_briefs_follow_the_state_and_no_stale_one_stays(app: App, project: Path) -> None:
    identity = remember(app, project, "Prices are cents.")
    assert app.refresh_briefs(force=False)
    path = app.home.briefs / brief_file_name("claude", str(project))
    assert b"Prices are cents." in path.read_bytes()
    assert not app.refresh_briefs(force=False)
    (app.home.briefs / "deadbeef").write_bytes(b"claude\t/gone\n\nold")
    app.append(changes.forgotten([identity], [], ""))
    assert app.refresh_briefs(force=False)
    assert b"Prices are cents." not in path.read_bytes()
    assert not (app.home.briefs / "deadbeef").exists()


def test_an_id_is_known_by_any_prefix_that_fits_only_one(app: App, project: Path) -> None:
    identity = remember(app, project, "One.")
    assert app.resolve(identity.hex()[:5]) == identity
    assert app.resolve(identity.hex().upper()) == identity
    for wrong in ("", "12", "xyz12345", identity.hex() + "0", "0" * 64):
        with pytest.raises(UnknownMemory):
            app.resolve(wrong)


def test_a_broken_configuration_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    home = tmp_path / "state"
    home.mkdir()
    (home / "config.toml").write_text("[recall]\nunknown = 1\n", encoding="utf-8")
    with pytest.raises(BadConfig):
        open_app({"MEMORIZE_HOME": str(home)})
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_a_removed_segments_folder_is_made_again_and_captures_go_on(app: App, project: Path) -> None:
    remember(app, project, "Lost with its folder.")
    app.close()
    shutil.rmtree(app.home.segments)
    later = open_app({"MEMORIZE_HOME": str(app.home.root)})
    identity = remember(later, project, "계속된다.")
    assert later.group(identity).text == "계속된다."
    assert [hit.row.text for hit in later.search("", None).hits] == ["계속된다."]
