"""``memorize forget``: take a memory out of every answer. It stays in the log and can be restored."""

from __future__ import annotations

import click

from memorize.bootstrap import App
from memorize.cli.console import app, document, json_option, say, tell
from memorize.cli.rows import named
from memorize.fold.state import LIVE
from memorize.index.groups import Group
from memorize.recall.changes import forgotten


@click.command()
@click.argument("identities", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", default="", help="Why, for the history.")
@json_option
def command(identities: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Forget the memories with these IDs, and everything that they had replaced."""
    parts = app()
    # All are looked up before the first is forgotten, so that a wrong id changes nothing.
    groups = [parts.group(parts.resolve(identity)) for identity in identities]
    # All are kept before the first is taken in.
    parts.settle([parts.put(forgotten(group.members, group.supersedes, reason)) for group in groups])
    for scope, project in dict.fromkeys((group.scope, group.project) for group in groups):
        parts.changed(scope, project)
    if as_json:
        document({"items": [{"id": group.id, "text": group.text} for group in groups], "total": len(groups)})
        return
    for group in groups:
        say(f"forgotten {named(group)}")
        say(f"back again: memorize restore {group.id.hex()[:6]}")
        for heir in _staying(parts, group):
            tell(f"what replaced it stays: {named(heir)}")
            tell(f"that one, too: memorize forget {heir.id.hex()[:6]}")


def _staying(parts: App, group: Group) -> list[Group]:
    """Return what replaced a memory and is still told: whoever forgets an older version may mean the text of today."""
    found = {heir.id: heir for heir in (parts.group(one) for one in group.heirs)}
    return [heir for heir in found.values() if heir.status == LIVE]
