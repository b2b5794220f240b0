"""Reading payloads and cleaning texts, with inputs that nobody wrote by hand."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize import limits
from memorize.agents import agent, answer, jsontext, patch, payload
from memorize.log.spool import Unreadable
from memorize.model import Capture
from tests.agents.contract import locate

LEAF = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
EVENTS = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "PreCompact",
    "SessionEnd",
]
TOOLS = st.sampled_from(["Bash", "Write", "Edit", "MultiEdit", "NotebookEdit", "apply_patch", "mcp__a__b", "Odd", ""])
KEYS = [
    "command",
    "file_path",
    "content",
    "old_string",
    "new_string",
    "edits",
    "structuredPatch",
    "filePath",
    "stdout",
    "type",
]


@given(
    st.sampled_from(["claude", "codex"]),
    st.sampled_from(EVENTS),
    st.fixed_dictionaries(
        {
            "session_id": st.text(min_size=1, max_size=5),
            "cwd": st.sampled_from(["/home/dev/project", "/", "rel", "C:\\x"]),
        },
        optional={
            "tool_name": TOOLS | VALUE,
            "tool_input": st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=4) | VALUE,
            "tool_response": st.dictionaries(st.sampled_from(KEYS), VALUE, max_size=4) | VALUE,
            "prompt": VALUE,
            "error": VALUE,
            "last_assistant_message": VALUE,
            "source": VALUE,
        },
    ),
    st.integers(0, 400),
)
def test_any_call_whole_or_cut_gives_drafts_that_can_be_stored(
    name: str, event: str, call: dict[str, Any], less: int
) -> None:
    raw = json.dumps(call).encode()
    for data, cut in ((raw, False), (raw[: max(0, len(raw) - less)], True)):
        with contextlib.suppress(Unreadable):
            for draft in agent(name).parse(Capture(name, event, b"\1" * 16, 1, data, cut), locate):
                msgpack.packb(draft.payload)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_set_aside(data: bytes, cut: bool) -> None:
    with contextlib.suppress(Unreadable):
        assert isinstance(payload.read(Capture("claude", "Stop", b"", 0, data, cut)), dict)


@given(st.dictionaries(st.text(max_size=6), VALUE, min_size=1, max_size=5), st.data())
def test_a_cut_payload_keeps_every_member_that_came_through_whole(value: dict[str, Any], data: st.DataObject) -> None:
    raw = json.dumps(value)
    end = data.draw(st.integers(1, len(raw)))
    got = payload.read(Capture("claude", "Stop", b"", 0, raw[:end].encode(), True))
    keys = list(value)
    assert list(got) == keys[: len(got)]
    for key in keys[: max(0, len(got) - 1)]:
        assert repr(got[key]) == repr(value[key])


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_nothing_private_ever_stays(before: str, inside: str, after: str) -> None:
    secret = "비밀4711"
    text = f"{before}<private>{inside}{secret}</private>{after}"
    assert secret not in payload.clean(text)
    assert secret not in payload.clean(text[: text.index(secret) + len(secret)])
    assert secret not in payload.clean(f"<memorize-context a='{inside.replace('>', '').replace('<', '')}'>{secret}")


def test_a_gap_is_told_with_its_length() -> None:
    text = payload.whole("a" * 50_000)
    kept = limits.TEXT_CHARS_MAX - 64
    assert f"[... {50_000 - kept} characters left out ...]" in text


def test_secrets_at_both_cuts_of_a_long_text_are_not_left_half() -> None:
    token = "gh" + "p_" + "A1b2C3d4" * 5
    half = (limits.TEXT_CHARS_MAX - 64) // 2
    for shift in range(0, len(token), 5):
        text = "x" * (half - shift - 1) + " " + token + " " + "y " * 40_000 + token + " " + "z" * (half - shift)
        assert "C3d4A1b2" not in payload.whole(text)


@given(st.text(max_size=60), st.integers(0, 80))
def test_a_cut_answer_is_a_beginning_of_the_text(text: str, room: int) -> None:
    text = payload.plain(text)
    fitted = answer.fit(text, room)
    assert len(fitted.encode()) <= room
    assert text.startswith(fitted)


@given(VALUE.filter(lambda value: isinstance(value, dict | list)), st.sampled_from([None, 1, "\t"]))
def test_the_places_of_values_are_right(value: Any, indent: int | str | None) -> None:
    try:
        text = json.dumps(value, indent=indent, allow_nan=False)
    except ValueError:
        return
    node = jsontext.scan(f" {text}\n")
    assert node.value == value

    def check(part: jsontext.Node) -> None:
        assert json.loads(f" {text}\n"[part.start : part.end]) == part.value
        for member in part.members:
            check(member.node)

    check(node)


def test_a_patch_is_read_as_far_as_it_came() -> None:
    whole = "*** Begin Patch\n*** Update File: 가.py\n@@\n-a\n+b\n*** End Patch\nnoise *** Add File: x\n"
    assert [(change.path, change.added, change.removed) for change in patch.changes(whole)] == [("가.py", 1, 1)]
    assert [change.path for change in patch.changes(whole[: whole.index("+b")])] == ["가.py"]
    assert patch.changes("no patch") == []


@pytest.mark.parametrize("tool", ["mcp__memorize__recall", "mcp__plugin_memorize_memorize__save"])
def test_our_own_tools_are_never_captured(tool: str) -> None:
    call = {
        "session_id": "s",
        "cwd": "/home/dev/project",
        "tool_name": tool,
        "tool_input": {"a": 1},
        "tool_response": "x",
    }
    for name in ("claude", "codex"):
        assert agent(name).parse(Capture(name, "PostToolUse", b"\1" * 16, 1, json.dumps(call).encode()), locate) == []


@pytest.mark.parametrize(
    "text",
    [
        "<" + " " * 1_000_000,
        "< /" * 300_000,
        "\\" * 999_999,
        "*** Begin Patch\n*** Add File: " + " x" * 300_000,
        "git commit " + "$(" * 200_000,
        "git commit " + "<<A " * 4_000,
        "[" * 300_000 + "a" * 300_000,
        "<memorize-context " * 100_000,
        "(a" * 200_000,
    ],
    ids=lambda text: text[:14],
)
def test_no_text_makes_the_reader_slow(text: str) -> None:
    for cut in (False, True):
        for key, event in (("prompt", "UserPromptSubmit"), ("command", "PostToolUse"), ("output", "PostToolUse")):
            call: dict[str, Any] = {"session_id": "s", "cwd": "/home/dev/project", "tool_name": "Bash"}
            call |= (
                {"prompt": text}
                if key == "prompt"
                else {"tool_input": {"command": text if key == "command" else "git commit"}}
            )
            call |= {"tool_response": text} if key == "output" else {}
            raw = json.dumps(call).encode()
            for name in ("claude", "codex"):
                for draft in agent(name).parse(Capture(name, event, b"", 1, raw[:-2] if cut else raw, cut), locate):
                    assert len(str(draft.payload)) < 100_000
