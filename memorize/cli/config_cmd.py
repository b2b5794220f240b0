"""``memorize config``: what can be set, and what it is."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.config import KEYS


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Show every key of config.toml with its value and meaning. Change it with any editor."""
    parts = app()
    path = parts.home.config
    values = {f"{key.section}.{key.name}": getattr(parts.config, key.field) for key in KEYS}
    if as_json:
        document({"path": str(path), "values": values})
        return
    say(f"# {path}{'' if path.exists() else ' (not there yet; these are the defaults)'}")
    section = ""
    for key in KEYS:
        if key.section != section:
            section = key.section
            say(f"\n[{section}]")
        value = values[f"{key.section}.{key.name}"]
        shown = f'"{value}"' if isinstance(value, str) else value
        say(f"{key.name} = {shown}  # {key.meaning}")
