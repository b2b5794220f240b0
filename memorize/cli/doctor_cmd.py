"""``memorize doctor``: one line a check, and the remedy where one is needed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from memorize.cli import checks
from memorize.cli.console import app, document, json_option, say
from memorize.clock import SystemClock
from memorize.config import Config
from memorize.errors import BadConfig, CannotRead, Problem
from memorize.paths import Home, state_root

if TYPE_CHECKING:
    from memorize.bootstrap import App


def _by_defaults() -> App:
    from memorize.bootstrap import App

    return App(Home(state_root(os.environ)), Config(), SystemClock())


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Check hooks, log, index, spool, daemon and disk. Exit code 1 when something fails."""
    try:
        results = checks.run(app())
    except Problem as problem:
        # Most is to be said just when the configuration cannot be used: the checks then go by the defaults.
        name = "config" if isinstance(problem, BadConfig | CannotRead) else "home"
        wrong = checks.Check(checks.FAIL, name, str(problem), problem.remedy())
        results = [wrong, *checks.run(_by_defaults(), without=(name,))]
    failed = sum(1 for one in results if one.level == checks.FAIL)
    if as_json:
        document({"items": [one._asdict() for one in results], "total": len(results), "failed": failed})
    else:
        for one in results:
            say(f"{one.level:5} {one.name:14} {one.text}")
            if one.do:
                say(f"      do: {one.do}")
    sys.exit(1 if failed else 0)
