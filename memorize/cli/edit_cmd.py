"""``memorize edit``: put a corrected memory in the place of an old one."""

from __future__ import annotations

import click

from memorize.cli.actions import checked, on_option
from memorize.cli.console import app, document, here_option, json_option, say, text_of
from memorize.errors import NothingToRemember
from memorize.model import MEMORY_KINDS
from memorize.recall.changes import edited, formed
from memorize.recall.plain import one_line


@click.command()
@click.argument("identity", metavar="ID")
@click.argument("text", nargs=-1)
@click.option("--kind", type=click.Choice(MEMORY_KINDS), help="Change what it is.")
@click.option("--importance", type=click.IntRange(1, 10), help="Change how much it counts.")
@on_option
@click.option("--never", is_flag=True, help="Say it before no action any more.")
@here_option
@json_option
def command(
    identity: str,
    text: tuple[str, ...],
    kind: str | None,
    importance: int | None,
    triggers: tuple[str, ...],
    never: bool,
    directory: str,
    as_json: bool,
) -> None:
    """Replace memory ID by TEXT (or standard input, with "-"). The old one stays in its history.

    What is not given stays as it is, the actions too; --on names them anew.
    """
    said = text_of(text)
    if not (said or kind or importance or triggers or never):
        raise NothingToRemember
    parts = app()
    names = checked(triggers, parts.place(directory))
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
        triggers=names if names or never else list(group.triggers),
        expires_at=group.expires_at,
    )
    new = parts.append(edited(payload, group.members))[0]
    parts.changed(group.scope, group.project)
    if as_json:
        document({"id": new, "replaces": group.id, **parts.group(new).shown()})
        return
    say(f"{new.hex()[:6]} replaces {group.id.hex()[:6]}: {one_line(payload['text'])}")
