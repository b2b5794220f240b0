"""``memorize verify``: read the log as it lies on disk."""

from __future__ import annotations

import sys

import click

from memorize.cli.console import app, document, json_option, say
from memorize.cli.damage import report_lines
from memorize.log.verify import verify

_MEANING = {0: "clean", 1: "repaired", 2: "data missing", 3: "could not be read"}


@click.command()
@click.option("--deep", is_flag=True, help="Also check every id, every body and the chain of every writer.")
@click.option("--repair", is_flag=True, help="Mend what can be mended. Deletes nothing.")
@json_option
def command(deep: bool, repair: bool, as_json: bool) -> None:
    """Check the log. Exit code: 0 clean, 1 repaired, 2 data missing, 3 something could not be read."""
    parts = app()
    report = verify(
        parts.home,
        deep=deep,
        repair=repair,
        offsets=parts.indexed(),
        normalise=parts.intake.normalise,
        now_ms=parts.clock.wall_ms(),
    )
    if repair:
        parts.ingest()
    if as_json:
        document({**report._asdict(), "exit": report.exit})
    else:
        for line in report_lines(report):
            say(line)
        say(_MEANING[report.exit])
        if repair and report.fresh:
            say("what is lost is noted now and told from here on as known; everything else is kept")
    sys.exit(report.exit)
