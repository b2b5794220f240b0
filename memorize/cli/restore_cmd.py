"""``memorize restore``: undo a forgetting, or an edit."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.recall.changes import restored


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Bring memory ID back: every event that overrules it now is cancelled."""
    parts = app()
    group = parts.group(parts.resolve(identity))
    if group.overruled_by:
        parts.append(restored(parts.batch_of(group.overruled_by)))
        parts.changed(group.scope, group.project)
        group = parts.group(group.id)
    if as_json:
        document({"id": group.id, **group.shown()})
        return
    say(f"{group.id.hex()[:6]} is {group.status}: {group.text}")
