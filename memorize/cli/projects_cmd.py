"""``memorize projects``: what the memory knows as a project, and which of them are one."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, listing, say, tell
from memorize.cli.naming import called, project_meant
from memorize.cli.rows import padded
from memorize.counted import counted
from memorize.errors import NotLinked
from memorize.model import PROJECT_LINKED, PROJECT_UNLINKED, Draft
from memorize.recall.plain import one_line


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
    found, alike = reader.projects(), reader.projects_alike()
    if as_json:
        listing(({**one._asdict(), "alike": alike.get(one.key, ())} for one in found), len(found))
        return
    for one in found:
        paths = one_line(", ".join(one.paths[:2]))
        joined = "" if one.root == one.key else f"  (one with {one.root[:8]})"
        counts = f"{counted(one.memories, 'memory'):>14} {counted(one.sessions, 'session'):>12}"
        say(f"{one.key[:8]}  {padded(one_line(one.name), 24)} {counts}  {paths}{joined}")
    for key, others in alike.items():
        for other in others:
            if key < other:
                tell(f"{key[:8]} and {other[:8]} begin with the same commit; if they are one project:")
                tell(f"  memorize projects link {key[:8]} {other[:8]}")
    if not found:
        say("no project was captured yet")


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
