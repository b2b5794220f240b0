"""The record of a context, and the file that the hook reads."""

from __future__ import annotations

import json

from memorize.capture.memorize_hook import brief_key
from memorize.model import Context
from memorize.recall.brief import brief_file_bytes, brief_file_name, delivered_payload, record_line

CONTEXT = Context("<memorize-context>\n한글\n</memorize-context>\n", ((b"\x01" * 32, "standing", 0.6212345),), 42)


def test_the_record_holds_what_was_rendered_and_no_float():
    payload = delivered_payload(CONTEXT, "claude", "a" * 32, "SessionStart", "s1")
    assert payload == {
        "agent": "claude",
        "project": "a" * 32,
        "event": "SessionStart",
        "session": "s1",
        "items": [[b"\x01" * 32, "standing", 621_234]],
        "tokens": 42,
    }
    assert "session" not in delivered_payload(CONTEXT, "claude", "a" * 32, "SessionStart")


def test_the_record_line_is_one_line_that_reads_back():
    payload = delivered_payload(CONTEXT, "claude", "a" * 32, "SessionStart")
    line = record_line(payload)
    assert "\n" not in line
    assert line.isascii()
    assert json.loads(line)["items"] == [["01" * 32, "standing", 621_234]]


def test_the_file_is_what_the_hook_expects():
    cwd = "/home/me/프로젝트 with\nnewline"
    raw = brief_file_bytes("claude", cwd, '{"items":[]}', CONTEXT.text.encode())
    name, head = brief_key("claude", cwd)
    assert name == brief_file_name("claude", cwd)
    assert raw.startswith(head)
    record, _, text = raw[len(head) :].partition(b"\n")
    assert record == b'{"items":[]}'
    assert text == CONTEXT.text.encode()
