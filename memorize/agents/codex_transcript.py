"""Codex's transcripts ("rollouts"): one JSON object a line, ``{timestamp, type, payload}``.

The person's words are read from the events, since a ``response_item`` of role user also holds environment and
instructions; the agent's from the response items; role developer is instructions and what hooks injected. Forms differ
between versions (0.171 says ``item_completed``, older ones ``user_message``), so both are understood.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memorize.agents import payload, transcripts
from memorize.agents.transcripts import ASSISTANT, SUMMARY, TOOL, USER, Head, Line

_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
# Calls whose outcome tells nothing about the work.
_SILENT: Final = frozenset({"update_plan", "spawn_agent", "wait_agent", "close_agent", "resume_agent", "view_image"})
_OWN: Final = "memorize"
_SUMMARISED: Final = "Another language model started to solve this problem"


def read(chunk: bytes, start: int) -> list[Line]:
    """Return the messages on the whole lines of a chunk that begins at offset ``start`` of the file."""
    called: dict[str, tuple[str, str]] = {}
    subagent, cwd = False, ""
    found: list[Line] = []
    for record, end in transcripts.records(chunk, start):
        body = record.get("payload")
        if not isinstance(body, dict):
            continue
        if record.get("type") in ("session_meta", "turn_context"):
            subagent = subagent or _is_subagent(body)
            cwd = payload.text_of(body, "cwd") or cwd
        for role, text, given in _said(str(record.get("type")), body, called):
            # The person speaks to the agent; what a subagent is told comes from the agent.
            who = ASSISTANT if role == USER and subagent else role
            trust = {USER: "user", TOOL: "external"}.get(who, "agent")
            # Ids are short counters with some providers, so that only with the text do they name a message.
            name = f"{given}:{transcripts.digest(text)[:16]}" if given else ""
            one = transcripts.line(who, text, trust, name, transcripts.at_ms(record.get("timestamp")), end)
            if one and not _repeats(one, found):
                found.append(one._replace(cwd=cwd))
    return found


def _repeats(one: Line, found: Sequence[Line]) -> bool:
    """Tell whether words are those of the line before, which some versions report in two forms."""
    return bool(found) and one.role != TOOL and (one.role, one.text) == (found[-1].role, found[-1].text)


def _said(kind: str, body: Mapping[str, Any], called: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield (role, text, id) of what a line says; ``called`` remembers which tool was called how."""
    what = payload.text_of(body, "type")
    identity = payload.text_of(body, "id", "call_id")
    if kind == "event_msg":
        item = payload.map_of(body, "item")
        if what == "item_completed" and item.get("type") == "UserMessage":
            said = transcripts.words(item.get("content"), "text", "Text", "input_text")
            yield USER, said, payload.text_of(item, "id")
        elif what == "user_message":
            yield USER, transcripts.words(payload.text_of(body, "message")), identity
    elif kind == "compacted":
        text = payload.text_of(body, "message")
        # The fixed preface of a hand-over is for the next model.
        yield SUMMARY, text.split("\n", 1)[-1] if text.startswith(_SUMMARISED) else text, ""
    elif kind == "response_item":
        if what == "message" and body.get("role") == "assistant":
            yield ASSISTANT, transcripts.texts(body.get("content"), "output_text", "text"), identity
        elif what in _CALLS:
            called[payload.text_of(body, "call_id", "id")] = (payload.text_of(body, "name"), _command(body))
        elif what in _OUTPUTS:
            name, command = called.get(payload.text_of(body, "call_id"), ("", ""))
            if name not in _SILENT and _OWN not in payload.text_of(body, "namespace") + name:
                yield TOOL, transcripts.tool_text(command, _output(body.get("output"))), identity


def _command(body: Mapping[str, Any]) -> str:
    """Return what a call ran: a command line, else the name of the tool."""
    given: Any = payload.text_of(body, "arguments")
    try:
        given = json.loads(given, strict=False) if given else body.get("action")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return payload.text_of(body, "name")
    words = given.get("cmd", given.get("command"))
    if isinstance(words, list):
        words = " ".join(word for word in words if isinstance(word, str))
    return words if isinstance(words, str) and words else payload.text_of(body, "name")


def _output(value: Any) -> str:
    """Return the output of a call: text, blocks of text, or (older versions) JSON with ``output`` in it."""
    text = transcripts.texts(value, "text", "input_text", "output_text")
    if isinstance(value, dict):
        text = payload.text_of(value, "content", "output")
    if text.startswith('{"output"'):
        try:
            inner = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return text
        return payload.text_of(inner, "output") if isinstance(inner, dict) else text
    return text


def _is_subagent(meta: Mapping[str, Any]) -> bool:
    source = meta.get("source")
    return meta.get("thread_source") == "subagent" or (isinstance(source, dict) and "subagent" in source)


def head(chunk: bytes, path: Path) -> Head:
    """Return which session a transcript is of, by the line that begins it; by its name when that is damaged."""
    for record, _ in transcripts.records(chunk, 0):
        meta = record.get("payload")
        if record.get("type") != "session_meta" or not isinstance(meta, dict):
            continue
        own = payload.text_of(meta, "id")
        session = payload.text_of(meta, "session_id", "id") or own
        part = own if _is_subagent(meta) else ""
        if part and session == part:
            session = payload.text_of(meta, "parent_thread_id") or session
        branch = payload.text_of(payload.map_of(meta, "git"), "branch")
        found = (session, part, payload.text_of(meta, "cwd"), branch)
        return Head(*(payload.plain(text) for text in found))
    return Head(path.stem[-36:], "", "", "")


def parts(transcript: Path) -> list[Path]:
    """Return the transcripts of a session's subagents: files beside it that name it in their first line."""
    session = _head_of(transcript).session
    found = []
    for path in sorted(transcript.parent.glob("rollout-*.jsonl")) if session else ():
        if path != transcript:
            other = _head_of(path)
            if other.part and other.session == session:
                found.append(path)
    return found


def _head_of(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            return head(file.read(transcripts.HEAD_BYTES), path)
    except OSError:
        return Head("", "", "", "")
