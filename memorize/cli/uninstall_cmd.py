"""``memorize uninstall``: take everything out again that setup put in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from memorize.agents import install
from memorize.cli.console import app, confirm, document, json_option, say, tell
from memorize.daemon import life
from memorize.errors import NotPurged


@click.command()
@click.option("--purge", is_flag=True, help="Delete the memory too: everything that was ever captured here.")
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@json_option
def command(purge: bool, yes: bool, as_json: bool) -> None:
    """Give the agents' settings back as they were, and stop the daemon. The memory stays, unless --purge."""
    parts = app()
    if purge and not yes:
        confirm(f"Delete everything in {parts.home.root}?")
    told, problems = install.undo(parts.home, os.environ)
    stopped = life.stop(parts.home)
    if purge:
        parts.close()
        _delete(parts.home.root)
    if as_json:
        failed = [str(problem) for problem in problems]
        document({"told": told, "problems": failed, "daemon_stopped": stopped, "purged": purge})
    else:
        for line in told or ([] if problems else ["no settings file held hooks of ours"]):
            say(line)
        say("the memory is deleted" if purge else f"the memory stays in {parts.home.root}")
    for problem in problems[1:]:
        tell(f"memorize: {problem}")
    if problems:
        raise problems[0]


def _delete(root: Path) -> None:
    """Delete a state directory, also one that is a link. Raises NotPurged."""
    try:
        shutil.rmtree(root.resolve())
        if root.is_symlink():
            root.unlink()
    except OSError as error:
        raise NotPurged(path=root, detail=error.strerror or error) from error
