"""``memorize projects``: what the memory knows as a project, and which of them are one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from memorize.cli.console import app, document, json_option, listing, say, tell
from memorize.cli.naming import called, project_meant
from memorize.cli.rows import padded
from memorize.counted import counted
from memorize.errors import NotLinked
from memorize.model import PROJECT_LINKED, PROJECT_UNLINKED, Draft
from memorize.recall.plain import one_line

if TYPE_CHECKING:
    from memorize.index.read import Project, Reader


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List every project with its memories, sessions and places.

    A project is known by its remote, on every device and at every path; without one by its first commit, else by its
    path. When the program cannot see that two are one (or joined two that are not), say so with link or unlink.
    """
    if context.invoked_subcommand is not None:
        return
    reader = app().reader()
    found = reader.projects()
    if as_json:
        alike = reader.projects_alike()
        listing(({**one._asdict(), "alike": alike.get(one.key, ())} for one in found), len(found))
        return
    for one in found:
        paths = one_line(", ".join(one.paths[:2]))
        joined = "" if one.root == one.key else f"  (one with {one.root[:8]})"
        counts = f"{counted(one.memories, 'memory'):>14} {counted(one.sessions, 'session'):>12}"
        say(f"{one.key[:8]}  {padded(one_line(one.name), 24)} {counts}  {paths}{joined}")
    for first, second in _to_be_asked(reader, found):
        tell(f"{first[:8]} and {second[:8]} begin with the same commit; if they are one project:")
        tell(f"  memorize projects link {first[:8]} {second[:8]}")
    if not found:
        say("no project was captured yet")


def _to_be_asked(reader: Reader, found: Iterable[Project]) -> list[tuple[str, str]]:
    """Return pairs that a person may want to join: each two groups once, and none that was joined and parted."""
    roots = {one.key: one.root for one in found}
    asked: dict[tuple[str, str], bool] = {}
    for key, others in reader.projects_alike().items():
        for other in others:
            pair = (roots.get(key, key), roots.get(other, other))
            asked[pair] = asked.get(pair, True) and not reader.links_between(key, other)
    return sorted((one, other) for (one, other), holds in asked.items() if holds and one < other)


@command.command("link", short_help="Say that two projects are one.")
@click.argument("one", metavar="PROJECT")
@click.argument("other", metavar="PROJECT")
@json_option
def link(one: str, other: str, as_json: bool) -> None:
    """Say that two projects are one: each is told what is remembered of the other, on every device.

    A project is given by the beginning of its key, its name, or a directory of it. "unlink" undoes it.
    """
    parts = app()
    first, second = project_meant(parts, one), project_meant(parts, other)
    new = second.key not in parts.reader().family(first.key)
    if new:
        parts.append([Draft(PROJECT_LINKED, {"a": first.key, "b": second.key})])
        parts.refresh_briefs()
    if as_json:
        document({"a": first.key, "b": second.key, "linked": new})
    elif new:
        say(f"{called(first)} and {called(second)} are one project now")
        tell(f"undo it with: memorize projects unlink {first.key[:8]} {second.key[:8]}")
    else:
        say(f"{called(first)} and {called(second)} were one project already")


@command.command("unlink", short_help="Say that two joined projects are not one.")
@click.argument("one", metavar="PROJECT")
@click.argument("other", metavar="PROJECT")
@json_option
def unlink(one: str, other: str, as_json: bool) -> None:
    """Say that two joined projects are not one; no link between them is made by itself again.

    Every link between the two keys is undone. Others may still join them by way of a third one: then it says so.
    """
    parts = app()
    first, second = project_meant(parts, one), project_meant(parts, other)
    links = parts.reader().links_between(first.key, second.key)
    if not links:
        raise NotLinked(one=called(first), other=called(second))
    parts.append([Draft(PROJECT_UNLINKED, {}, deps=tuple(links))])
    parts.refresh_briefs()
    still = second.key in parts.reader().family(first.key)
    if as_json:
        document({"a": first.key, "b": second.key, "still_joined": still})
        return
    say(f"the link between {called(first)} and {called(second)} is undone")
    if still:
        others = [key[:8] for key in parts.reader().family(first.key) if key not in (first.key, second.key)]
        tell(f"they are still joined by way of {', '.join(others)}")
