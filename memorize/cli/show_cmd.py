"""``memorize show``: one memory with everything that is known of it."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say


@click.command()
@click.argument("identity", metavar="ID")
@json_option
def command(identity: str, as_json: bool) -> None:
    """Show memory or event ID in full."""
    parts = app()
    found = parts.resolve(identity, events=True)
    described = parts.describe(found)
    if as_json:
        document(described)
        return
    for name, value in described.items():
        shown = value.hex() if isinstance(value, bytes) else value
        if isinstance(shown, list | tuple):
            shown = ", ".join(item.hex()[:12] if isinstance(item, bytes) else str(item) for item in shown)
        if shown not in ("", None):
            say(f"{name:14} {shown}")
