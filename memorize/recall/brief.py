"""What a rendered context leaves behind: the record of what it delivered, and the file that the hook prints from.

A brief is the context of the next session start, rendered ahead for an agent and a working directory, so that a hook
can print it without the index. Its record tells, once it was printed, which memories were delivered.
"""

from __future__ import annotations

import json
from typing import Any, Final

from memorize.capture.memorize_hook import brief_key
from memorize.model import Context, Payload

# Scores are stored in millionths: events hold no floats.
_PPM: Final = 1_000_000


def delivered_payload(context: Context, agent: str, project: str, event: str, session: str = "") -> Payload:
    """Return the payload of ``context.delivered``; exactly what the text shows, scores in millionths."""
    record: dict[str, Any] = {
        "agent": agent,
        "project": project,
        "event": event,
        "items": [[identity, reason, round(value * _PPM)] for identity, reason, value in context.items],
        "tokens": context.tokens,
    }
    return {**record, "session": session} if session else record


def record_line(payload: Payload) -> str:
    """Return a payload as one line of JSON: ASCII, keys in order, ids in hexadecimal."""
    return json.dumps(payload, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=bytes.hex)


def brief_file_name(agent: str, cwd: str) -> str:
    """Return the name of the file below ``hook/briefs``."""
    return brief_key(agent, cwd)[0]


def brief_file_bytes(agent: str, cwd: str, record: str, text: bytes) -> bytes:
    """Return the file that the hook reads: whose it is, the record, and the exact bytes to print (none = silence)."""
    return brief_key(agent, cwd)[1] + record.encode("ascii") + b"\n" + text
