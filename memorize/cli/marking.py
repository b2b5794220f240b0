"""What the verbs share that change how one memory counts and leave its text: pin, unpin, confirm, restore."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memorize.bootstrap import App
from memorize.cli.console import app, document, say
from memorize.index.groups import Group
from memorize.model import Draft


def mark(identity: str, drafts: Callable[[App, Group], Sequence[Draft]]) -> Group:
    """Write what is to be said of the memory and return how it stands then; no drafts change nothing."""
    parts = app()
    group = parts.group(parts.resolve(identity))
    if made := drafts(parts, group):
        parts.append(made)
        parts.changed(group.scope, group.project)
        group = parts.group(group.id)
    return group


def show(group: Group, as_json: bool, *lines: str) -> None:
    """Print the memory for a program, or these lines for a person."""
    if as_json:
        document({"id": group.id, **group.shown()})
        return
    for line in lines:
        say(line)
