"""``memorize show``: one memory with everything that is known of it."""

from __future__ import annotations

from typing import Any

import click

from memorize.bootstrap import App
from memorize.cli.console import app, document, json_option, say
from memorize.cli.log_cmd import as_item
from memorize.errors import UnknownMemory


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
        shown = value.hex() if isinstance(value, bytes) else value
        if isinstance(shown, list | tuple):
            shown = ", ".join(item.hex()[:12] if isinstance(item, bytes) else str(item) for item in shown)
        if shown not in ("", None):
            say(f"{name:14} {shown}")


def _described(parts: App, identity: bytes) -> dict[str, Any]:
    """Return a memory with its group, or any other event as the log holds it."""
    try:
        return parts.group(identity)._asdict()
    except UnknownMemory:
        event = parts.reader().event(identity)
        if event is None:
            raise
        return as_item(event)
