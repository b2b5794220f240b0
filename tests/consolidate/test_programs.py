"""Claude Code and Codex as models, played by programs that fail in every way that was seen or can be thought of."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.consolidate import claude_model, codex_model, said
from memorize.consolidate.child import Done
from memorize.consolidate.claude_model import ClaudeModel
from memorize.consolidate.codex_model import CodexModel
from memorize.consolidate.port import Model, ModelFailed
from tests.consolidate.programs import LONG_S, gone, printing, program, question

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are written as scripts with #!")

ANSWER = '{"memories": [{"text": "환불에는 멱등 키를 쓴다"}]}'
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 7}


def claude_says(result: object, **fields: object) -> bytes:
    """Return what ``claude -p --output-format json`` prints."""
    document = {"type": "result", "subtype": "success", "is_error": False, "result": result, "usage": USAGE}
    document |= {"total_cost_usd": 0.0012345, "modelUsage": {"claude-haiku": {}}, "stop_reason": "end_turn"}
    return json.dumps({**document, **fields}, ensure_ascii=False).encode()


def codex_says(text: str | None, **usage: int) -> bytes:
    """Return what ``codex exec --json`` prints."""
    lines: list[dict[str, Any]] = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"type": "error", "message": "Model metadata not found (a warning)"}},
        {"type": "turn.started"},
    ]
    if text is not None:
        lines.append({"type": "item.completed", "item": {"type": "reasoning", "text": "thinking about 429"}})
        lines.append({"type": "item.completed", "item": {"type": "agent_message", "text": text}})
    lines.append({"type": "turn.completed", "usage": usage})
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def codex_fails(message: str) -> bytes:
    return (json.dumps({"type": "turn.failed", "error": {"message": message}}) + "\n").encode()


def model(agent: str, path: Path) -> Model:
    if agent == "claude":
        return ClaudeModel(str(path), os.environ)
    return CodexModel(str(path), os.environ, path.parent / "config.toml")


def failure(asked: Model, deadline_s: float = 60.0) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        asked.ask(question(deadline_s=deadline_s))
    return caught.value


# -- answers


def test_an_answer_of_claude_comes_with_what_it_cost(tmp_path: Path) -> None:
    reply = model("claude", printing(tmp_path / "claude", claude_says(ANSWER))).ask(question())
    assert reply[:5] == (ANSWER, 3210, 7, 1234, "claude-haiku")


def test_an_answer_of_codex_is_its_last_message(tmp_path: Path) -> None:
    out = codex_says("first") + codex_says(ANSWER, input_tokens=5000, output_tokens=9)
    reply = model("codex", printing(tmp_path / "codex", out)).ask(question(model="gpt-x"))
    assert reply[:5] == (ANSWER, 5000, 9, None, "gpt-x")


def test_codex_is_read_from_its_file_when_it_prints_no_message(tmp_path: Path) -> None:
    body = """
import sys
words = sys.argv
open(words[words.index("-o") + 1], "w").write("메모")
print('{"type": "turn.completed", "usage": {"input_tokens": 4}}')
"""
    reply = model("codex", program(tmp_path / "codex", body, python=True)).ask(question())
    assert (reply.text, reply.tokens_in) == ("메모", 4)


def test_what_a_wrapper_prints_before_the_answer_is_passed_over(tmp_path: Path) -> None:
    out = "새 버전이 있습니다\n".encode() + claude_says(ANSWER) + b"\n"
    assert model("claude", printing(tmp_path / "claude", out)).ask(question()).text == ANSWER
    out = "새 버전이 있습니다\n".encode() + codex_says(ANSWER)
    assert model("codex", printing(tmp_path / "codex", out)).ask(question()).text == ANSWER


def test_a_list_of_all_messages_ends_with_the_answer(tmp_path: Path) -> None:
    out = b'[{"type": "system"}, ' + claude_says(ANSWER) + b"]"
    assert model("claude", printing(tmp_path / "claude", out)).ask(question()).text == ANSWER


def test_an_answer_of_two_megabytes_is_read_whole(tmp_path: Path) -> None:
    text = "가" * 700_000
    assert model("claude", printing(tmp_path / "claude", claude_says(text))).ask(question()).text == text
    assert model("codex", printing(tmp_path / "codex", codex_says(text))).ask(question()).text == text


# -- what they are told


def test_claude_is_told_to_bring_nothing_of_its_own(tmp_path: Path) -> None:
    body = f"""
import json, os, sys
seen = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "environ": dict(os.environ), "folder": os.listdir(".")}}
open({str(tmp_path / "seen")!r}, "w").write(json.dumps(seen))
print({claude_says(ANSWER).decode()!r})
"""
    ClaudeModel(str(program(tmp_path / "claude", body, python=True)), {**os.environ, "CLAUDECODE": "1"}).ask(question())
    seen = json.loads((tmp_path / "seen").read_text("utf-8"))
    argv = seen["argv"]
    assert json.loads(argv[argv.index("--settings") + 1]) == {"disableAllHooks": True}
    assert argv[argv.index("--tools") + 1] == ""
    assert argv[argv.index("--model") + 1] == "haiku"
    assert argv[argv.index("--system-prompt") + 1] == question().system
    assert {"-p", "--no-session-persistence", "--strict-mcp-config", "--disable-slash-commands"} <= set(argv)
    assert seen["stdin"] == question().prompt
    assert seen["folder"] == []
    assert seen["environ"]["MEMORIZE_GUARD"] == "1"
    assert seen["environ"]["CLAUDE_CODE_DISABLE_CLAUDE_MDS"] == "1"
    assert "CLAUDECODE" not in seen["environ"]


def test_codex_is_told_to_bring_nothing_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp_servers.files]\ncommand = "x"\n[mcp_servers."a b"]\ncommand = "y"\n')
    body = f"""
import json, os, sys
schema = open(sys.argv[sys.argv.index("--output-schema") + 1]).read()
seen = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "schema": json.loads(schema)}}
seen["guard"] = os.environ["MEMORIZE_GUARD"]
seen["folder"] = os.listdir(".")
open({str(tmp_path / "seen")!r}, "w").write(json.dumps(seen))
print({codex_says(ANSWER).decode().strip()!r})
"""
    model("codex", program(tmp_path / "codex", body, python=True)).ask(question())
    seen = json.loads((tmp_path / "seen").read_text("utf-8"))
    argv = seen["argv"]
    told = [argv[number + 1] for number, word in enumerate(argv) if word == "-c"]
    assert {"features.hooks=false", "features.shell_tool=false", "project_doc_max_bytes=0"} <= set(told)
    assert "mcp_servers.files.enabled=false" in told
    assert any(one == f'developer_instructions="{question().system}"' for one in told)
    assert argv[0] == "exec"
    assert argv[-1] == "-"
    assert {"--ephemeral", "--skip-git-repo-check", "read-only"} <= set(argv)
    assert (seen["stdin"], seen["schema"], seen["guard"]) == (question().prompt, question().schema, "1")
    assert seen["folder"] == []


@given(st.text())
def test_any_system_text_reaches_codex_unchanged(text: str) -> None:
    import tomllib

    clean = text.encode("utf-8", "replace").decode("utf-8")
    assert tomllib.loads(f"x = {codex_model._toml(text)}")["x"] == clean


def test_a_wrapper_that_switches_the_hooks_on_again_still_carries_the_guard(tmp_path: Path) -> None:
    inner = program(
        tmp_path / "real",
        f'printf %s "$MEMORIZE_GUARD" >"{tmp_path}/hook"\ncat >/dev/null\ncat "{tmp_path}/answer"',
    )
    (tmp_path / "answer").write_bytes(claude_says(ANSWER))
    wrapper = program(tmp_path / "claude", f'"{inner}" "$@" --settings \'{{"disableAllHooks":false}}\'')
    assert model("claude", wrapper).ask(question()).text == ANSWER
    assert (tmp_path / "hook").read_text() == "1"


# -- failures


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_wrapper_with_a_child_is_over_at_the_deadline(tmp_path: Path, agent: str) -> None:
    wrapper = program(tmp_path / agent, f"sleep {LONG_S} &\necho $! >'{tmp_path}/pid'\nwait")
    began = time.monotonic()
    assert failure(model(agent, wrapper), deadline_s=1).kind == "timeout"
    assert time.monotonic() - began < 1 + 2
    assert gone(int((tmp_path / "pid").read_text()))


CASES = {
    # name: (what claude prints, what codex prints, status, what goes to stderr, kind)
    "nothing": (b"", b"", 0, "", "empty"),
    "spaces": (claude_says(" \n "), codex_says(" \n "), 0, "", "empty"),
    "no message": (claude_says(None), codex_says(None), 0, "", "empty"),
    "garbage": (b"\x80\xff<html>oops", b"\x80\xff<html>oops", 0, "", "garbled"),
    "another JSON": (b'{"hello": 1}', b"17", 0, "", "garbled"),
    "exit 1 without a word": (b"", b"", 1, "", "exit"),
    "exit 1 and a stack": (b"", b"", 1, "Error: boom\n    at x", "exit"),
    "an option it does not know": (b"", b"", 2, "error: unknown option '--tools'", "exit"),
    "not logged in": (
        claude_says("Not logged in · Please run /login", is_error=True),
        codex_fails("Missing environment variable: `KEY`."),
        1,
        "",
        "not-logged-in",
    ),
    "401": (
        claude_says("Invalid API key · Fix external API key", is_error=True),
        codex_fails("unexpected status 401 Unauthorized"),
        1,
        "",
        "not-logged-in",
    ),
    "429": (
        claude_says("API Error: Request rejected (429)", is_error=True),
        codex_fails("exceeded retry limit, last status: 429 Too Many Requests"),
        1,
        "",
        "rate-limited",
    ),
    "the limit of a subscription": (
        claude_says("You've hit your limit · resets 3pm (Asia/Seoul)", is_error=True),
        codex_fails("You've hit your usage limit. Upgrade to Pro"),
        1,
        "",
        "rate-limited",
    ),
    "a limit that passes for an answer": (
        claude_says("Claude AI usage limit reached|1735689600"),
        codex_says("You have reached the usage limit."),
        0,
        "",
        "rate-limited",
    ),
    "is_error with success": (
        claude_says("API Error: 500", is_error=True),
        codex_fails("stream error: 500"),
        0,
        "",
        "exit",
    ),
    "a refusal by the service": (
        claude_says("API Error: this request appears to violate our Usage Policy", is_error=True),
        codex_fails("invalid_prompt: flagged"),
        1,
        "",
        "refused",
    ),
    "not UTF-8": (b"\xff\xfe\xfa", b"\xff\xfe\xfa", 1, "", "exit"),
}


@pytest.mark.parametrize("agent", ["claude", "codex"])
@pytest.mark.parametrize("name", CASES)
def test_every_failure_has_its_kind_and_no_answer(tmp_path: Path, agent: str, name: str) -> None:
    of_claude, of_codex, status, err, kind = CASES[name]
    path = printing(tmp_path / agent, of_claude if agent == "claude" else of_codex, status, err)
    failed = failure(model(agent, path))
    assert failed.kind == kind, failed
    assert "\n" not in failed.detail
    assert len(failed.detail) <= 300


def test_a_refusal_of_the_model_is_told_as_one(tmp_path: Path) -> None:
    path = printing(tmp_path / "claude", claude_says("I can't help with that.", stop_reason="refusal"))
    failed = failure(model("claude", path))
    assert (failed.kind, failed.tokens_in, failed.tokens_out, failed.cost_usd_micro) == ("refused", 3210, 7, 1234)


def test_an_answer_that_speaks_of_limits_is_an_answer(tmp_path: Path) -> None:
    text = '{"memories": [{"text": "The API answers 429 above 10 requests; rate limit agreed"}]}'
    assert model("claude", printing(tmp_path / "claude", claude_says(text))).ask(question()).text == text
    assert model("codex", printing(tmp_path / "codex", codex_says(text))).ask(question()).text == text


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_program_that_vanished_is_missing(tmp_path: Path, agent: str) -> None:
    asked = model(agent, printing(tmp_path / agent, b""))
    (tmp_path / agent).unlink()
    assert failure(asked).kind == "missing"


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_program_that_is_killed_in_the_middle_has_failed(tmp_path: Path, agent: str) -> None:
    out = claude_says(ANSWER)[:40] if agent == "claude" else codex_says(ANSWER)
    path = printing(tmp_path / "out", out)
    assert failure(model(agent, program(tmp_path / agent, f"'{path}' </dev/null\nkill -9 $$"))).kind == "exit"


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_output_without_end_is_too_large(tmp_path: Path, agent: str) -> None:
    assert failure(model(agent, program(tmp_path / agent, "exec yes '{}'"))).kind == "too-large"


def test_a_place_that_holds_no_room_is_a_failure_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    assert failure(model("claude", printing(tmp_path / "claude", b""))).kind == "exit"


@given(st.binary(), st.binary(), st.integers(-20, 255))
def test_no_output_whatever_is_an_error_of_ours(out: bytes, err: bytes, status: int) -> None:
    for read in (
        lambda done: claude_model.read(done, "m", 1.0),
        lambda done: codex_model.read(done, out, "m", 1.0),
    ):
        with contextlib.suppress(ModelFailed):
            read(Done(status, out, err, 0.1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["result", "is_error", "usage", "total_cost_usd", "modelUsage", "stop_reason", "type", "item", "error"]
        ),
        JSON,
    )
)
def test_no_shape_of_json_whatever_is_an_error_of_ours(document: dict[str, object]) -> None:
    raw = json.dumps(document).encode()
    for kind in ("turn.completed", "item.completed", "error", "turn.failed"):
        lines = json.dumps({**document, "type": kind}).encode()
        for read in (
            lambda done: claude_model.read(done, "m", 1.0),
            lambda done, lines=lines: codex_model.read(done._replace(out=lines), b"", "m", 1.0),
        ):
            try:
                reply = read(Done(0, raw, b"", 0.1))
            except ModelFailed:
                continue
            assert reply.tokens_in >= 0


def test_a_korean_sentence_is_no_notice() -> None:
    assert said.notice_of("로그인 화면의 사용량 제한을 정했다") is None
