"""The brief: the context of the next session start, rendered ahead so that a hook can print it without the index.

A brief belongs to an agent and a working directory. It is kept twice: as a row of the projection, from which the
daemon and the lean child answer, and as the file that the hook itself reads. Both hold the record that tells, once it
was printed, which memories were delivered.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from memorize import limits
from memorize.capture.memorize_hook import brief_key
from memorize.index.query import Query
from memorize.model import Context, Payload
from memorize.recall.context import Situation, build_context
from memorize.recall.rank import DEFAULT, Weights

# Scores are stored in millionths: events hold no floats.
_PPM = 1_000_000


class Brief(NamedTuple):
    """A row of the table of briefs: for which project and agent, what was delivered by it, and the text."""

    project: str
    agent: str
    record: str
    text: str


def render_brief(
    query: Query, project: str, now_ms: int, situation: Situation | None = None, weights: Weights = DEFAULT
) -> Context:
    """Return the context that the next session start of a project would get, without a session of its own."""
    known = (situation or Situation(project))._replace(project=project, session="", delivered=frozenset())
    return build_context(query, known, now_ms, limits.CONTEXT_TOKENS, limits.ANSWER_BYTES_MAX, weights)


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


def brief_rows(project: str, agents: tuple[str, ...], context: Context, event: str = "SessionStart") -> list[Brief]:
    """Return the rows that the holder of the ingest lock writes into the table of briefs, one an agent."""
    return [
        Brief(project, agent, record_line(delivered_payload(context, agent, project, event)), context.text)
        for agent in agents
    ]


def record_line(payload: Payload) -> str:
    """Return a payload as one line of JSON: ASCII, keys in order, ids in hexadecimal."""
    return json.dumps(payload, ensure_ascii=True, sort_keys=True, separators=(",", ":"), default=bytes.hex)


def brief_file_name(agent: str, cwd: str) -> str:
    """Return the name of the file below ``hook/briefs``."""
    return brief_key(agent, cwd)[0]


def brief_file_bytes(agent: str, cwd: str, record: str, text: bytes) -> bytes:
    """Return the file that the hook reads: whose it is, the record, and the exact bytes to print (none = silence)."""
    return brief_key(agent, cwd)[1] + record.encode("ascii") + b"\n" + text
