"""``memorize confirm``."""

from __future__ import annotations

import click

from memorize.cli.console import json_option
from memorize.cli.marking import mark, show
from memorize.cli.rows import named
from memorize.recall.changes import confirmed


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Say that the memory is still true: its age counts from now on."""
    group = mark(identity, lambda _, group: confirmed(group.members))
    show(group, as_json, f"confirmed {named(group)}", "Its age counts from now on.")
