"""``memorize list``: the live memories, the most telling first."""

from __future__ import annotations

import click

from memorize.cli.console import app, here_option, json_option, listing, say, tell
from memorize.cli.rows import as_item, as_line, width
from memorize.counted import counted
from memorize.model import MEMORY_KINDS
from memorize.recall.lines import date


@click.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=30, show_default=True, help="The most to show.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(MEMORY_KINDS), help="Only this kind; may be repeated."
)
@click.option("--all-projects", is_flag=True, help="The memories of every project.")
@click.option("--old", is_flag=True, help="Also what was replaced, forgotten or has expired.")
@click.option("--review", is_flag=True, help="Also what waits for review.")
@here_option
@json_option
def command(
    limit: int,
    kinds: tuple[str, ...],
    all_projects: bool,
    old: bool,
    review: bool,
    directory: str,
    as_json: bool,
) -> None:
    """List this project's and the personal memories by importance and recency."""
    parts = app()
    query = parts.query()
    project = None if all_projects else parts.here(directory).project
    found = parts.search("", project, limit, kinds=kinds, dead=old, review=review, query=query)
    if as_json:
        listing((as_item(hit.row, hit.score) for hit in found.hits), found.total)
        return
    rivals = query.rivals([hit.row.id for hit in found.hits])
    now, zone = parts.clock.wall_ms(), parts.clock.zone_minutes()
    for hit in found.hits:
        head = f"{hit.score.total:.2f}  {date(hit.row.recency, now, zone):>6}  "
        say(head + as_line(hit.row, rivals, width() - len(head)))
    tell(f"{len(found.hits)} of {counted(found.total, 'memory')}.")
