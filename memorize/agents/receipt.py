"""What setup changed, written down so that uninstall can undo exactly that and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from memorize.agents.base import Piece
from memorize.agents.edit import Inserted
from memorize.errors import ReceiptDamaged
from memorize.paths import Home

_NAME: Final = "setup.json"
_VERSION: Final = 1


class Record(NamedTuple):
    """One settings file: whose it is, what was inserted, the folders made for it, and the copy of what was there."""

    agent: str
    path: Path
    inserted: Inserted
    folders: tuple[Path, ...] = ()
    backup: Path | None = None


def location(home: Home) -> Path:
    """Return the path of the receipt."""
    return home.receipts / _NAME


def load(home: Home) -> dict[Path, Record]:
    """Return the records by the path of their file. Raises ``ReceiptDamaged`` for one that is there but damaged."""
    path = location(home)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        records = [_record(entry) for entry in content["files"]]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReceiptDamaged(path=path, detail=str(error) or type(error).__name__) from None
    return {record.path: record for record in records}


def encode(records: dict[Path, Record]) -> bytes:
    """Return the receipt's bytes."""
    files = [
        {
            "agent": record.agent,
            "path": str(record.path),
            **record.inserted._asdict(),
            "folders": [str(folder) for folder in record.folders],
            "backup": None if record.backup is None else str(record.backup),
        }
        for record in records.values()
    ]
    return (json.dumps({"version": _VERSION, "files": files}, indent=2) + "\n").encode("utf-8")


def _record(entry: dict[str, Any]) -> Record:
    inserted = Inserted(
        bool(entry["created"]),
        str(entry["before"]),
        str(entry["after"]),
        tuple(Piece(int(offset), str(text)) for offset, text in entry["pieces"]),
        tuple(str(name) for name in entry["made"]),
        tuple(str(command) for command in entry["commands"]),
    )
    folders = tuple(Path(folder) for folder in entry["folders"])
    backup = None if entry["backup"] is None else Path(entry["backup"])
    return Record(str(entry["agent"]), Path(entry["path"]), inserted, folders, backup)
