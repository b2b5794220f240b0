"""``memorize rules``: what an agent is told right before an action."""

from __future__ import annotations

import click

from memorize import limits
from memorize.bootstrap import App
from memorize.cli.actions import advice, known
from memorize.cli.console import app, document, here_option, json_option, say, tell
from memorize.cli.rows import as_item, fit, width
from memorize.counted import counted
from memorize.index.place import Place
from memorize.index.query import Query, Row
from memorize.recall import lines
from memorize.recall.actions import rules_for_actions
from memorize.recall.plain import one_line
from memorize.recall.triggers import EDIT, normal_name, own_triggers, triggers_of


@click.command()
@click.argument("action", required=False)
@click.option("--all-projects", is_flag=True, help="The rules of every project.")
@here_option
@json_option
def command(action: str | None, all_projects: bool, directory: str, as_json: bool) -> None:
    """List the action rules, the newest first; with ACTION those that an agent is told before it.

    ACTION is a trigger such as git-commit, "edit:PATH" with a path from the root of the repository, or a whole command
    line in quotes.
    """
    parts = app()
    query, place = parts.query(), parts.here(directory)
    now = parts.clock.wall_ms()
    family = query.family(parts.known_as(place, parts.reader(drain=False)))
    fires = () if action is None else _fired(action, place)
    found: list[tuple[Row, tuple[str, ...]]] = []
    for root in (None,) if all_projects else dict.fromkeys((*family, "")):
        found += query.triggered(root, now)
    if action is not None:
        triggers = dict(found)
        roots = (query.family(row.project)[0] for row, _ in found if row.project) if all_projects else family
        rows = rules_for_actions(query, fires, sorted(set(roots)), now, limits.RULES_MAX)
        found = [(row, triggers.get(row, ())) for row in rows]
    if as_json:
        items = [{**as_item(row), "triggers": list(names), "agent": query.agent_of(row)} for row, names in found]
        document({"items": items, "total": len(items), **({"fires": list(fires)} if action is not None else {})})
        return
    _show(parts, query, found)
    if action is not None and not fires:
        near = _advice(action, place)
        tell(f"This fires nothing; {near}" if near else "This fires nothing.")
        return
    if fires:
        tell(f"This fires {', '.join(fires)}.")
    example = one_line(fires[0]) if fires else "git-commit"
    tell(f"{counted(len(found), 'rule')}." if found else f'No rule. Give one: memorize remember --on {example} "..."')


def _fired(action: str, place: Place) -> tuple[str, ...]:
    """Return the triggers that are meant: the one of this name, else what the command line fires."""
    name = normal_name(action)
    if name in known(place) or name.startswith(EDIT):
        return (name,)
    return triggers_of(action, aliases=place.aliases, own=own_triggers(place.marker))


def _advice(action: str, place: Place) -> str:
    """Return what may have been meant by what fires nothing: a file, or another name."""
    if action.strip() and "/" in action and len(action.split()) == 1 and not action.startswith(EDIT):
        return f'for an edit of that file: memorize rules "{EDIT}{one_line(action.removeprefix("./"))}"'
    return advice(action, place) if len(action.split()) == 1 else ""


def _show(parts: App, query: Query, found: list[tuple[Row, tuple[str, ...]]]) -> None:
    rivals = query.rivals([row.id for row, _ in found])
    now, zone = parts.clock.wall_ms(), parts.clock.zone_minutes()
    for row, names in found:
        who = ", ".join(part for part in (row.trust, query.agent_of(row), row.scope) if part)
        head = f"{lines.tag(row, rivals).strip('[]')}  {lines.date(row.recency, now, zone):>6}  "
        say(head + fit(one_line(row.text), width() - len(head)))
        say(f"{'':{len(head)}}before {', '.join(map(one_line, names))}  ({who})")
