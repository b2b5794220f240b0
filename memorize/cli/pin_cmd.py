"""``memorize pin``."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.recall.changes import pinned


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Pin the memory: it is told first in every session of its project."""
    parts = app()
    group = parts.group(parts.resolve(identity))
    parts.append(pinned(group.members))
    parts.changed(group.scope, group.project)
    if as_json:
        document({"id": group.id, **parts.group(group.id).shown()})
        return
    say(f"pinned {group.id.hex()[:6]}: {group.text}")
    of_project = " of its project" if group.scope == "project" else ""
    say(f"It is told first in every session{of_project}.")
