"""Transcripts as the agents wrote them (only cut), and as crashes, forks and other versions leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize import limits
from memorize.agents import agent, transcripts
from memorize.agents.transcripts import Line

DATA = Path(__file__).parents[1] / "data" / "transcripts"
KOREAN = "환불은 반드시 한 번만 한다."
SECRET = "sk-ant-" + "a1B2c3D4e5F6g7H8" * 3


def recorded(name: str) -> bytes:
    return (DATA / f"{name}.jsonl").read_bytes()


def spoken(name: str, raw: bytes, start: int = 0) -> list[tuple[str, str]]:
    return [(line.role, line.text) for line in agent(name).transcript_lines(raw, start)]


def jsonl(*records: Any) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def claude_line(content: Any, who: str = "user", uuid: str = "u1", **fields: Any) -> dict[str, Any]:
    message = {"role": who, "content": content}
    return {"type": who, "uuid": uuid, "timestamp": "2026-11-29T18:31:16.000Z", "message": message, **fields}


def codex_line(payload: dict[str, Any], kind: str = "event_msg") -> dict[str, Any]:
    return {"timestamp": "2026-11-29T18:31:16.000Z", "type": kind, "payload": payload}


def codex_item(what: str, **fields: Any) -> dict[str, Any]:
    return codex_line({"type": what, **fields}, "response_item")


# -- what the agents wrote ----------------------------------------------------------------------------------------


def test_of_a_recorded_session_only_what_was_said_and_done_is_read() -> None:
    lines = agent("claude").transcript_lines(recorded("claude"), 0)
    assert [(line.role, line.trust) for line in lines] == [
        ("user", "user"),
        ("assistant", "agent"),
        ("tool", "external"),
        ("tool", "external"),
        ("tool", "external"),
        ("assistant", "agent"),
    ]
    assert lines[0].text == "Write hello.txt and show it"
    assert lines[4].text == "$ cat missing.txt\nExit code 1\ncat: missing.txt: No such file or directory"
    assert [line.at_ms for line in lines] == sorted(line.at_ms for line in lines)
    assert lines[0].at_ms == 1795976614241


def test_requests_attachments_commands_and_notifications_are_no_messages() -> None:
    assert spoken("claude", recorded("claude-resumed")) == [
        ("user", "hello one"),
        ("assistant", "first answer"),
        ("user", "hello two"),
        ("assistant", "second answer"),
        ("summary", spoken("claude", recorded("claude-resumed"))[4][1]),
        ("user", "PARENTPROMPT use a subagent"),
        ("assistant", "parent done"),
        ("assistant", "x"),
    ]


def test_a_fork_repeats_its_parents_messages_under_the_same_ids() -> None:
    parent = {line.id for line in agent("claude").transcript_lines(recorded("claude-resumed"), 0)}
    fork = agent("claude").transcript_lines(recorded("claude-forked"), 0)
    assert [line.text for line in fork if line.id not in parent] == ["forked", "y"]


def test_nobody_but_the_agent_speaks_to_a_subagent() -> None:
    for name in ("claude", "codex"):
        lines = agent(name).transcript_lines(recorded(f"{name}-subagent"), 0)
        assert lines[0].text == "SUBAGENTPROMPT do it"
        assert {line.trust for line in lines} <= {"agent", "external"}


def test_codex_words_come_from_events_and_instructions_are_none() -> None:
    assert [pair for pair in spoken("codex", recorded("codex-resumed")) if pair[0] != "tool"] == [
        ("user", "hello one"),
        ("assistant", "first"),
        ("user", "hello two"),
        ("assistant", "second"),
    ]
    assert ("summary", "SUMMARYMARK") in spoken("codex", recorded("codex-compacted"))


def test_codex_tells_the_command_above_its_output() -> None:
    (tool,) = [text for role, text in spoken("codex", recorded("codex-compacted")) if role == "tool"]
    assert tool.startswith("$ echo 1\n")
    assert tool.endswith("1")


def test_the_head_tells_session_part_and_folder() -> None:
    claude, codex = agent("claude"), agent("codex")
    folder = Path("/home/dev/.claude/projects/-home-dev-project")
    head = claude.transcript_head(recorded("claude"), folder / "5f2c.jsonl")
    assert (head.session, head.part, head.cwd, head.branch) == ("5f2c", "", "/home/dev/project", "master")
    part = claude.transcript_head(recorded("claude-subagent"), folder / "5f2c" / "subagents" / "agent-1.jsonl")
    assert (part.session, part.part) == ("5f2c", "agent-1")
    parent = codex.transcript_head(recorded("codex-parent"), Path("rollout-x.jsonl"))
    child = codex.transcript_head(recorded("codex-subagent"), Path("rollout-y.jsonl"))
    assert (parent.session, parent.part, parent.cwd) == (child.session, "", "/home/dev/project")
    assert child.part not in ("", parent.session)


def test_codex_finds_the_subagents_of_a_session_beside_it(tmp_path: Path) -> None:
    for name in ("parent", "subagent", "resumed"):
        (tmp_path / f"rollout-{name}.jsonl").write_bytes(recorded(f"codex-{name}"))
    found = agent("codex").transcript_parts(tmp_path / "rollout-parent.jsonl")
    assert [path.name for path in found] == ["rollout-subagent.jsonl"]
    assert agent("codex").transcript_parts(tmp_path / "rollout-missing.jsonl") == []


def test_claude_finds_the_subagents_of_a_session_below_it(tmp_path: Path) -> None:
    folder = tmp_path / "5f2c" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_bytes(b"")
    assert agent("claude").transcript_parts(tmp_path / "5f2c.jsonl") == [folder / "agent-1.jsonl"]
    assert agent("claude").transcript_parts(tmp_path / "none.jsonl") == []


# -- other versions, and what must not be read --------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        claude_line("Caveat", isMeta=True),
        claude_line("<command-name>/clear</command-name>"),
        claude_line("  <local-command-stdout>ok</local-command-stdout>"),
        claude_line("done", promptSource="system"),
        claude_line("done", origin={"kind": "task-notification"}),
        claude_line("<system-reminder>Today is Sunday.</system-reminder>"),
        {**claude_line(KOREAN), "type": "api-request-blob"},
        {key: value for key, value in claude_line(KOREAN).items() if key != "uuid"},
        {"type": "attachment", "uuid": "u", "attachment": {"type": "hook_additional_context", "content": KOREAN}},
        {"type": "queue-operation", "operation": "enqueue", "content": KOREAN},
        {"type": "a type of next year", "uuid": "u", "message": [KOREAN]},
        claude_line("<memorize-context>\n- 환불\n</memorize-context>"),
        claude_line("<private>비밀</private>"),
        claude_line(None),
        claude_line([{"type": "image", "source": {"data": "AAAA"}}]),
    ],
)
def test_what_is_nobodys_words_is_skipped(record: dict[str, Any]) -> None:
    assert agent("claude").transcript_lines(jsonl(record), 0) == []


def test_reminders_beside_a_persons_words_are_left_out() -> None:
    content = [
        {"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"},
        {"type": "text", "text": KOREAN + "<system-reminder>hook: 항상 병합</system-reminder>"},
    ]
    assert spoken("claude", jsonl(claude_line(content))) == [("user", KOREAN)]


def test_own_tools_and_readers_give_no_lines() -> None:
    used = [
        {"type": "tool_use", "id": "t1", "name": "mcp__memorize__search", "input": {"query": "환불"}},
        {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "a.py"}},
        {"type": "tool_use", "id": "t3", "name": "WebFetch", "input": {"url": "https://example.com/문서"}},
    ]
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": f"result {n}"} for n in (1, 2, 3)]
    lines = agent("claude").transcript_lines(
        jsonl(claude_line(used, "assistant", "a1"), claude_line(results, "user", "u2")), 0
    )
    assert [(line.role, line.trust, line.text) for line in lines] == [
        ("tool", "external", "$ https://example.com/문서\nresult 3")
    ]


def test_several_results_on_one_line_have_names_of_their_own() -> None:
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "same"} for n in (1, 2)]
    names = [line.id for line in agent("claude").transcript_lines(jsonl(claude_line(results)), 0)]
    assert len(names) == len(set(names)) == 2


def test_older_codex_versions_are_read_once() -> None:
    item = {"type": "UserMessage", "id": "i", "content": [{"type": "text", "text": KOREAN}]}
    called = {
        "type": "function_call",
        "name": "shell",
        "call_id": "c",
        "arguments": '{"command": ["bash", "-lc", "ls"]}',
    }
    output = '{"output": "a.py\\n", "metadata": {}}'
    raw = jsonl(
        {"timestamp": "2025-06-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/p"}},
        codex_item("message", role="user", content=[{"type": "input_text", "text": "<environment_context>"}]),
        codex_line({"type": "user_message", "message": KOREAN}),
        codex_line({"type": "item_completed", "item": item}),
        codex_line({"type": "agent_message", "message": "알겠습니다"}),
        codex_item("message", role="assistant", content=[{"type": "output_text", "text": "알겠습니다"}]),
        codex_line(called, "response_item"),
        codex_item("function_call_output", call_id="c", output=output),
    )
    assert spoken("codex", raw) == [("user", KOREAN), ("assistant", "알겠습니다"), ("tool", "$ bash -lc ls\na.py")]


def test_the_same_words_at_two_times_are_two_messages_without_ids_too() -> None:
    first = codex_line({"type": "user_message", "message": "yes"})
    asked = codex_item("message", role="assistant", content="And now?")
    lines = agent("codex").transcript_lines(jsonl(first, asked, {**first, "timestamp": "2025-06-01T00:01:00Z"}), 0)
    assert [line.text for line in lines] == ["yes", "And now?", "yes"]
    assert len({line.id for line in lines}) == 3


def test_secrets_are_redacted_and_long_texts_cut() -> None:
    raw = jsonl(
        claude_line(f"Use the key {SECRET} for {KOREAN}"),
        claude_line([{"type": "tool_result", "tool_use_id": "t", "content": "가" * 100_000}], uuid="u2"),
        claude_line("나" * 100_000, uuid="u3"),
    )
    first, tool, long = agent("claude").transcript_lines(raw, 0)
    assert SECRET not in first.text
    assert KOREAN in first.text
    assert len(tool.text) <= limits.OUTPUT_TAIL_CHARS_MAX
    assert len(long.text) <= limits.TEXT_CHARS_MAX


# -- damage -------------------------------------------------------------------------------------------------------


def test_half_a_last_line_waits_and_is_read_when_it_is_whole() -> None:
    raw = jsonl(claude_line("one"), claude_line(KOREAN, uuid="u2"))
    for cut in range(raw.index(b"\n") + 1, len(raw)):
        assert spoken("claude", raw[:cut]) == [("user", "one")]
    assert spoken("claude", raw) == [("user", "one"), ("user", KOREAN)]


def test_spliced_lines_lose_nothing_that_is_whole() -> None:
    one, two, three = (jsonl(claude_line(text, uuid=text)).strip() for text in ("one", KOREAN, "three"))
    for cut in range(1, len(one) - 1):
        assert [text for _, text in spoken("claude", one[:cut] + two + b"\n" + three + b"\n")] == [KOREAN, "three"]
    assert [text for _, text in spoken("claude", one + two + b"\n" + three + b"\n")] == ["one", KOREAN, "three"]


def test_the_end_of_a_line_is_its_offset_in_the_file() -> None:
    first, second = jsonl(claude_line("one")), jsonl(claude_line("둘", uuid="u2"))
    assert [line.end for line in agent("claude").transcript_lines(first + second, 1000)] == [
        1000 + len(first),
        1000 + len(first) + len(second),
    ]


def test_a_line_that_holds_a_whole_file_is_passed_over() -> None:
    huge = jsonl(claude_line("x" * (transcripts.LINE_BYTES_MAX + 1)))
    assert spoken("claude", huge + jsonl(claude_line("after", uuid="u2"))) == [("user", "after")]


@pytest.mark.parametrize("name", ["claude", "codex"])
@given(noise=st.lists(st.tuples(st.integers(0, 60_000), st.binary(max_size=40)), max_size=6))
def test_no_damage_makes_a_reader_fail(name: str, noise: list[tuple[int, bytes]]) -> None:
    raw = recorded(f"{name}-resumed")
    for place, bytes_ in noise:
        raw = raw[:place] + bytes_ + raw[place + len(bytes_) // 2 :]
    for line in agent(name).transcript_lines(raw, 0):
        assert isinstance(line, Line)
        assert line.text == line.text.strip() != ""
    agent(name).transcript_head(raw, Path("x.jsonl"))


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize(
    "value", [None, 1, "text", [], {}, {"type": "user"}, {"type": "response_item", "payload": 3}, [[[[]]]]]
)
def test_records_of_other_shapes_say_nothing(name: str, value: Any) -> None:
    assert agent(name).transcript_lines(jsonl(value, {"payload": value}, {"message": value}), 0) == []
    deep = b'{"type":"user","uuid":"u","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    assert agent(name).transcript_lines(deep, 0) == []
