"""What no accepted claim covers yet: the sessions that have a window open, and their observations (DESIGN 8.1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgpack

_IN_MAX: Final = 500
_UNCLAIMED: Final = (
    "e.kind >= 'observed.' and e.kind < 'observed/' and e.held and not e.malformed"
    " and not exists(select 1 from claimed c where c.source = e.id)"
    " and not exists(select 1 from aliases a where a.id = e.id)"
    " and not exists(select 1 from erased x where x.id = e.id)"
)


class OpenSession(NamedTuple):
    """A session with observations that no claim names. Times are wall ms; ``closed`` None while it runs."""

    agent: str
    session: str
    project: str
    closed: int | None
    last: int
    observations: int


def open_sessions(connection: sqlite3.Connection, replica: bytes) -> list[OpenSession]:
    """Return the sessions of this replica that have a window open, the longest untouched first."""
    sql = f"""
        select s.agent, s.session, s.project, s.closed, s.last,
          (select count(*) from events e where e.session = s.session and {_UNCLAIMED}) as open
        from sessions s where s.observations > 0 and s.device = ? and open > 0 order by s.last, s.session
    """
    return [OpenSession(*row) for row in connection.execute(sql, (replica,))]


def unclaimed(connection: sqlite3.Connection, session: str) -> list[tuple[str, int, int]]:
    """Return where the open observations of a session lie, in log order: file name, offset, length."""
    sql = f"""
        select f.name, e.offset, e.length from events e join files f on f.number = e.file
        where e.session = ? and {_UNCLAIMED} order by e.lamport, e.id
    """
    return [(str(name), int(offset), int(length)) for name, offset, length in connection.execute(sql, (session,))]


def named_by_claims(connection: sqlite3.Connection, sources: Sequence[bytes]) -> set[bytes]:
    """Return those of these sources (observations, or marks of lines) that an accepted claim names."""
    found: set[bytes] = set()
    for start in range(0, len(sources), _IN_MAX):
        part = sources[start : start + _IN_MAX]
        sql = f"select source from claimed where source in ({','.join('?' * len(part))})"
        found.update(bytes(source) for (source,) in connection.execute(sql, part))
    return found


def claimed_transcripts(connection: sqlite3.Connection, agent: str, session: str) -> list[Any]:
    """Return what accepted claims say of a session's transcripts, as it stands in their payloads."""
    sql = "select transcript from claims where session = ? and agent = ? and accepted and transcript is not null"
    rows = connection.execute(sql, (session, agent))
    return [msgpack.unpackb(said, strict_map_key=False, unicode_errors="surrogatepass") for (said,) in rows]


def transcript_of(connection: sqlite3.Connection, agent: str, session: str) -> str:
    """Return where the agent said that it keeps the transcript of a session, "" when it did not."""
    sql = "select transcript from sessions where session = ? and agent = ?"
    row = connection.execute(sql, (session, agent)).fetchone()
    return str(row[0]) if row else ""
