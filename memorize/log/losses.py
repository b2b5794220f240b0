"""What was lost of the log: what an older index still knew of, and what the person has taken note of.

A loss cannot be mended. Once it was told and noted it is no alarm any more, so that the next one is not overlooked.
Kept in ``receipts/losses.json``; without the file nothing is noted and nothing was seen.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from memorize.log.chain_check import Gap
from memorize.log.files import Files, replace_file
from memorize.paths import Home

_NAME: Final = "losses.json"
_BYTES_MAX: Final = 4 << 20


class Losses(NamedTuple):
    """``seen``: numbers that an index held and the log did not any more. ``noted``: name of a loss -> wall ms."""

    seen: tuple[Gap, ...] = ()
    noted: Mapping[str, int] = {}


def load(home: Home, files: Files) -> Losses:
    """Return what is written down; nothing when that cannot be read."""
    with contextlib.suppress(OSError, ValueError, TypeError, LookupError, AttributeError):
        content = json.loads(files.read(f"{home.receipts}/{_NAME}", _BYTES_MAX))
        seen = tuple(Gap(bytes.fromhex(one[0]), int(one[1]), int(one[2])) for one in content["seen"])
        return Losses(seen, {str(name): int(wall) for name, wall in content["noted"].items()})
    return Losses()


def see(home: Home, files: Files, gaps: Iterable[Gap]) -> None:
    """Write down that these numbers are gone. Raises OSError."""
    before = load(home, files)
    seen = tuple(dict.fromkeys((*before.seen, *gaps)))
    if seen != before.seen:
        _save(home, files, before._replace(seen=seen))


def note(home: Home, files: Files, names: Iterable[str], wall_ms: int) -> int:
    """Write down that these losses were told; return how many of them are new. Raises OSError."""
    before = load(home, files)
    fresh = [name for name in dict.fromkeys(names) if name not in before.noted]
    if fresh:
        _save(home, files, before._replace(noted={**before.noted, **dict.fromkeys(fresh, wall_ms)}))
    return len(fresh)


def _save(home: Home, files: Files, losses: Losses) -> None:
    content: dict[str, Any] = {
        "seen": [[gap.writer.hex(), gap.first, gap.last] for gap in losses.seen],
        "noted": dict(losses.noted),
    }
    data = json.dumps(content, indent=1).encode()
    try:
        replace_file(files, f"{home.receipts}/{_NAME}", data)
    except FileNotFoundError:
        files.make_dir(str(home.receipts))
        replace_file(files, f"{home.receipts}/{_NAME}", data)
