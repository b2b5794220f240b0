"""Where this device syncs to: what the person configured, in ``sync.json`` of the state directory."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from memorize.errors import BadTarget, CannotRead, CannotWrite, ListDamaged
from memorize.log.files import Files, replace_file
from memorize.paths import Home

FOLDER: Final = "folder"
SSH: Final = "ssh"
KINDS: Final = (FOLDER, SSH)
_FORMAT: Final = 1
_BYTES_MAX: Final = 1 << 20


class Target(NamedTuple):
    """One place to sync with: ``kind`` is folder or ssh, ``where`` an absolute path or an address."""

    kind: str
    where: str

    @property
    def label(self) -> str:
        """What it is called on the screen."""
        return f"folder {self.where}" if self.kind == FOLDER else self.where


def parse(words: Sequence[str], home: Path) -> Target:
    """Return the target that a person gave as words: ``folder PATH``, or an address ``ssh://host``.

    Raises BadTarget for anything else, and for a folder that cannot be one: inside the state directory, or around it.
    """
    from memorize.sync.ssh import SCHEME, parse_address  # whoever only loads targets needs none of it

    if len(words) == 1 and words[0].startswith(SCHEME):
        parse_address(words[0])
        return Target(SSH, words[0])
    if len(words) != 2 or words[0] != FOLDER or not words[1].strip():
        raise BadTarget(what=" ".join(words), detail='give "folder PATH" or "ssh://host"')
    path = Path(os.path.abspath(Path(words[1]).expanduser()))  # noqa: PTH100 - links stay as the person gave them
    inside, around = path.resolve(), home.resolve()
    if inside == around or inside in around.parents or around in inside.parents:
        raise BadTarget(what=str(path), detail="the folder and the state directory must not lie in one another")
    return Target(FOLDER, str(path))


def load(home: Home, files: Files) -> tuple[Target, ...]:
    """Return the configured targets in their order. Raises CannotRead, or ListDamaged for what is no such list."""
    try:
        raw = files.read(str(home.sync), _BYTES_MAX)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise CannotRead(path=home.sync, detail=error.strerror or error) from error
    try:
        found: Any = json.loads(raw)
        pairs = [(one["kind"], one["where"]) for one in found["targets"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ListDamaged(path=home.sync, detail=error, again="memorize sync add") from error
    return tuple(Target(kind, where) for kind, where in pairs if kind in KINDS and isinstance(where, str))


def save(home: Home, files: Files, targets: Sequence[Target]) -> None:
    """Write the targets. Raises CannotWrite."""
    told = {"format": _FORMAT, "targets": [one._asdict() for one in targets]}
    try:
        replace_file(files, str(home.sync), (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode())
    except OSError as error:
        raise CannotWrite(path=home.sync, detail=error.strerror or error) from error
