"""``memorize digest``: two numbers that are equal on replicas that hold the same."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print the digest of the set of events and that of the state folded from it."""
    pair = app().reader().digest()
    if as_json:
        document({"set": pair[0], "state": pair[1]})
        return
    say(f"set {pair[0]}")
    say(f"state {pair[1]}")
