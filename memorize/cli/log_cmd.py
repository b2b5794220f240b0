"""``memorize log``: the events as they are, the newest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from memorize.cli.console import app, here_option, json_option, listing, say
from memorize.cli.rows import fit, width
from memorize.counted import counted
from memorize.model import Event
from memorize.recall.plain import one_line

_LINE = 110
# The field that tells most of an event, the first that it has.
_TELLING = ("text", "command", "path", "subject", "tool", "reason", "source", "name", "verdict", "window")


@click.command()
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=20, show_default=True, help="The most to show.")
@click.option("--kind", help="Only events of this kind, or whose kind begins so (observed).")
@click.option("--session", help="Only events of this session.")
@click.option("--here", is_flag=True, help="Only events of this project.")
@here_option
@json_option
def command(limit: int, kind: str | None, session: str | None, here: bool, directory: str, as_json: bool) -> None:
    """Show the newest events of the log."""
    parts = app()
    reader = parts.reader()
    project = parts.here(directory).project if here else None
    events = reader.log(kind=kind, session=session, project=project, limit=limit)
    if as_json:
        total = reader.log_total(kind=kind, session=session, project=project)
        listing((as_item(event) for event in events), total)
        return
    gone = reader.erased()
    for event in events:
        telling = "(erased)" if event.id in gone else _telling(event.payload)
        when = datetime.fromtimestamp(event.header.wall / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        say(fit(f"{event.id.hex()[:6]}  {when}  {event.kind:20} {telling}", min(width(), _LINE)))


def _telling(payload: Mapping[str, Any] | None) -> str:
    if payload is None:
        return "(no body)"
    for name in _TELLING:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return one_line(value)
    items = payload.get("items")
    return counted(len(items), "memory") if isinstance(items, list) else ""


def as_item(event: Event) -> dict[str, Any]:
    """Return an event for ``--json``: header fields, ids in hex, and the payload."""
    header = event.header
    return {
        "id": event.id,
        "kind": header.kind,
        "lamport": header.lamport,
        "seq": header.seq,
        "writer": header.writer,
        "replica": header.replica,
        "wall_ms": header.wall,
        "nonce": header.nonce,
        "ordinal": header.ordinal,
        "deps": list(header.deps),
        "payload": event.payload,
        "malformed": event.malformed,
    }
