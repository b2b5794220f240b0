"""Keep the briefs up to the state: what the hook prints at a session start when there is no daemon to ask.

A brief that is not current must never be printed, so all that the state may have changed are rendered again, and
files of directories that are no longer known go.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from memorize import agents
from memorize.index.briefs import Spot, StoredBrief
from memorize.model import Context
from memorize.paths import Home
from memorize.recall.brief import brief_file_bytes, brief_file_name, delivered_payload, record_line

START: Final = "SessionStart"
TRIGGERS: Final = "triggers"


def render(spots: Iterable[Spot], context: Callable[[Spot], Context]) -> list[StoredBrief]:
    """Return the brief of every agent for every directory; directories of one project share their context."""
    made: dict[str, Context] = {}
    briefs = []
    for spot in spots:
        if spot.root not in made:
            made[spot.root] = context(spot)
        found = made[spot.root]
        for name in agents.names():
            text = agents.agent(name).render(START, found.text).decode("utf-8", "replace")
            record = record_line(delivered_payload(found, name, spot.project, START)) if found.items else ""
            briefs.append(StoredBrief(name, spot.path, spot.project, record, text))
    return briefs


def write_files(home: Home, briefs: Iterable[StoredBrief], *, all_of_them: bool) -> None:
    """Write the files that the hook reads, each whole; with ``all_of_them`` every other file there goes. OSError."""
    folder = home.briefs
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    written: dict[str, tuple[str, str]] = {}
    for brief in briefs:
        name = brief_file_name(brief.agent, brief.directory)
        if name in written:
            # Two directories with one name: neither may be told what belongs to the other, and the index knows both.
            continue
        written[name] = (brief.agent, brief.directory)
        _replace(folder / name, brief_file_bytes(brief.agent, brief.directory, brief.record, brief.text.encode()))
    if all_of_them:
        for entry in os.scandir(folder):
            if entry.name not in written:
                with contextlib.suppress(OSError):
                    Path(entry.path).unlink()


def write_triggers(home: Home, words: Iterable[bytes]) -> None:
    """Write what the hook looks for before a tool when there is no daemon, one a line; without any no file. OSError."""
    path = home.hook / TRIGGERS
    lines = b"".join(word + b"\n" for word in words)
    if lines and home.hook.is_dir():
        _replace(path, lines)
    else:
        path.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    with contextlib.suppress(OSError):
        if path.read_bytes() == content:
            return
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
