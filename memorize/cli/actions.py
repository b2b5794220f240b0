"""What the verbs for action rules share: names of triggers that a person typed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click

from memorize.errors import UnknownTrigger
from memorize.index.place import Place
from memorize.recall.deeds import BUILT_IN
from memorize.recall.triggers import EDIT, is_name, normal_name, own_triggers

on_option = click.option(
    "--on",
    "triggers",
    multiple=True,
    metavar="ACTION",
    help="Say it right before this action: git-commit, git-push, pr-create, ..., a trigger of .memorize.toml, or"
    ' "edit:<glob>" for files; may be repeated.',
)


def known(place: Place) -> tuple[str, ...]:
    """Return the names of all triggers at a place: the built-in ones and its own."""
    return (*BUILT_IN, *(name for name in own_triggers(place.marker) if name not in BUILT_IN))


def nearest(name: str, place: Place) -> str:
    """Return the known trigger that is most like a normal name, "" when none is."""
    return next(iter(difflib.get_close_matches(name, known(place), 1, 0.5)), "")


def checked(names: Iterable[str], place: Place) -> list[str]:
    """Return the normal names, each once. Raises UnknownTrigger, which suggests the nearest."""
    found: dict[str, None] = {}
    for name in names:
        normal = normal_name(name)
        if not is_name(normal) or not (normal.startswith(EDIT) or normal in known(place)):
            near = nearest(normal, place)
            said = f'did you mean "{near}"?' if near else "no known one is like it"
            raise UnknownTrigger(name=name.strip(), near=said, known=", ".join(known(place)))
        found[normal] = None
    return list(found)
