"""``memorize daemon``: start it, stop it, ask how it is. Every verb works without it."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.daemon import life


@click.command()
@click.argument("what", type=click.Choice(["start", "stop", "status"]), default="status")
@json_option
def command(what: str, as_json: bool) -> None:
    """Start or stop the daemon, or show its status (the default). It leaves by itself when idle."""
    home = app().home
    running = life.status(home)
    if what == "start" and running is None:
        life.start(home)
        running = life.wait_until_up(home)
    if what == "stop" and running is not None:
        running = None if life.stop(home) else running
    if as_json:
        document({"running": running is not None, **(running._asdict() if running else {})})
        return
    if running is None:
        say("not running")
        return
    say(
        f"running for {running.since_s} s (version {running.version}, process {running.pid}): "
        f"{running.answers} answers, {running.ingested} events, {running.memory_kib // 1024} MiB"
    )
