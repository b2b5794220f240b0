"""Whether an own pack is still what was put into the folder: a disk or a tool may have spoilt it since."""

from __future__ import annotations

from typing import Final

from memorize.patterns import late
from memorize.sync.catalog import Row
from memorize.sync.pack import pack_name
from memorize.sync.packfile import BAD, OURS, probe
from memorize.sync.plan import level_of

SPOILT: Final = "its content is not what this device put there"
_NAME: Final = late(r"[0-9]-[0-9a-f]{16}\.mzp")


def is_as_made(path: str, data: bytes) -> bool:
    """Tell whether these bytes are those of which a pack has its name; of another name, whether they are whole."""
    name = path.rpartition("/")[2].lower()
    return name == pack_name(level_of(path), data) if _NAME.fullmatch(name) else probe(data).state == OURS


def spoilt(row: Row, known: Row) -> Row:
    """Return the row of an own pack that is not as it was made: what it held, by ``known``, is to be made again."""
    held = {name: getattr(known, name) for name in ("store", "key", "events", "runs", "scopes", "loose")}
    return row._replace(state=BAD, why=SPOILT, **held)
