"""``memorize rebuild``: make everything derived anew from the log."""

from __future__ import annotations

import time

import click

from memorize.cli.console import app, document, json_option, progress, say


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Build the index anew from the segments, and check it before it takes the old one's place."""
    parts = app()
    started = time.monotonic()
    with progress("events", quiet=as_json) as advance:
        events = parts.rebuild(wait_s=60.0, progress=advance)
    parts.ingest()
    parts.refresh_briefs()
    seconds = time.monotonic() - started
    if as_json:
        document({"events": events, "seconds": round(seconds, 3)})
        return
    say(f"{events} events indexed in {seconds:.1f} s")
