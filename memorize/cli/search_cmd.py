"""``memorize search``: find memories by words, best first."""

from __future__ import annotations

import time

import click

from memorize.cli.console import app, here_option, json_option, listing, say, tell
from memorize.cli.rows import as_item, as_line, width
from memorize.counted import counted
from memorize.model import MEMORY_KINDS
from memorize.recall.plain import one_line
from memorize.recall.rank import explain


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1_000), default=10, show_default=True, help="The most to show.")
@click.option("--explain", "explained", is_flag=True, help="Show how each score came about.")
@click.option("--observations", is_flag=True, help="Search what was captured as well, not only memories.")
@click.option("--all-projects", is_flag=True, help="Search the memories of every project.")
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(MEMORY_KINDS), help="Only this kind; may be repeated."
)
@click.option("--old", is_flag=True, help="Also what was replaced, forgotten or has expired.")
@click.option("--review", is_flag=True, help="Also what waits for review.")
@here_option
@json_option
def command(
    words: tuple[str, ...],
    limit: int,
    explained: bool,
    observations: bool,
    all_projects: bool,
    kinds: tuple[str, ...],
    old: bool,
    review: bool,
    directory: str,
    as_json: bool,
) -> None:
    """Search this project's and the personal memories for WORDS."""
    parts = app()
    query = parts.query()
    place = parts.here(directory)
    started = time.monotonic()
    found = parts.search(
        " ".join(words),
        None if all_projects else place.project,
        limit,
        observations=observations,
        kinds=kinds,
        dead=old,
        review=review,
        query=query,
    )
    spent_ms = (time.monotonic() - started) * 1000
    if as_json:
        listing((as_item(hit.row, hit.score) for hit in found.hits), found.total)
        return
    rivals = query.rivals([hit.row.id for hit in found.hits])
    for number, hit in enumerate(found.hits, 1):
        say(f"{number:2}  {as_line(hit.row, rivals, width() - 4)}")
        if explained:
            say(f"              {explain(hit.score, parts.weights)}")
    where = "every project" if all_projects else f"{one_line(place.name)} + personal"
    tell(f"{len(found.hits)} of {counted(found.total, 'memory')} in {where}, {spent_ms:.0f} ms.")
    if found.hits:
        first = found.hits[0].row.id.hex()[:6]
        tell(f"memorize show {first}  |  memorize history {first}")
