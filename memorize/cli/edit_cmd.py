"""``memorize edit``: put a corrected memory in the place of an old one."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say, text_of
from memorize.errors import NothingToRemember
from memorize.model import MEMORY_KINDS
from memorize.recall.changes import edited, formed


@click.command()
@click.argument("identity", metavar="ID")
@click.argument("text", nargs=-1)
@click.option("--kind", type=click.Choice(MEMORY_KINDS), help="Change what it is.")
@click.option("--importance", type=click.IntRange(1, 10), help="Change how much it counts.")
@json_option
def command(identity: str, text: tuple[str, ...], kind: str | None, importance: int | None, as_json: bool) -> None:
    """Replace memory ID by TEXT (or standard input, with "-"). The old one stays in its history."""
    said = text_of(text)
    if not said and kind is None and importance is None:
        raise NothingToRemember
    parts = app()
    group = parts.group(parts.resolve(identity))
    payload = formed(
        said or group.text,
        kind or group.kind,
        group.scope,
        group.project,
        importance or group.importance,
        branch=group.branch,
        paths=list(group.paths),
        tags=list(group.tags),
        triggers=list(group.triggers),
        expires_at=group.expires_at,
    )
    new = parts.append(edited(payload, group.members))[0]
    parts.changed(group.scope, group.project)
    if as_json:
        document({"id": new, "replaces": group.id, **parts.group(new).shown()})
        return
    say(f"{new.hex()[:6]} replaces {group.id.hex()[:6]}: {payload['text']}")
