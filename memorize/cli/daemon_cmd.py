"""``memorize daemon``: start it, stop it, ask how it is. Every verb works without it."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.counted import counted
from memorize.daemon import life
from memorize.errors import NoDaemon


@click.command()
@click.argument("what", type=click.Choice(["start", "stop", "status"]), default="status")
@json_option
def command(what: str, as_json: bool) -> None:
    """Start or stop the daemon, or show its status (the default). It leaves by itself when idle."""
    parts = app()
    home = parts.home
    stopped = False
    if what == "start":
        parts.identity  # noqa: B018 - says what is wrong with the state directory, where the daemon would be silent
        running: life.Running | None = life.start(home)
    elif what == "stop":
        running, stopped = None, life.stop(home)
    else:
        running = life.look(home)
        if running is None and life.is_locked(home):
            raise NoDaemon(seconds=int(life.ASK_S), detail="one holds its lock, but it is leaving, or does not answer")
    if as_json:
        document({"running": running is not None, **(running._asdict() if running else {})})
        return
    if running is None:
        say("stopped" if stopped else "not running; it starts when a session does")
        return
    say(
        f"running for {running.since_s} s (version {running.version}, process {running.pid}): "
        f"{counted(running.answers, 'answer')}, {counted(running.ingested, 'event')}, {running.memory_kib // 1024} MiB"
    )
    if running.failures:
        say(f"{counted(running.failures, 'round')} failed, the last one by {running.failure}")
