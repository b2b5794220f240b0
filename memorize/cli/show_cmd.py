"""``memorize show``: one memory with everything that is known of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from memorize.bootstrap import App
from memorize.cli.console import app, document, json_option, say
from memorize.cli.log_cmd import as_item
from memorize.errors import UnknownMemory
from memorize.recall.lines import day
from memorize.recall.plain import one_line

_TIMES: Final = frozenset({"wall", "wall_ms", "recency", "expires_at"})


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Show memory or event ID in full."""
    parts = app()
    found = parts.resolve(identity, events=True)
    described = _described(parts, found)
    if as_json:
        document(described)
        return
    for name, value in described.items():
        shown = _shown(name, value)
        if shown:
            say(f"{name:14} {shown}")


def _shown(name: str, value: Any) -> str:
    """Return a value for a person: times as dates, further lines below the first."""
    if value is None or value == "":
        return ""
    if name in _TIMES and isinstance(value, int):
        when = day(value)
        return when.strftime("%Y-%m-%d %H:%M UTC") if when else str(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return ", ".join(item.hex()[:12] if isinstance(item, bytes) else str(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=lambda one: one.hex() if isinstance(one, bytes) else "")
    first, *rest = str(value).splitlines() or [""]
    return "\n".join([one_line(first), *(f"{'':14} {one_line(line)}".rstrip() for line in rest)])


def _described(parts: App, identity: bytes) -> dict[str, Any]:
    """Return a memory with its group, or any other event as the log holds it."""
    try:
        return parts.group(identity)._asdict()
    except UnknownMemory:
        event = parts.reader().event(identity)
        if event is None:
            raise
        return as_item(event)
