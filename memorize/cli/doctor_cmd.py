"""``memorize doctor``: one line a check, and the remedy where one is needed."""

from __future__ import annotations

import sys

import click

from memorize.cli import checks
from memorize.cli.console import app, document, json_option, say


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Check hooks, log, index, spool, daemon and disk. Exit code 1 when something fails."""
    results = checks.run(app())
    failed = sum(1 for one in results if one.level == checks.FAIL)
    if as_json:
        document({"items": [one._asdict() for one in results], "total": len(results), "failed": failed})
    else:
        for one in results:
            say(f"{one.level:5} {one.name:14} {one.text}")
            if one.do:
                say(f"      do: {one.do}")
    sys.exit(1 if failed else 0)
