"""``memorize confirm``."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.recall.changes import confirmed


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Say that the memory is still true: its age counts from now on."""
    parts = app()
    group = parts.group(parts.resolve(identity))
    parts.append(confirmed(group.members))
    parts.changed(group.scope, group.project)
    if as_json:
        document({"id": group.id, **parts.group(group.id).shown()})
        return
    say(f"confirmed {group.id.hex()[:6]}: {group.text}")
    say("Its age counts from now on.")
