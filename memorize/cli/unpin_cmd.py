"""``memorize unpin``."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.recall.changes import unpinned


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Take back every pin of the memory."""
    parts = app()
    group = parts.group(parts.resolve(identity))
    parts.append(unpinned(parts.pins(group)))
    parts.changed(group.scope, group.project)
    if as_json:
        document({"id": group.id, **parts.group(group.id).shown()})
        return
    say(f"not pinned {group.id.hex()[:6]}: {group.text}")
