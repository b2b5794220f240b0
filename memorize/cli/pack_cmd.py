"""``memorize pack``: what is known for a task, in sections, ready to be given to an agent."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, here_option, json_option, text_of
from memorize.errors import Deferred, NothingToRemember, Problem
from memorize.model import CONTEXT_DELIVERED, Draft
from memorize.recall.brief import delivered_payload
from memorize.recall.pack import PACK_TOKENS, build_pack


@click.command()
@click.argument("task", nargs=-1)
@click.option("--tokens", type=click.IntRange(100, 20_000), default=PACK_TOKENS, show_default=True, help="The budget.")
@here_option
@json_option
def command(task: tuple[str, ...], tokens: int, directory: str, as_json: bool) -> None:
    """Print the context pack for TASK: summary, constraints, decisions, open questions, notes; the task last."""
    asked = text_of(task)
    if not asked:
        raise NothingToRemember
    parts = app()
    query = parts.query()
    place = parts.here(directory)
    found = build_pack(query, asked, place.project, place.name, parts.clock.wall_ms(), tokens)
    # What was given out is on record, like every other context.
    try:
        parts.append([Draft(CONTEXT_DELIVERED, delivered_payload(found, "memorize", place.project, "pack", "pack"))])
    except Deferred:
        pass  # the record waits in the spool
    except Problem as problem:
        parts.note(problem)
    if as_json:
        items = [{"id": identity, "reason": reason, "score": value} for identity, reason, value in found.items]
        document({"text": found.text, "tokens": found.tokens, "items": items, "total": len(items)})
        return
    click.echo(found.text, nl=False)
