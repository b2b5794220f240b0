"""``memorize history``: how a memory came to be what it is."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from memorize.cli.console import app, json_option, listing, say
from memorize.recall.history import history
from memorize.recall.plain import one_line


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Show every event that made, replaced, confirmed, pinned, took back or restored memory ID."""
    parts = app()
    reader = parts.reader()
    steps = history(reader.connection, parts.resolve(identity))
    if as_json:
        listing((step._asdict() for step in steps), len(steps))
        return
    for step in steps:
        when = datetime.fromtimestamp(step.wall / 1000, UTC).strftime("%Y-%m-%d %H:%M")
        say(f"{when}  {step.id.hex()[:6]}  {step.what:12} {one_line(step.text)}")
