"""``memorize review``: what reads like an order to an agent, or came from a page, waits for a person's yes."""

from __future__ import annotations

from typing import Any, Final

import click

from memorize.bootstrap import App
from memorize.cli.console import app, here_option, json_option, listing, say, tell
from memorize.cli.rows import as_item, as_line, width
from memorize.consolidate.trust import reasons
from memorize.errors import NotWaiting
from memorize.index.groups import Group
from memorize.index.query import Row
from memorize.model import REVIEW, Payload
from memorize.recall.changes import edited, forgotten, formed
from memorize.recall.plain import one_line

LIST: Final = "list"
ACCEPT: Final = "accept"
REJECT: Final = "reject"
# What a memory was, beyond the fields that a group tells.
_MORE: Final = ("subject", "predicate", "object", "single", "obsolete_when")


@click.command()
@click.argument("what", type=click.Choice([LIST, ACCEPT, REJECT]), default=LIST)
@click.argument("identities", metavar="[ID]...", nargs=-1)
@click.option("--all-projects", is_flag=True, help="What waits in every project.")
@click.option("--reason", default="", help="With reject: why, for the history.")
@here_option
@json_option
def command(
    what: str, identities: tuple[str, ...], all_projects: bool, reason: str, directory: str, as_json: bool
) -> None:
    """List the memories that wait for you, accept them, or reject them.

    What an extractor found and what reads like an order to an agent, or binds and comes only from a tool or a page,
    is told to no session until you accept it.
    """
    parts = app()
    if what == LIST:
        _list(parts, all_projects, directory, as_json)
        return
    if not identities:
        raise click.UsageError(f"which ones? memorize review {what} ID...")
    # All are looked up before the first is changed, so that a wrong id changes nothing.
    groups = [_waiting(parts, identity) for identity in identities]
    items = [_accept(parts, group) if what == ACCEPT else _reject(parts, group, reason) for group in groups]
    if as_json:
        listing(items, len(items))
        return
    for item in items:
        say(f"{item['done']} {item['id'].hex()[:6]}: {one_line(item['text'])}")


def _list(parts: App, all_projects: bool, directory: str, as_json: bool) -> None:
    query = parts.query()
    gone = parts.reader(drain=False).erased()
    rows = query.waiting(None if all_projects else query.family(parts.here(directory).project))
    if as_json:
        listing(({**as_item(row), "reasons": list(_why(row, gone))} for row in rows), len(rows))
        return
    rivals = query.rivals([row.id for row in rows])
    for row in rows:
        say(as_line(row, rivals, width()))
        say(f"        {', '.join(_why(row, gone))}")
    tell(f"{len(rows)} waiting." if rows else "Nothing waits for review.")
    if rows:
        tell("memorize show ID  |  memorize review accept ID...  |  memorize review reject ID...")


def _why(row: Row, gone: frozenset[bytes]) -> tuple[str, ...]:
    """Return why it waits, as phrases. ``gone``: what is erased."""
    found = reasons(row.text, row.trust, row.kind)
    if gone.intersection(row.sources):
        return (*found, "was taken from something that was erased")
    if row.trust == "external":
        return (*found, "comes only from a tool, a file or a page")
    return found or ("binds, but is not clearly in your words",)


def _waiting(parts: App, identity: str) -> Group:
    """Return the memory that is meant. Raises NotWaiting, UnknownMemory, AmbiguousId."""
    group = parts.group(parts.resolve(identity))
    if not any(row.id in group.members for row in parts.query().waiting(None)):
        raise NotWaiting(id=group.id.hex()[:12])
    return group


def _accept(parts: App, group: Group) -> dict[str, Any]:
    """Form the memory again in the person's name, without the mark, in the place of the old one."""
    event = parts.reader().event(group.id)
    known: Payload = (event.payload if event else None) or {}
    payload = formed(
        group.text,
        group.kind,
        group.scope,
        group.project,
        group.importance,
        branch=group.branch,
        paths=list(group.paths),
        tags=[tag for tag in group.tags if tag != REVIEW],
        triggers=list(group.triggers),
        expires_at=group.expires_at,
        **{name: known[name] for name in _MORE if name in known},
    )
    # What cites something erased waits for review: accepted, it stands by itself.
    gone = parts.reader().erased()
    sources = [source for source in group.sources if source not in gone]
    new = parts.append(edited({**payload, "sources": sources}, group.members))[0]
    parts.changed(group.scope, group.project)
    return {"done": "accepted", "id": new, "replaces": group.id, **parts.group(new).shown()}


def _reject(parts: App, group: Group, reason: str) -> dict[str, Any]:
    parts.append(forgotten(group.members, (), reason or "rejected in review"))
    return {"done": "rejected", "id": group.id, "text": group.text}
