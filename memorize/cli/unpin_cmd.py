"""``memorize unpin``."""

from __future__ import annotations

import click

from memorize.cli.console import json_option
from memorize.cli.marking import mark, show
from memorize.cli.rows import named
from memorize.recall.changes import unpinned


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Take back every pin of the memory."""
    group = mark(identity, lambda parts, group: unpinned(parts.pins(group)))
    show(group, as_json, f"not pinned {named(group)}")
