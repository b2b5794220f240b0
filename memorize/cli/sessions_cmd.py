"""``memorize sessions``: which agents worked where, the latest first."""

from __future__ import annotations

import click

from memorize.cli.console import app, here_option, json_option, listing, say
from memorize.cli.when import ago


@click.command()
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="The most to show.")
@click.option("--all-projects", is_flag=True, help="The sessions of every project.")
@here_option
@json_option
def command(limit: int, all_projects: bool, directory: str, as_json: bool) -> None:
    """List the sessions of this project: agent, branch, last activity, observations."""
    parts = app()
    reader = parts.reader()
    project = None if all_projects else parts.here(directory).project
    found = reader.sessions(project=project, limit=limit)
    if as_json:
        listing((one._asdict() for one in found), len(found))
        return
    for one in found:
        state = "closed" if one.closed else "open"
        when = ago(one.last, parts.clock.wall_ms())
        say(
            f"{one.session[:8]:8}  {one.agent:8} {one.branch or '-':20} {when:>12}  "
            f"{state:6} {one.observations:5} observed"
        )
    if not found:
        say("no session was captured here yet")
