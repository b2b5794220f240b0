"""What a running daemon says, and what the log knows of it afterwards."""

from __future__ import annotations

import os

from memorize.daemon.answer import SILENCE, Answer, Answerer, Told, seconds_for
from tests.counts import count
from tests.daemon.kit import DECISION, PROMPT, QUESTION, Place, until


def delivered(place: Place, session: str) -> list[set[bytes]]:
    """Return the items of every delivery to a session, the oldest first."""
    found = [event.payload for event in place.events("context.delivered") if event.payload]
    return [{item[0] for item in one["items"]} for one in reversed(found) if one["session"] == session]


def test_what_a_session_decided_the_next_one_is_told_and_the_log_knows_it(place: Place) -> None:
    place.remember()
    place.serve()
    assert DECISION in place.told("SessionStart", "둘째", source="startup")
    place.drained()
    [items] = until(lambda: delivered(place, "둘째"), "the delivery in the log")
    assert items


def test_a_session_that_ends_while_a_daemon_runs_is_in_the_briefs_soon(place: Place) -> None:
    place.serve()
    place.session("s")
    briefs = place.home.briefs

    def told() -> bool:
        return any(DECISION in brief.read_text("utf-8") for brief in briefs.glob("*") if brief.is_file())

    until(told, "a brief with the decision")


def test_an_end_that_another_program_ingested_is_found_when_the_daemon_starts(place: Place) -> None:
    place.session("s")
    with place.app() as parts:
        parts.ingest()
    place.serve()
    until(lambda: place.events("memory.formed"), "memories of the session")


def test_what_a_prompt_was_answered_is_not_said_again_in_the_session(place: Place) -> None:
    place.remember()
    place.serve()
    first = place.told("UserPromptSubmit", "s", prompt=QUESTION)
    assert "pnpm" in first
    assert "pnpm for the checkout" not in place.ask("UserPromptSubmit", "s", prompt=QUESTION)
    place.drained()
    assert "pnpm for the checkout" not in place.ask("UserPromptSubmit", "s", prompt=QUESTION)
    assert "pnpm" in place.told("UserPromptSubmit", "another", prompt=QUESTION)


def test_after_a_compaction_all_is_told_again(place: Place) -> None:
    place.remember()
    place.serve()
    assert DECISION in place.told("SessionStart", "s", source="startup")
    place.capture("PreCompact", "s", trigger="auto")
    assert DECISION in place.told("SessionStart", "s", source="compact")
    assert DECISION not in place.ask("SessionStart", "s", source="resume")
    place.drained()
    until(lambda: len(delivered(place, "s")) == 2, "two deliveries")


def test_nobody_is_answered_who_is_not_the_person(place: Place) -> None:
    place.remember()
    with place.app() as parts:
        answerer = Answerer(parts)
        for fields in (
            {"prompt": f"<task-notification>{QUESTION}</task-notification>"},
            {"prompt": QUESTION, "agent_id": "helper-1"},
            {"prompt": ""},
        ):
            place.capture("UserPromptSubmit", "s", **fields)
        names = [path.name for path in (place.home.spool / "new").iterdir()]
        assert [answerer.answer(name) for name in names] == [SILENCE] * 3
        answerer.close()


def test_a_place_that_is_not_remembered_is_told_nothing(place: Place) -> None:
    place.remember()
    (place.project / ".memorize.toml").write_text("capture = false\n", encoding="utf-8")
    place.serve()
    assert place.ask("SessionStart", "s", source="startup") == ""


def test_names_of_no_spool_file_are_answered_with_silence(place: Place) -> None:
    with place.app() as parts:
        answerer = Answerer(parts)
        for name in ("", "-", "../../etc/passwd", "0" * 16, "결제", "a-b-c-d-claude-SessionStart"):
            assert answerer.answer(name) == SILENCE
            assert seconds_for(name) == 0


def test_an_answer_that_the_hook_did_not_wait_for_counts_as_not_given(place: Place) -> None:
    place.remember()
    with place.app() as parts:
        answerer = Answerer(parts)
        place.capture("SessionStart", "s", source="startup")
        [name] = [path.name for path in (place.home.spool / "new").iterdir()]
        answer = answerer.answer(name)
        assert answer is not None
        assert answer.record is not None
        answerer.missed(answer)
        assert place.waiting() == 1
        answerer.printed(answer)
        assert place.waiting() == 2
        answerer.close()


def test_a_session_whose_start_was_answered_too_late_is_what_the_index_says(place: Place) -> None:
    class View:
        def delivered(self, session: str) -> frozenset[bytes]:
            return frozenset({b"by the brief"})

    told = Told()
    told.begin("s")
    told.add("s", [b"a"])
    assert told.of("s", View()) == {b"a"}  # type: ignore[arg-type]
    told.forget("s")
    assert told.of("s", View()) == {b"by the brief"}  # type: ignore[arg-type]


def test_of_very_many_sessions_the_oldest_are_forgotten() -> None:
    class View:
        def delivered(self, session: str) -> frozenset[bytes]:
            return frozenset()

    told = Told()
    for number in range(1_000):
        told.add(str(number), [b"x"])
    assert told.of("999", View()) == {b"x"}  # type: ignore[arg-type]
    assert told.of("0", View()) == frozenset()  # type: ignore[arg-type]


def test_answers_come_while_thousands_of_captures_wait(place: Place) -> None:
    place.remember()
    many = count("captures that wait while hooks are answered", quick=2_000, full=20_000)
    call = {"tool_name": "Bash", "tool_input": {"command": "make x"}, "tool_response": {"stdout": "결과\n" * 200}}
    for _ in range(many):
        place.capture("PostToolUse", f"w{os.urandom(1).hex()}", **call)
    place.serve()
    assert DECISION in place.told("SessionStart", "s", source="startup")
    assert "pnpm" in place.told("UserPromptSubmit", "t", prompt=QUESTION)
    assert place.hook("SessionStart", "u", source="startup")
    assert place.waiting() > 0, "the backlog was gone too soon to prove anything"
    place.drained()
    assert len(place.events("observed.shell")) == many + 1
    assert place.running().failures == 0


def test_an_answer_is_the_same_from_daemon_brief_and_lean_child(place: Place) -> None:
    place.remember()
    (place.home.hook / "nodaemon").touch()
    by_brief = place.hook("SessionStart", "a", source="startup")
    for brief in place.home.briefs.iterdir():
        brief.unlink()
    by_child = place.hook("SessionStart", "b", source="startup")
    for session in ("a", "b"):  # or they would be at work beside the next one
        place.capture("SessionEnd", session, reason="other")
    place.serve()
    place.drained()
    by_daemon = place.told("SessionStart", "c", source="startup")
    assert DECISION in by_brief
    # The first line tells session and tokens, which a brief cannot know.
    assert by_brief.splitlines()[1:] == by_child.splitlines()[1:] == by_daemon.splitlines()[1:]


def test_an_answer_of_nothing_is_no_record() -> None:
    assert Answer().record is None
    assert PROMPT.startswith(DECISION)
