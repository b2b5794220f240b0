"""The extractor without a model, on windows as the log holds them."""

from __future__ import annotations

import pytest

from memorize.consolidate.rules import extract
from memorize.consolidate.windows import SOURCES_MAX, Window, answer, windows
from memorize.model import (
    MEMORY_FORMED,
    OBSERVED_COMMIT,
    OBSERVED_EDIT,
    OBSERVED_PROMPT,
    OBSERVED_REPLY,
    OBSERVED_SHELL,
    WINDOW_CONSOLIDATED,
    Event,
    Header,
    Payload,
)


def observed(number: int, kind: str, **fields: object) -> Event:
    """Return the event number ``number`` of a session."""
    identity = number.to_bytes(32, "big")
    header = Header(1, b"s" * 16, b"r" * 16, b"w" * 16, number, b"", number, (), kind, 0, b"", b"", 0, b"", number, 0)
    payload: Payload = {"agent": "claude", "session": "5f2c", "project": "p", "branch": "refund-api", **fields}
    return Event(identity, header, payload)


def window(*events: Event) -> Window:
    """Return the window of these events."""
    return Window("claude", "5f2c", "p", tuple(events))


def texts(kind: str, *events: Event) -> list[str]:
    """Return the texts of the memories of one kind."""
    return [found.text for found in extract(window(*events)) if found.kind == kind]


def test_a_decision_that_is_taken_back_by_name_is_not_kept() -> None:
    told = [
        (
            "Let's use npm.",
            "Actually let's go with pnpm instead of npm.",
            "Actually let's go with pnpm instead of npm.",
        ),
        (
            "도커 컴포즈로 하기로 했어.",
            "아 미안, 컴포즈 대신 쿠버네티스로 가자.",
            "아 미안, 컴포즈 대신 쿠버네티스로 가자.",
        ),
    ]
    for first, second, kept in told:
        events = (observed(1, OBSERVED_PROMPT, text=first), observed(2, OBSERVED_PROMPT, text=second))
        assert texts("decision", *events) == [kept]


def test_another_choice_without_a_second_thought_takes_nothing_back() -> None:
    events = (
        observed(1, OBSERVED_PROMPT, text="Let's use UUIDs for the sessions."),
        observed(2, OBSERVED_PROMPT, text="Use ULIDs instead of UUIDs for the orders."),
        observed(3, OBSERVED_PROMPT, text="Actually let's use mypy instead of uu."),
    )
    assert len(texts("decision", *events)) == 3


FAILED = {"command": "pytest  -q", "ok": False, "output": "collected 2\nE   AssertionError: 200 != 409\n1 failed"}


def test_a_failure_that_was_never_repaired_is_kept_with_its_telling_line() -> None:
    assert texts("failure", observed(1, OBSERVED_SHELL, **FAILED)) == [
        "`pytest -q` failed: E AssertionError: 200 != 409"
    ]


def test_a_repaired_failure_names_what_was_edited_in_between() -> None:
    events = (
        observed(1, OBSERVED_SHELL, **FAILED),
        observed(2, OBSERVED_EDIT, path="refund.py"),
        observed(3, OBSERVED_SHELL, command="pytest -q", ok=True, output=""),
    )
    found = [one for one in extract(window(*events)) if one.kind == "failure"]
    assert [one.text for one in found] == [
        "`pytest -q` failed: E AssertionError: 200 != 409 (then passed, after editing refund.py)"
    ]
    assert found[0].sources == (events[0].id, events[2].id)


def test_a_failure_without_any_output_says_nothing_worth_keeping() -> None:
    assert texts("failure", observed(1, OBSERVED_SHELL, command="grep x", ok=False, output="")) == []


def test_a_commit_becomes_progress() -> None:
    commit = observed(1, OBSERVED_COMMIT, sha="4387df8", subject="feat: 환불 엔드포인트")
    assert texts("progress", commit) == ["Commit 4387df8: feat: 환불 엔드포인트"]


def test_the_summary_speaks_the_language_of_the_session() -> None:
    events = (
        observed(1, OBSERVED_PROMPT, text="환불 엔드포인트를 만들어 줘."),
        observed(2, OBSERVED_EDIT, path="refund.py"),
        observed(3, OBSERVED_REPLY, text="끝났습니다. 테스트가 통과합니다."),
    )
    assert texts("summary", *events) == [
        "목표: 환불 엔드포인트를 만들어 줘. 수정한 파일: refund.py. 마지막 답: 끝났습니다. 테스트가 통과합니다."
    ]


def test_a_goal_that_asks_keeps_its_one_mark() -> None:
    asked = observed(1, OBSERVED_PROMPT, text="How do we lint with ruff?")
    edited = observed(2, OBSERVED_EDIT, path="pyproject.toml")
    assert texts("summary", asked, edited) == ["Goal: How do we lint with ruff? Edited: pyproject.toml."]


def test_a_sentence_that_held_a_secret_is_no_goal() -> None:
    edited = observed(3, OBSERVED_EDIT, path="a.py")
    mixed = observed(
        1, OBSERVED_PROMPT, text="password=[redacted:secret] 로 접속해. 환불 API를 고쳐 줘. key [redacted:jwt]!"
    )
    assert texts("summary", mixed, edited) == ["목표: 환불 API를 고쳐 줘. 수정한 파일: a.py."]
    secret = observed(1, OBSERVED_PROMPT, text="Use [redacted:aws-key] to log in.")
    asked = observed(2, OBSERVED_PROMPT, text="Fix the refund endpoint.")
    assert texts("summary", secret, asked, edited) == ["Goal: Fix the refund endpoint. Edited: a.py."]


def test_a_goal_speaks_its_own_language_whatever_was_said_later() -> None:
    events = [observed(1, OBSERVED_PROMPT, text="Write the refund endpoint.")]
    events += [observed(n, OBSERVED_PROMPT, text="테스트를 실행해 줘. 그리고 결과를 알려 줘.") for n in (2, 3, 4)]
    assert texts("summary", *events) == ["Goal: Write the refund endpoint."]


def test_the_goal_does_not_repeat_what_was_stated() -> None:
    stated = "We decided to use PostgreSQL instead of SQLite."
    both = observed(1, OBSERVED_PROMPT, text=f"{stated} Please migrate the orders table.")
    assert texts("summary", both) == ["Goal: Please migrate the orders table."]
    only = (observed(1, OBSERVED_PROMPT, text=stated), observed(2, OBSERVED_PROMPT, text="이제 표를 옮겨 줘."))
    assert texts("summary", *only) == ["목표: 이제 표를 옮겨 줘."]
    assert texts("decision", *only) == [stated]
    assert texts("summary", only[0]) == []


def test_only_the_last_failures_that_nobody_repaired_are_kept() -> None:
    events = [
        observed(n, OBSERVED_SHELL, command=f"make part{n}", ok=False, output=f"Error: 조각 {n} is broken")
        for n in range(1, 10)
    ]
    found = texts("failure", *events)
    assert [text.split("`")[1] for text in found] == ["make part7", "make part8", "make part9"]


TRIVIAL = [
    ("gti status", "bash: gti: command not found"),
    ("grep --colour-all x", "grep: unrecognized option '--colour-all'\nUsage: grep [OPTION]... PATTERNS [FILE]..."),
    ("curl -s localhost:8080/health", "curl: (7) Failed to connect to localhost port 8080"),
    ("cd db && mysql -u root", "ERROR 2002 (HY000): Can't connect to local server"),
    ("러프 check", "sh: 1: 러프: not found"),
]


@pytest.mark.parametrize(("command", "output"), TRIVIAL)
def test_a_slip_and_a_single_look_are_no_failures(command: str, output: str) -> None:
    assert texts("failure", observed(1, OBSERVED_SHELL, command=command, ok=False, output=output)) == []


def test_what_fails_again_and_again_is_kept_whatever_it_calls() -> None:
    events = [
        observed(n, OBSERVED_SHELL, command="curl localhost/api", ok=False, output="curl: (52) Empty reply: error")
        for n in (1, 2)
    ]
    assert len(texts("failure", *events)) == 1


def test_a_session_that_did_nothing_has_no_summary() -> None:
    assert extract(window(observed(1, OBSERVED_REPLY, text="Hello."))) == []


def test_the_same_statement_twice_is_one_memory() -> None:
    events = [observed(n, OBSERVED_PROMPT, text="Never use floats.") for n in (1, 2)]
    assert texts("constraint", *events) == ["Never use floats."]


def test_a_masked_observation_is_passed_over() -> None:
    erased = observed(1, OBSERVED_PROMPT, text="Never use floats.")._replace(payload=None)
    assert extract(window(erased)) == []


def test_nothing_is_invented_every_source_is_in_the_window() -> None:
    events = (observed(1, OBSERVED_PROMPT, text="Never use floats."), observed(2, OBSERVED_SHELL, **FAILED))
    ids = {event.id for event in events}
    assert all(set(found.sources) <= ids and found.sources for found in extract(window(*events)))


def test_the_claim_comes_last_and_lists_its_sources_and_its_memories_by_ordinal() -> None:
    source = window(observed(1, OBSERVED_PROMPT, text="Never use floats."))
    batch = answer(source, extract(source), "rules", b"n" * 16)
    *memories, claim = batch
    assert [draft.kind for draft in memories] == [MEMORY_FORMED] * len(memories)
    assert claim.kind == WINDOW_CONSOLIDATED
    assert claim.payload["events"] == [draft.ordinal for draft in memories]
    assert claim.payload["sources"] == [source.events[0].id]
    assert {draft.payload["window"] for draft in batch} == {"6e" * 16}


def test_a_window_holds_one_project_and_a_bounded_number_of_sources() -> None:
    many = [observed(n, OBSERVED_PROMPT, text="x") for n in range(SOURCES_MAX + 1)]
    other = observed(SOURCES_MAX + 5, OBSERVED_PROMPT, text="x", project="q")
    found = windows("claude", "5f2c", [*many, other])
    assert [(one.project, len(one.events)) for one in found] == [("p", SOURCES_MAX), ("p", 1), ("q", 1)]
