"""``memorize sessions``: which agents work and worked where, on which files, the latest first."""

from __future__ import annotations

import posixpath
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from memorize.cli.console import app, here_option, json_option, listing, say
from memorize.cli.rows import padded
from memorize.clock import ago
from memorize.model import OBSERVED_SHELL
from memorize.recall.plain import one_line

if TYPE_CHECKING:
    from memorize.bootstrap import App
    from memorize.index.read import Reader, Session
    from memorize.index.working import Touch
    from memorize.recall.live import Other

WATCH_S: Final = 2.0
_FILES_MAX: Final = 4
_COMMAND_CHARS_MAX: Final = 60
_ACTIVE: Final = "active"


class Listed(NamedTuple):
    """A session with what is shown of it beside its row. ``device`` is "" for this machine.

    ``ran`` is the last command of one at work that changed something or failed, ``ran_at`` when (wall ms).
    """

    session: Session
    state: str
    device: str
    files: tuple[Touch, ...]
    ran: str = ""
    ran_at: int = 0

    def item(self) -> dict[str, Any]:
        """Return it as data."""
        files = [
            {"path": one.path, "op": one.op, "added": one.added, "removed": one.removed, "at": one.at}
            for one in self.files
        ]
        beside = {"state": self.state, "device_name": self.device, "files": files}
        return {**self.session._asdict(), **beside, "ran": self.ran, "ran_at": self.ran_at or None}


@click.command()
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="The most to show.")
@click.option("--all", "--all-projects", "everywhere", is_flag=True, help="The sessions of every project.")
@click.option("--watch", is_flag=True, help="Show it anew every two seconds, until Ctrl-C.")
@here_option
@json_option
def command(limit: int, everywhere: bool, watch: bool, directory: str, as_json: bool) -> None:
    """List the sessions of this project: agent, branch, last activity, observations, and the files they edited.

    Active is who did something in the last half hour and was not closed; of another device that is reckoned from the
    last that was heard of it. Nothing is locked, and a session that crashed fades by itself.
    """
    if watch and as_json:
        raise click.UsageError("--watch is for eyes, --json for programs: give one of them")
    parts = app()
    place = parts.here(directory)
    project = None if everywhere else place.project
    if watch:
        _watch(parts, project, place.root, limit)
        return
    found = listed(parts, project, limit)
    if as_json:
        listing((one.item() for one in found), len(found))
        return
    for line in _lines(found, place.root, parts.clock.wall_ms()):
        say(line)


def listed(parts: App, project: str | None, limit: int) -> list[Listed]:
    """Return the sessions of a project or of all, the one that was active last first, with the files they edited."""
    from memorize.bootstrap.watching import at_work
    from memorize.index import devices, working

    reader, now = parts.reader(), parts.clock.wall_ms()
    found = reader.sessions(project=project, limit=limit)
    keys = None if project is None else reader.family(project)
    active = {(one.session, one.agent): one for one in at_work(parts, reader, keys, now).others if not one.ended}
    names = {
        replica: device.name or device.id[:8]
        for device in devices.devices(reader.connection)
        if device.id != parts.device()
        for replica in device.replicas
    }
    since = min((one.last if one.opened is None else min(one.opened, one.last) for one in found), default=now)
    files: dict[tuple[str, str], dict[str, Touch]] = {}
    for touch in working.touches(reader.connection, keys, since):
        files.setdefault((touch.session, touch.agent), {}).setdefault(touch.path, touch)
    rows = [
        Listed(
            one,
            _state(one, active),
            names.get(one.device, ""),
            tuple(files.get((one.session, one.agent), {}).values()),
        )
        for one in found
    ]
    return [_with_command(reader, one) if one.state == _ACTIVE else one for one in rows]


def _with_command(reader: Reader, one: Listed) -> Listed:
    for event in reader.log(kind=OBSERVED_SHELL, session=one.session.session, limit=1):
        command = str((event.payload or {}).get("command") or "")
        return one._replace(ran=command, ran_at=event.header.wall)
    return one


def _state(one: Session, active: dict[tuple[str, str], Other]) -> str:
    if one.closed:
        return "closed"
    return _ACTIVE if (one.session, one.agent) in active else "open"


def _lines(found: Sequence[Listed], root: str, now: int) -> list[str]:
    lines = []
    for one in found:
        row = one.session
        lines.append(
            f"{row.session[:8]:8}  {row.agent:8} {padded(one_line(row.branch) or '-', 20)} {ago(row.last, now):>12}  "
            f"{one.state:6} {row.observations:5} observed"
        )
        lines += [f"          {text}" for text in (_where(one, root), _what(one, now), _ran(one, now)) if text]
    return lines or ["no session was captured here yet"]


def _where(one: Listed, root: str) -> str:
    """Return device and checkout of a session when they are not the ones at hand."""
    if one.device:
        return f"on {one_line(one.device)}"
    there = one.session.root
    return f"in {one_line(posixpath.relpath(there, root))}" if there and root and there != root else ""


def _what(one: Listed, now: int) -> str:
    names = [f"{one_line(touch.path)} {ago(touch.at, now)}" for touch in one.files[:_FILES_MAX]]
    more = f" and {len(one.files) - _FILES_MAX} more" if len(one.files) > _FILES_MAX else ""
    return f"edited {', '.join(names)}{more}" if names else ""


def _ran(one: Listed, now: int) -> str:
    return f"ran {one_line(one.ran)[:_COMMAND_CHARS_MAX]} {ago(one.ran_at, now)}" if one.ran else ""


def _watch(parts: App, project: str | None, root: str, limit: int) -> None:
    """Draw the list again and again; where nobody can draw, print it whenever it changes."""
    shown: list[Listed] | None = None

    def text() -> str:
        return "\n".join(_lines(found, root, parts.clock.wall_ms()))

    try:
        if not sys.stdout.isatty():
            while True:
                found = listed(parts, project, limit)
                if found != shown:
                    say(text())
                    sys.stdout.flush()
                shown = found
                time.sleep(WATCH_S)
        from rich.live import Live
        from rich.text import Text

        with Live(auto_refresh=False) as picture:
            while True:
                found = listed(parts, project, limit)
                picture.update(Text(text()), refresh=True)
                time.sleep(WATCH_S)
    except KeyboardInterrupt:
        return
