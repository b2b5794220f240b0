"""The texts of which one must occur in a hook's payload before any rule can fire: the hook's cheap test.

Without a daemon the hook looks for them before it starts the whole program. Too many cost a start, one too few a rule
that is not heard; so a program counts with whatever may end its name in a command line inside JSON.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from memorize.recall.commands import program_name
from memorize.recall.deeds import DEEDS, GOALS
from memorize.recall.globs import literals
from memorize.recall.triggers import EDIT, Own

_ENDS: Final = (" ", "'", '\\"', "\\t", "\\n", ".exe", ".cmd")
# Found in every payload before a tool: a glob that begins with a wildcard says nothing of its paths.
_ALWAYS: Final = "tool_input"
# Programs that fire by more than the table.
_MORE: Final[Mapping[str, tuple[str, ...]]] = {
    "branch-delete": ("git",),
    "dependency-add": ("pip", "pip3", "uv", "go"),
    "container-push": ("skopeo",),
    "destructive-delete": ("Remove-Item",),
    "migration-run": ("python", "python3", "php", "manage.py", "artisan", *GOALS["migration-run"]),
    "package-publish": tuple(GOALS["package-publish"]),
}


def needles(triggers: Iterable[str], own: Own, aliases: Iterable[str] = ()) -> tuple[bytes, ...]:
    """Return what to look for, given the triggers of all rules and what the projects declare (name -> commands).

    ``aliases`` are the expansions of git's aliases there: one that runs a shell makes git do anything.
    """
    found: set[bytes] = set()
    through_git = ("git",) if any(line.startswith("!") for line in aliases) else ()
    for name in triggers:
        if name.startswith(EDIT):
            for text in literals(name.removeprefix(EDIT)):
                found.update(_written(text or _ALWAYS))
            continue
        programs = [program for program, deeds in DEEDS.items() if any(deed.trigger == name for deed in deeds)]
        programs += [*through_git, *_MORE.get(name, ())]
        for line in own.get(name, ()):
            program, alone = _declared(line)
            found.update(_written(alone) if alone else ())
            programs += [program] if program else []
        found.update(form for program in programs for end in _ENDS for form in _written(program, end))
    return tuple(sorted(found))


def _declared(line: str) -> tuple[str, str]:
    """Return the program of a project's own command, or a text that may be followed by anything, the other one empty.

    Nothing need follow a program that is declared alone, and the name of an interpreter may end with its version.
    """
    first, *rest = line.split() or [""]
    program, operands = program_name(first), [word for word in rest if not word.startswith("-")]
    if not operands:
        return "", program
    return ("", operands[-1]) if program in ("python", "pypy", "pip") else (program, "")


def _written(text: str, end: str = "") -> set[bytes]:
    """Return how a text may stand in JSON: as it is or escaped, composed or not."""
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    escaped = {json.dumps(form, ensure_ascii=plain)[1:-1] for form in forms for plain in (True, False)}
    return {(form + end).encode("utf-8", "replace") for form in escaped}
