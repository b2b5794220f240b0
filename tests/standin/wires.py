"""How a model's turn looks on the wire: Anthropic Messages and OpenAI Responses, both streamed.

A turn is ``{"say": text, "call": [tool, input]}``, either part optional; ``input`` is a map, or text for a tool of
Codex that takes free text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

Turn = Mapping[str, Any]
Event = dict[str, Any]
_PIECE = 300


def name_of(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex[:24]}"


def pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def tokens(body: Mapping[str, Any]) -> int:
    return len(json.dumps(body)) // 4


# -- Anthropic Messages


def messages(turn: Turn, body: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of one streamed answer of ``/v1/messages``."""
    usage = {"input_tokens": tokens(body), "output_tokens": 1}
    head = {"id": name_of("msg"), "type": "message", "role": "assistant", "model": body.get("model", "stand-in")}
    rest = {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": {**head, **rest}}
    index = 0
    if turn.get("say"):
        yield from _block(index, {"type": "text", "text": ""}, "text_delta", "text", turn["say"])
        index += 1
    if turn.get("call"):
        tool, given = turn["call"]
        block = {"type": "tool_use", "id": name_of("toolu"), "name": tool, "input": {}}
        yield from _block(index, block, "input_json_delta", "partial_json", json.dumps(given))
    reason = "tool_use" if turn.get("call") else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 20},
    }
    yield {"type": "message_stop"}


def _block(index: int, block: Event, kind: str, field: str, text: str) -> Iterator[Event]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for piece in pieces(text):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}
    yield {"type": "content_block_stop", "index": index}


# -- OpenAI Responses


def responses(turn: Turn, body: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the events of one streamed answer of ``/v1/responses``."""
    events = list(_response(turn, body))
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _response(turn: Turn, body: Mapping[str, Any]) -> Iterator[Event]:
    answer: Event = {
        "id": name_of("resp"),
        "object": "response",
        "created_at": 1_796_000_000,
        "model": body.get("model", "stand-in"),
        "status": "in_progress",
        "output": [],
    }
    yield {"type": "response.created", "response": answer}
    items = list(_items(turn))
    for index, item in enumerate(items):
        begun = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        for piece in pieces(turn["say"]) if item["type"] == "message" else ():
            yield {
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": index,
                "content_index": 0,
                "delta": piece,
            }
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    spent = tokens(body)
    usage = {
        "input_tokens": spent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent + 20,
    }
    yield {
        "type": "response.completed",
        "response": {**answer, "status": "completed", "output": items, "usage": usage},
    }


def _items(turn: Turn) -> Iterator[Event]:
    if turn.get("say"):
        part = {"type": "output_text", "text": turn["say"], "annotations": []}
        yield {
            "type": "message",
            "id": name_of("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    if turn.get("call"):
        tool, given = turn["call"]
        call = {"id": name_of("item"), "status": "completed", "call_id": name_of("call"), "name": tool}
        if isinstance(given, str):
            yield {"type": "custom_tool_call", **call, "input": given}
        else:
            yield {"type": "function_call", **call, "arguments": json.dumps(given)}


# -- what was asked


def texts(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (role, text) of everything that a request of either kind tells the model, in order."""
    yield from (("system", text) for text in _strings(body.get("system")))
    yield from (("system", text) for text in _strings(body.get("instructions")))
    for key in ("messages", "input"):
        for message in body.get(key) or ():
            role = str(message.get("role") or message.get("type") or "")
            yield from ((role, text) for text in _strings(message.get("content", message.get("output"))))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(value.get("text", value.get("content")))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
