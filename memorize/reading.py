"""Where transcripts meet windows: files of the agents on one side, what claims say of them on the other.

The agents' readers and the windows know nothing of each other; this is the one place that knows both, and that opens
the files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from memorize import agents
from memorize.agents.base import Agent
from memorize.agents.transcripts import HEAD_BYTES, Head, Line
from memorize.consolidate import transcript
from memorize.consolidate.windows import Piece, Window, windows
from memorize.index import unclaimed

# Of one transcript no more is held at once; a longer one is read on when these windows are closed.
PIECES_MAX: Final = 8
# Tells whether what was said in a directory may be remembered ("" for an unknown one).
Allowed = Callable[[str], bool]


class Old(NamedTuple):
    """A transcript that lies there: when it was last written (wall ms) and its size in bytes."""

    path: Path
    modified_ms: int
    size: int


def backlog(agent: Agent, root: Path, since_ms: int = 0) -> list[Old]:
    """Return an agent's transcripts that were written since a time, those of subagents too, the newest first."""
    found: dict[Path, Old] = {}
    for path in agent.transcript_files(root, parts=True):
        try:
            seen = path.stat()
        except OSError:
            continue
        if seen.st_mtime_ns // 1_000_000 >= since_ms:
            found[path] = Old(path, seen.st_mtime_ns // 1_000_000, seen.st_size)
    return sorted(found.values(), key=lambda old: (-old.modified_ms, old.path))


def head_of(agent: Agent, path: Path) -> Head | None:
    """Return which session a transcript is of, None when it cannot be read."""
    try:
        with path.open("rb") as file:
            return agent.transcript_head(file.read(HEAD_BYTES), path)
    except OSError:
        return None


def pieces(
    connection: sqlite3.Connection, agent: Agent, path: Path, head: Head, allowed: Allowed, most: int = PIECES_MAX
) -> list[Piece]:
    """Return what no claim names of a transcript, at most so many pieces; nothing when it cannot or may not be read."""
    session, part = head.session, head.part
    if unclaimed.is_unread(connection, session):
        return []
    said = unclaimed.claimed_transcripts(connection, agent.name, session)
    sources = [source for one in said if (source := transcript.source_of(agent.name, session, one))]
    mine = [source for source in sources if source.part == part]
    try:
        with _opened(path) as (read, size):
            found = transcript.advance(mine, size, read)
            if found is None:
                return []
            claimed = partial(unclaimed.named_by_claims, connection)

            def parse(chunk: bytes, start: int) -> list[Line]:
                # What was said where the person wants no memory is left out, as the hooks leave it out.
                lines = agent.transcript_lines(chunk, start)
                return [line for line in lines if allowed(line.cwd or head.cwd)]

            whole = transcript.pieces(agent.name, session, part, found, read, parse, claimed)
            return list(islice(whole, most))
    except OSError:
        return []


def of_session(connection: sqlite3.Connection, name: str, session: str, allowed: Allowed) -> list[Piece]:
    """Return what is open of a session's transcript and of those of its subagents; ``name`` is the agent's."""
    if name not in agents.names():
        return []
    agent = agents.agent(name)
    named = unclaimed.transcript_of(connection, name, session)
    path = Path(named)
    if not named or not path.is_absolute() or not path.is_file():
        return []
    head = head_of(agent, path)
    if head is None:
        return []
    # The hooks know the session by the name that the agent gave it, whatever the file is called.
    found = pieces(connection, agent, path, head._replace(session=session, part=""), allowed)
    for one in agent.transcript_parts(path):
        part = head_of(agent, one)
        if part is not None and part.part and len(found) < PIECES_MAX:
            found += pieces(connection, agent, one, part._replace(session=session), allowed, PIECES_MAX - len(found))
    return found


def of_old(
    connection: sqlite3.Connection, agent: Agent, path: Path, head: Head, project: str, allowed: Allowed
) -> list[Window]:
    """Return the windows of a transcript whose session nobody captured: of its lines alone."""
    found = pieces(connection, agent, path, head, allowed)
    return windows(agent.name, head.session, (), found, project)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[transcript.Read, int]]:
    """Open a file for reading at offsets; its size is the one of this moment. Raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)

        def read(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        yield read, size
