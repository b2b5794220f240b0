"""``memorize restore``: undo a forgetting, or an edit."""

from __future__ import annotations

import click

from memorize.cli.console import json_option
from memorize.cli.marking import mark, show
from memorize.recall.changes import restored
from memorize.recall.plain import one_line


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Bring memory ID back: every event that overrules it now is cancelled."""
    group = mark(identity, lambda parts, group: restored(parts.batch_of(group.overruled_by)))
    show(group, as_json, f"{group.id.hex()[:6]} is {group.status}: {one_line(group.text)}")
