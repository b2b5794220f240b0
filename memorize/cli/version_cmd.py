"""``memorize version``."""

from __future__ import annotations

import platform
import sqlite3

import click

from memorize import __version__
from memorize.cli.console import document, json_option, say
from memorize.limits import FOLD_VERSION, FORMAT


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Show the version, and those of what it stands on."""
    facts = {
        "memorize": __version__,
        "format": FORMAT,
        "fold": FOLD_VERSION,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    if as_json:
        document(facts)
        return
    say("  ".join(f"{name} {value}" for name, value in facts.items()))
