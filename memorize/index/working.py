"""Who is at work and on what, as the index knows it: sessions, the files they wrote, and how commands ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from blake3 import blake3

# So many runs of one command are looked at, the latest ones.
_RUNS_MAX: Final = 64
_TOUCHES_MAX: Final = 5_000


class Working(NamedTuple):
    """A session as it was seen last. Times are wall ms; ``closed`` None while it runs, or when it was taken up again.

    ``device`` is the replica that captured it, ``root`` the checkout it began in ("" when nobody told).
    """

    agent: str
    session: str
    branch: str
    root: str
    device: bytes
    opened: int | None
    closed: int | None
    last: int


class Touch(NamedTuple):
    """One edit: the event's id, which file (relative to its checkout), by whom, on which branch, what and when."""

    id: bytes
    path: str
    agent: str
    session: str
    branch: str
    op: str
    added: int
    removed: int
    at: int


class Run(NamedTuple):
    """One run of a command; ``ok`` None when its end is not known, ``wall`` when it was."""

    n: int
    id: bytes
    session: str
    ok: bool | None
    order: tuple[int, bytes]
    wall: int


def mark(kind: str, subject: str, source: bytes) -> bytes:
    """Return what stands for "a session was warned of this because of that"; ``source`` is an id or a nonce."""
    text = f"{kind}\0{subject}\0".encode("utf-8", "replace")
    return blake3(text + source, derive_key_context="memorize 2026 warning mark v1").digest()


def sessions(connection: sqlite3.Connection, projects: Collection[str] | None, since: int) -> list[Working]:
    """Return the sessions of these projects (keys), or of all, that said something since a time, the latest first."""
    sql = (
        "select agent, session, branch, root, device, opened, case when closed >= last then closed end, last"
        f" from sessions where {_in(projects)} and last >= ? order by last desc, session, agent"
    )
    return [Working(*row) for row in connection.execute(sql, (*(projects or ()), since))]


def touches(connection: sqlite3.Connection, projects: Collection[str] | None, since: int) -> list[Touch]:
    """Return the edits in these projects (keys), or in all, since a time, the latest first."""
    sql = (
        "select e.id, t.path, t.agent, t.session, t.branch, t.op, t.added, t.removed, t.at"
        f" from touched t join events e on e.n = t.n where {_in(projects, 't.')} and t.at >= ?"
        f" order by t.at desc, t.n desc limit {_TOUCHES_MAX}"
    )
    return [Touch(*row) for row in connection.execute(sql, (*(projects or ()), since))]


def runs(connection: sqlite3.Connection, projects: Sequence[str], command: int) -> list[Run]:
    """Return the latest runs of a command (``commands.number``) in these projects, the last in log order first."""
    sql = (
        "select r.n, e.id, e.session, r.ok, e.lamport, e.wall from ran r join events e on e.n = r.n"
        f" where r.project in ({_marks(projects)}) and r.command = ? order by r.n desc limit {_RUNS_MAX}"
    )
    rows = connection.execute(sql, (*projects, command)).fetchall()
    found = [
        Run(n, bytes(identity), session, None if ok is None else bool(ok), (lamport, bytes(identity)), wall)
        for n, identity, session, ok, lamport, wall in rows
    ]
    return sorted(found, key=lambda run: run.order, reverse=True)


def _in(projects: Collection[str] | None, table: str = "") -> str:
    return "1" if projects is None else f"{table}project in ({_marks(projects)})"


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))
