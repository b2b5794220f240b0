"""What no accepted claim covers yet: the sessions that have a window open, and their observations (DESIGN 8.1)."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import msgpack

from memorize.model import OBSERVED_REPLY, SESSION_CLOSED, SESSION_OPENED

_IN_MAX: Final = 500
# The index by session leaves out events without one, and SQLite takes it only when a query says so, too.
_UNCLAIMED: Final = (
    "e.session <> '' and e.kind >= 'observed.' and e.kind < 'observed/' and e.held and not e.malformed"
    " and not exists(select 1 from claimed c where c.source = e.id)"
    " and not exists(select 1 from aliases a where a.id = e.id)"
    " and not exists(select 1 from erased x where x.id = e.id)"
)


# Of whichever device the replica of session s is.
_LAST_WORD: Final = """(select max(o.last) from sessions o where o.device = s.device
    or o.device in (select k.replica from replicas k join replicas r on r.device = k.device where r.replica = s.device))
"""


class OpenSession(NamedTuple):
    """A session with observations that no claim names. Times are wall ms; ``closed`` None while it runs."""

    agent: str
    session: str
    project: str
    closed: int | None
    last: int
    observations: int


class Owner(NamedTuple):
    """Whose sessions are meant: those of a device, by whichever of its replicas they were captured.

    ``replica`` is the present one, whose greeting the index may lack. Sessions of a device that said nothing since
    ``silent_since`` (wall ms) count as well. None instead of an owner means every device.
    """

    device: str
    replica: bytes
    silent_since: int = 0


def open_sessions(
    connection: sqlite3.Connection,
    owner: Owner | None,
    only: Collection[tuple[str, str]] | None = None,
) -> list[OpenSession]:
    """Return the sessions that have a window open, the longest untouched first; ``only`` these (agent, session)."""
    where, values = "1", tuple[object, ...]()
    if owner is not None:
        # The last word of a device is the last one of any of its replicas.
        where = f"""(s.device = ? or exists(select 1 from replicas r where r.replica = s.device and r.device = ?)
            or {_LAST_WORD} < ?)"""
        values = (owner.replica, owner.device, owner.silent_since)
    sql = f"""
        select s.agent, s.session, s.project, s.closed, s.last,
          (select count(*) from events e where e.session = s.session and {_UNCLAIMED}) as open
        from sessions s where s.observations > 0 and {where}
    """
    if only is None:
        found = connection.execute(f"{sql} and open > 0", values).fetchall()
    else:
        one = f"{sql} and s.session = ? and s.agent = ? and open > 0"
        found = [
            row
            for agent, session in sorted(only)
            for row in connection.execute(one, (*values, session, agent)).fetchall()
        ]
    return sorted((OpenSession(*row) for row in found), key=lambda one: (one.last, one.session))


def arrived(connection: sqlite3.Connection) -> int:
    """Return the number of the event that came last."""
    return int(connection.execute("select coalesce(max(n), 0) from events").fetchone()[0])


def boundaries(connection: sqlite3.Connection, after: int) -> set[tuple[str, str]]:
    """Return (agent, session) of the sessions that began, were compacted or ended in events that came after one."""
    sql = """select distinct s.agent, s.session from events e join sessions s on s.session = e.session
        where e.n > ? and e.session <> '' and e.kind in (?, ?)"""
    rows = connection.execute(sql, (after, SESSION_OPENED, SESSION_CLOSED))
    return {(str(agent), str(session)) for agent, session in rows}


def answered(connection: sqlite3.Connection, after: int) -> set[tuple[str, str]]:
    """Return (agent, session) of the sessions in which a turn ended in events that came after one."""
    sql = """select distinct s.agent, s.session from events e join sessions s on s.session = e.session
        where e.n > ? and e.session <> '' and e.kind = ?"""
    return {(str(agent), str(session)) for agent, session in connection.execute(sql, (after, OBSERVED_REPLY))}


def unclaimed(connection: sqlite3.Connection, session: str) -> list[tuple[str, int, int]]:
    """Return where the open observations of a session lie, in log order: file name, offset, length."""
    sql = f"""
        select f.name, e.offset, e.length from events e join files f on f.number = e.file
        where e.session = ? and {_UNCLAIMED} order by e.lamport, e.id
    """
    return [(str(name), int(offset), int(length)) for name, offset, length in connection.execute(sql, (session,))]


class Claim(NamedTuple):
    """An accepted claim: its id, whose window it closed, and the ids that it names."""

    id: bytes
    agent: str
    session: str
    project: str
    sources: tuple[bytes, ...]


def claims_by(connection: sqlite3.Connection, extractor: str) -> list[Claim]:
    """Return the accepted claims of an extractor, the earliest first."""
    sql = "select id, agent, session, project from claims where accepted and extractor = ? order by n"
    found = []
    for identity, agent, session, project in connection.execute(sql, (extractor,)).fetchall():
        rows = connection.execute("select source from claimed where claim = ? order by source", (identity,))
        found.append(Claim(bytes(identity), agent, session, project, tuple(bytes(source) for (source,) in rows)))
    return found


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


def is_unread(connection: sqlite3.Connection, session: str) -> bool:
    """Tell whether a session's transcript must not be read, because something of the session was erased."""
    return connection.execute("select 1 from unread where session = ?", (session,)).fetchone() is not None
