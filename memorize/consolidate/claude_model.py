"""Ask ``claude -p``, with the person's own login: no hooks, no tools, no servers, no session file, no CLAUDE.md.

The schema is not handed over: with it the program offers a tool for the answer, and a model that answers in plain text
is asked once more, paid once more, and its first answer is lost. The reader takes JSON from any text instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from memorize.consolidate import child, said
from memorize.consolidate.port import ModelFailed, Reply, Request

NAME: Final = "claude"
# The smallest of the family reads a window well; the person may choose another one.
MODEL: Final = "haiku"
ENVIRON: Final = MappingProxyType(
    {
        "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
)
_FLAGS: Final = (
    "-p",
    "--output-format",
    "json",
    "--settings",
    '{"disableAllHooks":true}',
    "--no-session-persistence",
    "--tools",
    "",
    "--strict-mcp-config",
    "--disable-slash-commands",
)


class ClaudeModel:
    """Claude Code as a model. ``program`` is the command's path, ``environ`` the person's environment."""

    name: Final = NAME

    def __init__(self, program: str, environ: Mapping[str, str], model: str = "") -> None:
        """``model`` empty: the smallest one."""
        self._program = program
        self._environ = environ
        self._model = model or MODEL

    def ask(self, request: Request) -> Reply:
        """Return the answer. Raises ModelFailed."""
        model = request.model or self._model
        argv = [self._program, *_FLAGS, "--model", model, "--system-prompt", request.system]
        try:
            with child.workplace() as place:
                done = child.run(
                    argv,
                    request.prompt.encode("utf-8", "replace"),
                    child.environment(self._environ, {**ENVIRON, "API_TIMEOUT_MS": f"{request.deadline_s * 1000:.0f}"}),
                    place / "empty",
                    request.deadline_s,
                )
        except OSError as error:
            raise child.failure(self._program, error) from error
        return read(done, model, request.deadline_s)


def read(done: child.Done, model: str, deadline_s: float) -> Reply:
    """Return what the program answered. Exit status and ``is_error`` tell a failure, ``subtype`` does not.

    Raises ModelFailed.
    """
    if done.late:
        raise ModelFailed("timeout", f"claude did not answer within {deadline_s:g} s")
    if done.large:
        raise ModelFailed("too-large", f"claude printed more than {child.OUTPUT_BYTES_MAX >> 20} MiB")
    document = _document(done.out)
    if document is None:
        message = said.last_line(done.err) or said.last_line(done.out)
        if done.status:
            raise ModelFailed(said.kind_of(message) or "exit", message or f"claude left with status {done.status}")
        if not done.out.strip():
            raise ModelFailed("empty", message or "claude printed nothing")
        raise ModelFailed(said.notice_of(message) or "garbled", f"claude printed no JSON: {message}")
    text = document.get("result")
    text = text if isinstance(text, str) else ""
    spent = _spent(document)
    if done.status or document.get("is_error"):
        message = text or said.last_line(done.err) or f"claude left with status {done.status}"
        raise ModelFailed(said.kind_of(message) or "exit", message, **spent)
    if document.get("stop_reason") == "refusal":
        raise ModelFailed("refused", text or "the model refused to answer", **spent)
    if not text.strip():
        raise ModelFailed("empty", "the answer has no text", **spent)
    if (kind := said.notice_of(text)) is not None:
        raise ModelFailed(kind, text, **spent)
    return Reply(text, **spent, model=_model(document) or model, seconds=done.seconds)


def _document(raw: bytes) -> dict[str, Any] | None:
    """Return the object that ends the output; a wrapper or the program may have printed something before it."""
    text = raw.decode("utf-8", "replace").strip()
    for candidate in (text, text.rsplit("\n", 1)[-1]):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list):  # every message of the run, as with "verbose" in the person's settings
            value = next(
                (one for one in reversed(value) if isinstance(one, dict) and one.get("type") == "result"), None
            )
        if isinstance(value, dict) and ("result" in value or "is_error" in value):
            return value
    return None


def _spent(document: Mapping[str, Any]) -> dict[str, Any]:
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    cost = document.get("total_cost_usd")
    return {
        "tokens_in": sum(_count(usage.get(part)) for part in parts),
        "tokens_out": _count(usage.get("output_tokens")),
        "cost_usd_micro": round(cost * 1_000_000) if isinstance(cost, int | float) and 0 <= cost < 1e6 else None,
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40 else 0


def _model(document: Mapping[str, Any]) -> str:
    models = document.get("modelUsage")
    return str(next(iter(models), "")) if isinstance(models, dict) else ""
