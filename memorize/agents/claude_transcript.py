"""Claude Code's transcripts: one JSON object a line; of the many types only what somebody said or a tool gave counts.

Requests are logged beside the messages and repeat them; attachments hold system prompts and what hooks injected; a
fork repeats the lines of its parent under the same ``uuid``. So only ``user`` and ``assistant`` lines with a ``uuid``
and a ``message`` are read, and of those only what is no bookkeeping of the program itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memorize.agents import payload, transcripts, turns
from memorize.agents.transcripts import ASSISTANT, SUMMARY, TOOL, USER, Head, Line

# What only looks: most of a transcript's bytes, and nothing that a later session would miss.
_LOOKING: Final = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead", "TodoRead", "TodoWrite", "ToolSearch"})
# The launch of a subagent says nothing; what it answered is in its own transcript.
_LAUNCHED: Final = "Async agent launched"


def read(chunk: bytes, start: int) -> list[Line]:
    """Return the messages on the whole lines of a chunk that begins at offset ``start`` of the file."""
    used: dict[str, tuple[str, str]] = {}
    found: list[Line] = []
    for record, end in transcripts.records(chunk, start):
        message = record.get("message")
        identity = record.get("uuid")
        if record.get("type") not in (USER, ASSISTANT) or not isinstance(identity, str) or not identity:
            continue
        if isinstance(message, dict) and not record.get("isMeta") and not _is_notice(record):
            made = _said(record, message, used)
            for number, (role, text, trust) in enumerate(made):
                # A line can hold several results; each needs a name of its own.
                name = identity if number == 0 else f"{identity}:{number}"
                if one := transcripts.line(role, text, trust, name, transcripts.at_ms(record.get("timestamp")), end):
                    found.append(one._replace(cwd=payload.text_of(record, "cwd")))
    return found


def _is_notice(record: Mapping[str, Any]) -> bool:
    """Tell whether a line only reports something to the model or repeats what stands elsewhere."""
    kind = payload.text_of(payload.map_of(record, "origin"), "kind")
    return (
        record.get("promptSource") == "system"
        or kind not in ("", "human", "user")
        or bool(record.get("repeatsCompactSummary"))
        or bool(record.get("isApiErrorMessage"))
    )


def _said(
    record: Mapping[str, Any], message: Mapping[str, Any], used: dict[str, tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield (role, text, trust) of everything a line says; ``used`` remembers which tool was called how."""
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if record.get("type") == ASSISTANT:
        for block in blocks:
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                given = payload.map_of(block, "input")
                used[block["id"]] = (payload.text_of(block, "name"), payload.text_of(given, "command", "url", "query"))
        yield ASSISTANT, transcripts.texts(content, "text"), "agent"
        return
    if record.get("isCompactSummary"):
        yield SUMMARY, transcripts.texts(content, "text"), "agent"
        return
    # What a subagent is told comes from the agent, not from the person.
    who, trust = (ASSISTANT, "agent") if record.get("isSidechain") else (USER, "user")
    yield who, transcripts.words(content, "text"), trust
    for block in blocks:
        if block.get("type") == "tool_result":
            name, command = used.get(payload.text_of(block, "tool_use_id"), ("", ""))
            output = transcripts.texts(block.get("content"), "text")
            if name in _LOOKING or turns.is_own(name) or output.startswith(_LAUNCHED):
                continue
            yield TOOL, transcripts.tool_text(command or name, output), "external"


def head(chunk: bytes, path: Path) -> Head:
    """Return which session a transcript is of: by its name, and by what its first lines say of the folder."""
    session, part = path.stem, ""
    if path.parent.name == "subagents":
        session, part = path.parent.parent.name, path.stem
    cwd = branch = ""
    for record, _ in transcripts.records(chunk, 0):
        cwd = cwd or payload.text_of(record, "cwd")
        branch = branch or payload.text_of(record, "gitBranch")
        if cwd and branch:
            break
    return Head(payload.plain(session), payload.plain(part), payload.plain(cwd), payload.plain(branch))


def parts(transcript: Path) -> list[Path]:
    """Return the transcripts of a session's subagents."""
    try:
        return sorted(transcript.with_suffix("").glob("subagents/*.jsonl"))
    except OSError:
        return []
