"""What the verbs for action rules share: names of triggers that a person typed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

from memorize.errors import UnknownTrigger
from memorize.index.place import Place, marker_fault
from memorize.patterns import late
from memorize.recall.deeds import BUILT_IN
from memorize.recall.triggers import EDIT, is_name, normal_name, own_triggers, triggers_of

_OF_FILES = late(r"edit:?|.*[/*\\].*|.*\w\.\w+")
_ABSOLUTE = late(r"[A-Za-z]:/")

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


def advice(name: str, place: Place) -> str:
    """Return what somebody who typed this may have meant, as half a sentence; "" when nothing is like it."""
    if fault := marker_fault(place.root):
        return f".memorize.toml cannot be read: {fault}"
    parts = [normal_name(part) for part in re.split(r"[\s,]+", name) if part]
    if len(parts) > 1 and set(parts) <= set(known(place)):
        return f"give --on for each: {' '.join(f'--on {part}' for part in parts)}"
    if fires := triggers_of(name, aliases=place.aliases, own=own_triggers(place.marker)):
        return f'did you mean "{fires[0]}"?'
    if _OF_FILES.fullmatch(name.strip()):
        return 'for files give a glob from the root of the repository: "edit:migrations/*"'
    near = next(iter(difflib.get_close_matches(normal_name(name), known(place), 1, 0.5)), "")
    return f'did you mean "{near}"?' if near else ""


def checked(names: Iterable[str], place: Place) -> list[str]:
    """Return the normal names, each once. Raises UnknownTrigger, which suggests the nearest."""
    found: dict[str, None] = {}
    for name in names:
        normal = normal_name(name)
        if normal.startswith(EDIT):
            glob = normal.removeprefix(EDIT)
            if place.root and glob.startswith(f"{place.root}/"):
                normal = EDIT + glob.removeprefix(f"{place.root}/")
        if not is_name(normal) or not (normal.startswith(EDIT) or normal in known(place)) or _nowhere(normal):
            near = advice(name, place) or "no known one is like it"
            raise UnknownTrigger(name=name.strip(), near=near, known=", ".join(known(place)))
        found[normal] = None
    return list(found)


def _nowhere(name: str) -> bool:
    """Tell whether a glob names a place on a disk of Windows, where no file of a repository is looked for."""
    return name.startswith(EDIT) and _ABSOLUTE.match(name.removeprefix(EDIT)) is not None


def ordered(text: str) -> list[str]:
    """Return the actions before which a single sentence orders something, none for any other text."""
    from memorize.consolidate.statements import classify, sentences

    found = sentences(text)
    stated = classify(found[0]) if len(found) == 1 else None
    return list(stated.triggers) if stated is not None else []
