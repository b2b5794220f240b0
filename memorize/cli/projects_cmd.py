"""``memorize projects``: what the memory knows as a project."""

from __future__ import annotations

import click

from memorize.cli.console import app, json_option, listing, say
from memorize.recall.plain import one_line


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List every project with its memories, sessions and places."""
    found = app().reader().projects()
    if as_json:
        listing((one._asdict() for one in found), len(found))
        return
    for one in found:
        paths = one_line(", ".join(one.paths[:2]))
        joined = "" if one.root == one.key else f"  (one with {one.root[:8]})"
        counts = f"{one.memories:5} memories {one.sessions:4} sessions"
        say(f"{one.key[:8]}  {one_line(one.name):24} {counts}  {paths}{joined}")
    if not found:
        say("no project was captured yet")
