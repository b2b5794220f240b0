"""What a person calls a project, and what a project is called."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memorize.errors import AmbiguousProject, UnknownProject
from memorize.recall.plain import one_line

if TYPE_CHECKING:
    from memorize.bootstrap import App
    from memorize.index.read import Project

# Fewer digits are rather a short name that nobody has.
_KEY_MIN: Final = 4
_SHOWN: Final = 5


def called(project: Project) -> str:
    """Return name and beginning of the key: many have the same name."""
    return f"{one_line(project.name) or 'unnamed'} ({project.key[:8]})"


def project_meant(parts: App, word: str, *, joined: bool = False) -> Project:
    """Return the project that is meant by its name, its key or the beginning of it, or a directory of it.

    ``joined``: several that are joined count as one. Raises UnknownProject, AmbiguousProject.
    """
    found = _found(parts, word) if word else []
    if not found:
        raise UnknownProject(name=word)
    if len({one.root if joined else one.key for one in found}) > 1:
        raise AmbiguousProject(count=len(found), name=word, candidates=", ".join(map(called, found[:_SHOWN])))
    return found[0]


def _found(parts: App, word: str) -> list[Project]:
    reader = parts.reader()
    known = reader.projects()

    def like(holds: Callable[[Project], bool]) -> list[Project]:
        return [one for one in known if holds(one)]

    def there() -> list[Project]:
        key = parts.known_as(parts.place(word), reader)
        return like(lambda one: one.key == key)

    if word in (".", "..") or any(mark in word for mark in (os.sep, os.altsep) if mark):
        return there()
    wanted, digits = _plain(word), word.casefold()
    return (
        like(lambda one: one.key == digits or _plain(one.name) == wanted)
        or like(lambda one: len(digits) >= _KEY_MIN and one.key.startswith(digits))
        or (there() if Path(word).is_dir() else [])
    )


def _plain(name: str) -> str:
    """Names come from file systems and keyboards that differ in case and form."""
    return unicodedata.normalize("NFC", name).casefold()
