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
    if as_json:
        document({"id": group.id, **parts.group(group.id).shown()})
        return
    say(f" it is told first in every session of its project.:pinned {group.id.hex()[:6]}: {group.text}")
