"""``memorize remember``: store one memory in the person's own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from memorize.cli.actions import checked, on_option, ordered
from memorize.cli.console import app, document, here_option, json_option, say, tell, text_of
from memorize.errors import NothingToRemember
from memorize.model import MEMORY_KINDS
from memorize.recall.changes import formed, remembered
from memorize.recall.plain import one_line

_IMPORTANCE = {"decision": 8, "constraint": 8, "rule": 8, "preference": 7, "failure": 7, "question": 6}


@click.command()
@click.argument("text", nargs=-1)
@click.option("--kind", type=click.Choice(MEMORY_KINDS), help="What it is; by default a fact, with --on a rule.")
@on_option
@click.option("--personal", is_flag=True, help="Holds in every project, not only in this one.")
@click.option("--importance", type=click.IntRange(1, 10), help="1 to 10; by default 6 to 8, depending on the kind.")
@click.option("--tag", "tags", multiple=True, help="A word to group it by; may be repeated.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), help="The day (UTC) after which it no longer holds.")
@here_option
@json_option
def command(
    text: tuple[str, ...],
    kind: str | None,
    triggers: tuple[str, ...],
    personal: bool,
    importance: int | None,
    tags: tuple[str, ...],
    until: datetime | None,
    directory: str,
    as_json: bool,
) -> None:
    """Remember TEXT (or standard input, with "-") as it stands.

    A single sentence that orders something for an action, such as "always run the linter before committing", is told
    right before that action without --on; with --kind it is not.
    """
    said = text_of(text)
    if not said:
        raise NothingToRemember
    parts = app()
    place = parts.place(directory)
    names = checked(triggers, place)
    found = [] if names or kind else ordered(said)
    names = names or found
    kind = kind or ("rule" if names else "fact")
    scope = "personal" if personal else "project"
    fields = {"tags": list(tags), "branch": place.branch, "expires_at": _end_of(until), "triggers": names}
    payload = formed(said, kind, scope, place.project, importance or _IMPORTANCE.get(kind, 6), **fields)
    identity = parts.append(remembered(payload), place=place)[0]
    parts.changed(scope, place.project)
    ends = payload["expires_at"]
    if ends is not None and ends <= parts.clock.wall_ms():
        tell("note: that day has passed, so this is kept but not shown; memorize list --old shows it")
    if as_json:
        document({"id": identity, "project": place.project, **parts.group(identity).shown()})
        return
    where = "every project" if personal else one_line(place.name)
    told = f"; told before {', '.join(names)}" if names else ""
    say(f"remembered {identity.hex()[:6]} for {where}: {payload['kind']}, importance {payload['importance']}{told}")
    if found:
        tell(f"the sentence names its moment; memorize edit {identity.hex()[:6]} --never: not before it")


def _end_of(day: datetime | None) -> int | None:
    """Return the end of a day in UTC as ms since 1970."""
    return None if day is None else int((day.replace(tzinfo=UTC) + timedelta(days=1)).timestamp() * 1000)
