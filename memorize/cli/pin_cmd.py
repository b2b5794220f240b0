"""``memorize pin``."""

from __future__ import annotations

import click

from memorize.cli.console import json_option
from memorize.cli.marking import mark, show
from memorize.cli.rows import named
from memorize.recall.changes import pinned


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Pin the memory: it is told first in every session of its project."""
    group = mark(identity, lambda _, group: pinned(group.members))
    of_project = " of its project" if group.scope == "project" else ""
    show(group, as_json, f"pinned {named(group)}", f"It is told first in every session{of_project}.")
