"""What an agent is told before a tool runs: the rules for it, what other sessions do, what failed before."""

from __future__ import annotations

import json
from typing import Any

from tests.daemon.kit import Place, until

RULE = "커밋 제목은 한 줄, conventional prefix, no emoji"


def ask_before(place: Place, session: str, tool: str, given: dict[str, Any]) -> str:
    """Ask as the hook does before a tool; return the text that reaches the model, "" for silence."""
    return context(place.ask("PreToolUse", session, tool_name=tool, tool_input=given))


def context(answer: str) -> str:
    """Return the text inside an answer, which must be of the one form that decides nothing."""
    if not answer:
        return ""
    found = json.loads(answer)
    assert set(found) == {"hookSpecificOutput"}
    assert set(found["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert found["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    return str(found["hookSpecificOutput"]["additionalContext"])


def edits(place: Place, session: str, path: str, *, lines: int = 3) -> None:
    given = {"file_path": str(place.project / path), "content": "가\n" * lines}
    response = {"type": "create", "filePath": given["file_path"], "structuredPatch": []}
    place.capture("PostToolUse", session, tool_name="Write", tool_input=given, tool_response=response)


def write(place: Place, path: str) -> dict[str, Any]:
    return {"file_path": str(place.project / path), "content": "나\n"}


def test_a_file_that_another_live_session_wrote_is_warned_of_once_until_it_changes_again(place: Place) -> None:
    place.serve()
    place.capture("SessionStart", "하나", source="startup")
    edits(place, "하나", "web/장바구니.ts")
    place.drained()
    said = until(lambda: ask_before(place, "둘", "Edit", write(place, "web/장바구니.ts")), "a warning")
    assert "web/장바구니.ts was created" in said
    assert "another live session: Claude Code" in said
    assert "+3 -0 lines" in said
    assert ask_before(place, "둘", "Edit", write(place, "web/장바구니.ts")) == ""
    assert ask_before(place, "둘", "Edit", write(place, "web/다른.ts")) == ""
    edits(place, "하나", "web/장바구니.ts")
    place.drained()
    assert until(lambda: ask_before(place, "둘", "Edit", write(place, "web/장바구니.ts")), "another warning")
    place.drained()
    [first, second] = until(lambda: place.events("conflict.warned")[:2], "two records")
    assert {one.payload["session"] for one in (first, second) if one.payload} == {"둘"}
