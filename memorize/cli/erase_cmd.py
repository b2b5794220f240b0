"""``memorize erase``: take text away for good, here and on every other device."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import click

from memorize.bootstrap import App, choosing
from memorize.cli.console import app, document, json_option, progress, say, tell
from memorize.cli.naming import called, project_meant
from memorize.cli.rows import fit, width
from memorize.clock import ago
from memorize.counted import counted
from memorize.errors import (
    AmbiguousSession,
    CannotErase,
    NotAsked,
    NotErased,
    NothingToErase,
    Problem,
    UnknownSession,
)
from memorize.index import devices, erasures, related
from memorize.index.erasures import Standing
from memorize.index.related import Going
from memorize.recall.plain import one_line

_SHOWN: Final = 12
# So long another process that is at the same work is waited for.
_WAIT_S: Final = 60.0
_WARNING: Final = (
    "This cannot be undone: the text goes from this device now, and from every other one when it next syncs. What an "
    "agent keeps itself (its transcripts) and backups of the whole disk are out of reach."
)


class _Choice(NamedTuple):
    """What was chosen, in words, and how far the closure goes."""

    ids: list[bytes]
    what: str
    personal: bool = True


@click.command()
@click.argument("identities", metavar="[ID]...", nargs=-1)
@click.option("--session", metavar="S", help="Everything of this session, and the memories formed from it.")
@click.option(
    "--project",
    metavar="[P]",
    is_flag=False,
    flag_value=".",
    help="Everything of a project: a directory (this one), a name, or the first digits of a key.",
)
@click.option("--matching", metavar="TEXT", help="Everything that contains TEXT, in every project.")
@click.option("--keep", metavar="ID", multiple=True, help="Keep this memory although it was taken from what goes.")
@click.option("--dry-run", is_flag=True, help="Show what would go and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--status", is_flag=True, help="Show which devices have done which erasures.")
@json_option
def command(
    identities: tuple[str, ...],
    session: str | None,
    project: str | None,
    matching: str | None,
    keep: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    status: bool,
    as_json: bool,
) -> None:
    """Erase memories and events for good, on all devices: by ID, by session, by project, or by the words in them.

    With them goes what says the same, earlier versions, and memories that were taken from them; all of it is shown
    before. The events stay as empty shells, so that every device still agrees on what there was. For a memory that is
    only wrong, "memorize forget" is enough, and can be taken back.
    """
    given = [bool(identities), session is not None, project is not None, matching is not None]
    if sum(given) != (0 if status else 1):
        ways = "IDs, --session, --project, --matching" + (", or --status" if not status else "; --status goes alone")
        raise click.UsageError(f"one of these says what is meant: {ways}")
    parts = app()
    if status:
        _show_status(parts, as_json)
        return
    choice = _chosen(parts, identities, session, project, matching, quiet=as_json)
    kept = [parts.resolve(identity) for identity in keep]
    going = related.going(parts.reader().connection, choice.ids, kept, personal=choice.personal)
    if not going.ids:
        raise NothingToErase(what=choice.what)
    if dry_run or not as_json:
        _show(parts, going, as_json=as_json, whole=dry_run)
    if dry_run:
        return
    _ask(yes, len(going.ids))
    made = choosing.request(parts, going)
    _erase(parts)
    _told(parts, going, made, as_json=as_json)


# -- what is meant ----------------------------------------------------------------------------------------------------


def _chosen(
    parts: App,
    identities: Sequence[str],
    session: str | None,
    project: str | None,
    matching: str | None,
    *,
    quiet: bool,
) -> _Choice:
    if session is not None:
        return _of_session(parts, session)
    if project is not None:
        meant = project_meant(parts, project, joined=True)
        return _Choice(choosing.of_project(parts, meant.key), f"project {called(meant)}", personal=False)
    if matching is not None:
        if not matching.strip():
            raise click.UsageError("--matching wants some text")
        parts.reader()  # what lies in the spool is looked at, too
        with progress("reading the log", quiet=quiet) as advance:
            return _Choice(choosing.matching(parts, matching, advance), f'the text "{matching}"')
    found = [parts.resolve(identity, events=True) for identity in identities]
    for identity, kind in choosing.known(parts, found).items():
        if not related.may_go(kind):
            raise CannotErase(id=identity.hex()[:12], kind=kind)
    return _Choice(found, ", ".join(identity.hex()[:6] for identity in found))


def _of_session(parts: App, name: str) -> _Choice:
    connection = parts.reader().connection
    found = related.sessions_like(connection, name) if name else []
    if not found:
        raise UnknownSession(name=name)
    if len(found) > 1:
        raise AmbiguousSession(name=name, candidates=", ".join(found[:5]))
    return _Choice(related.of_session(connection, found[0]), f"session {found[0]}", personal=True)


# -- showing and asking -----------------------------------------------------------------------------------------------


def _show(parts: App, going: Going, *, as_json: bool, whole: bool) -> None:
    """Show what would go: as data when that is all that was asked for, else beside it."""
    kinds = Counter(choosing.known(parts, going.ids).values())
    if as_json:
        found = [one._asdict() for one in choosing.items(parts, going)]
        document({"items": found, "total": len(found), "kinds": dict(kinds), "kept": list(going.kept), "done": False})
        return
    out = say if whole else tell
    out(f"This would go: {counted(len(going.ids), 'event')}." if whole else f"{counted(len(going.ids), 'event')}:")
    for kind, number in sorted(kinds.items(), key=lambda one: (-one[1], one[0])):
        out(f"{number:7,}  {kind}")
    for item in choosing.items(parts, going, _SHOWN):
        why = "" if item.why == related.NAMED else f"  ({item.why})"
        head = f"  {item.id.hex()[:6]}  {item.kind.removeprefix('observed.').removeprefix('memory.'):10} "
        out(f"{head}{fit(one_line(item.text), max(20, width() - len(head) - len(why)))}{why}")
    if len(going.ids) > _SHOWN:
        out(f"  and {len(going.ids) - _SHOWN:,} more; --dry-run --json shows all")
    for identity in going.kept:
        out(f"  kept: {identity.hex()[:6]}")


def _ask(yes: bool, events: int) -> None:
    tell(_WARNING)
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotAsked
    click.confirm(f"Erase {counted(events, 'event')} for good?", abort=True, err=True)


# -- doing ------------------------------------------------------------------------------------------------------------


def _erase(parts: App) -> None:
    """Take it out of this device. Raises NotErased: it is in force and is tried again."""
    try:
        parts.erasing.run(_WAIT_S)
    except Problem as problem:
        raise NotErased(detail=str(problem)) from problem


def _told(parts: App, going: Going, made: Sequence[bytes], *, as_json: bool) -> None:
    found = _standings(parts)
    waiting = [one for one in found if set(made) & set(one.open)]
    if as_json:
        document(
            {
                "done": True,
                "erased": len(going.ids),
                "erasures": list(made),
                "kept": list(going.kept),
                "waiting": [one.device.id for one in waiting],
            }
        )
        return
    say(f"erased {counted(len(going.ids), 'event')}; nothing of that is left in {parts.home.root}")
    mine = parts.device()
    if any(one.replica == parts.identity.replica and one.open for found in waiting for one in found.replicas):
        say('packs of this device still hold it until the next round: run "memorize sync"')
    now = parts.clock.wall_ms()
    for one in waiting:
        if one.device.id != mine:
            say(f"open on {_name(one)}, heard of {ago(one.device.last, now)}")
        for line in _apart(parts, one, now):
            say(line)
    if any(one.replica != parts.identity.replica for found in waiting for one in found.replicas if one.open):
        say("it goes from there with the next sync: memorize erase --status")


def _standings(parts: App) -> list[Standing]:
    reader = parts.reader()
    connection = reader.connection
    gone = devices.retired(connection, reader.event) | devices.superseded(connection, reader.event)
    gone -= {parts.identity.replica}
    known = [one for one in devices.devices(connection) if not gone.issuperset(one.replicas)]
    return erasures.standings(connection, known, erasures.requests(connection), gone)


def _name(one: Standing) -> str:
    """Return how to call a device: several may have one name, as copies of a machine do."""
    return f"{one_line(one.device.name) or 'unnamed'} ({one.device.id[:8]})"


def _apart(parts: App, one: Standing, now: int) -> Iterator[str]:
    """Say which replicas of a device have not done all, when it has several: copies, and what it was once."""
    if len(one.replicas) < 2:
        return
    for replica in one.replicas:
        if replica.open:
            mine = replica.replica == parts.identity.replica
            where = "this directory" if mine else f"heard of {ago(replica.last, now)}"
            what = "all" if len(replica.open) > 1 else "it"
            yield f"    replica {replica.replica.hex()[:8]}, {where}: not known to have done {what}"


def _show_status(parts: App, as_json: bool) -> None:
    parts.erasing.again()
    connection = parts.reader().connection
    asked = erasures.requests(connection)
    found = _standings(parts)
    left = len(erasures.unclean(connection))
    if as_json:
        document({**_as_list(parts, found), "erasures": [_asked(one, found) for one in asked], "left_here": left})
        return
    if not asked:
        say("nothing was ever erased")
        return
    say(f"{counted(len(asked), 'erasure')} of {counted(sum(one.events for one in asked), 'event')}")
    now = parts.clock.wall_ms()
    for one in found:
        here = one.device.id == parts.device()
        done = len(asked) - len(one.open)
        state = "all done" if not one.open else f"{done} of {len(asked)} done"
        say(f"{_name(one)}: {state}; " + ("this device" if here else f"heard of {ago(one.device.last, now)}"))
        for line in _apart(parts, one, now):
            say(line)
    if left:
        why = f": {parts.erasing.hindrance}" if parts.erasing.hindrance else ""
        say(f"{counted(left, 'event')} not gone from this device yet{why}")
    if any(one.open for one in found):
        say("A device does its part when it next syncs, and says so with the sync after that.")
    if any(one.open and len(one.replicas) > 1 for one in found):
        say("A replica of a device is a copy of its directory, or what that was before it was restored. It may still")
        say("hold the text. One that is no more: memorize sync retire REPLICA")


def _as_list(parts: App, found: Sequence[Standing]) -> dict[str, Any]:
    items = [
        {
            "device": one.device.id,
            "name": one.device.name,
            "here": one.device.id == parts.device(),
            "last": one.device.last,
            "open": list(one.open),
            "replicas": [
                {
                    "replica": replica.replica.hex(),
                    "here": replica.replica == parts.identity.replica,
                    "last": replica.last,
                    "open": list(replica.open),
                }
                for replica in one.replicas
            ],
        }
        for one in found
    ]
    return {"items": items, "total": len(items)}


def _asked(one: erasures.Request, found: Sequence[Standing]) -> dict[str, Any]:
    waiting = [standing.device.id for standing in found if one.id in standing.open]
    return {"id": one.id, "wall_ms": one.wall, "events": one.events, "waiting": waiting}
