"""The model that follows a script, asked as the agents ask it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.standin import wires

ROOT = Path(__file__).resolve().parents[2]
Ask = Callable[[str, dict[str, Any]], str]
TURNS = [{"say": "먼저 봅니다. " * 60, "call": ["Bash", {"command": "ls -l '한글'"}]}, {"say": "끝"}]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    (tmp_path / "script.json").write_text(json.dumps({"name": "one", "turns": TURNS}), encoding="utf-8")
    server = subprocess.Popen([sys.executable, "-m", "tests.standin", str(tmp_path)], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "port").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        port = (tmp_path / "port").read_text("ascii")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def post(path: str, body: dict[str, Any]) -> str:
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode())
            with opener.open(request, timeout=60) as answer:
                return str(answer.read().decode())

        yield post
    finally:
        server.kill()
        server.wait()


def events(stream: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in stream.splitlines() if line.startswith("data: ")]


def test_the_messages_stream_says_the_turns_in_order(ask: Ask, tmp_path: Path) -> None:
    body = {
        "model": "m",
        "stream": True,
        "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": "안녕"}],
    }
    first = events(ask("/v1/messages?beta=true", body))
    deltas = [event["delta"] for event in first if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == TURNS[0]["say"]
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {"command": "ls -l '한글'"}
    assert first[-2]["delta"]["stop_reason"] == "tool_use"
    second = events(ask("/v1/messages", body))
    assert second[-2]["delta"]["stop_reason"] == "end_turn"
    noted = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text("utf-8").splitlines()]
    assert [(one["script"], one["body"]) for one in noted] == [("one", body)] * 2


def test_the_responses_stream_ends_with_all_that_was_said(ask: Ask) -> None:
    body = {
        "model": "m",
        "stream": True,
        "tools": [{"name": "exec_command"}],
        "input": [{"role": "user", "content": "x"}],
    }
    stream = events(ask("/v1/responses", body))
    assert [event["sequence_number"] for event in stream] == list(range(len(stream)))
    message, call = stream[-1]["response"]["output"]
    assert message["content"][0]["text"] == TURNS[0]["say"]
    assert (call["type"], json.loads(call["arguments"])) == ("function_call", {"command": "ls -l '한글'"})


def test_requests_beside_the_conversation_take_no_turn(ask: Ask) -> None:
    aside = json.loads(ask("/v1/messages", {"messages": [{"role": "user", "content": "a title?"}]}))
    assert aside["content"] == [{"type": "text", "text": "ok"}]
    assert json.loads(ask("/v1/messages/count_tokens", {"messages": []}))["input_tokens"] > 0
    first = events(ask("/v1/messages", {"stream": True, "tools": [{}], "messages": []}))
    assert any("먼저" in event.get("delta", {}).get("text", "") for event in first)


def test_everything_that_a_request_tells_the_model_is_found_in_order() -> None:
    messages = {
        "system": [{"type": "text", "text": "a"}],
        "messages": [
            {"role": "user", "content": "b"},
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "c"}]}]},
        ],
    }
    assert list(wires.texts(messages)) == [("system", "a"), ("user", "b"), ("user", "c")]
    responses = {
        "instructions": "a",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "b"}]},
            {"type": "function_call_output", "output": "c"},
        ],
    }
    assert list(wires.texts(responses)) == [("system", "a"), ("developer", "b"), ("function_call_output", "c")]
