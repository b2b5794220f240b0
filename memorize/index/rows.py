"""From events to rows: everything that one event says by itself, without the fold.

Payloads are data from outside: a field of the wrong type counts as absent, and nothing here raises for one.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from memorize import model
from memorize.fold import reading
from memorize.index import commands, meta, sums, working
from memorize.index.packing import string
from memorize.index.text import document
from memorize.model import Event, Header, Stored

# Of one observation no more than this is indexed: what follows is output or pasted matter.
WORDS_CHARS_MAX: Final = 2_000
_BEFORE_CHARS_MAX: Final = 400
INT_MAX: Final = 2**63 - 1

# The kinds that the fold reads; every other event matters to it only as an alias, a source or a target.
FOLDABLE: Final = frozenset(
    {
        model.MEMORY_FORMED,
        model.MEMORY_SUPERSEDED,
        model.MEMORY_RETRACTED,
        model.MEMORY_RESTORED,
        model.MEMORY_PINNED,
        model.MEMORY_UNPINNED,
        model.MEMORY_CONFIRMED,
        model.MEMORY_JUDGED,
        model.WINDOW_CONSOLIDATED,
        model.PROJECT_LINKED,
        model.PROJECT_UNLINKED,
        model.ERASE_REQUESTED,
    }
)

# Of these more is kept than the fold reads.
TOLD_TOO: Final = frozenset({model.MEMORY_JUDGED, model.ERASE_REQUESTED})

_INSERT_EVENTS: Final = f"insert into events values({','.join('?' * 20)})"
_INSERT_WORDS: Final = "insert into observation_fts(rowid, text, before) values(?, ?, ?)"
_PUT_SESSION: Final = f"insert or replace into sessions values({','.join('?' * 18)})"
_PUT_TOUCHED: Final = f"insert or ignore into touched values({','.join('?' * 10)})"
_GET_SESSION: Final = "select * from sessions where session = ? and agent = ?"
_PUT_WRITER: Final = """
insert into writers values(?, ?, ?, ?, ?, ?) on conflict(writer) do update set
first_seq = min(first_seq, excluded.first_seq), last_seq = max(last_seq, excluded.last_seq),
events = events + excluded.events, wall = max(wall, excluded.wall)"""
_PUT_KIND: Final = """
insert into kinds values(?, ?) on conflict(kind) do update set events = events + excluded.events"""
_PUT_PROJECT: Final = """
insert into projects values(?, ?, ?, ?, ?) on conflict(key) do update set
name = excluded.name, lamport = excluded.lamport, id = excluded.id
where (excluded.lamport, excluded.id) > (lamport, id)"""
_PUT_PLACE: Final = """
insert into places values(?, ?, ?, ?, ?) on conflict(device, path) do update set
project = excluded.project, lamport = excluded.lamport, id = excluded.id
where (excluded.lamport, excluded.id) > (lamport, id)"""

# Columns of a session while a batch is at work on it.
_PROJECT, _DIR, _BRANCH, _HEAD, _OPENED, _CLOSED, _LAST, _TRANSCRIPT, _MODEL = range(2, 11)
_DEVICE, _LAMPORT, _COUNT, _PROMPT, _PROMPT_LAMPORT, _COMPACTED, _ROOT = range(11, 18)
_EMPTY_PAYLOAD: Final[Mapping[str, Any]] = {}


def mapping(event: Event) -> Mapping[str, Any]:
    """Return the payload, empty when there is none that can be read."""
    payload = event.payload
    return payload if type(payload) is dict and not event.malformed else _EMPTY_PAYLOAD


def malformed(event: Event) -> bool:
    """Tell whether the fold will quarantine the event whatever its kind (a payload from the log is a dict)."""
    return event.malformed or not (event.payload is None or type(event.payload) is dict)


def held(stored: Stored) -> bool:
    """Tell whether the body is there, readable or not."""
    event = stored.event
    return not stored.bare and (event.payload is not None or event.malformed or bool(event.header.scope_key))


class Inserted(NamedTuple):
    """The rows of ``events`` that a batch became; ``first`` is the number of the first one.

    ``slots`` maps (nonce, ordinal, kind, person) to a row's number; ``twins`` are rows whose slot was taken by a row
    before them in the same batch.
    """

    first: int
    rows: list[tuple[Any, ...]]
    slots: dict[tuple[bytes, int, str, bytes], int]
    twins: list[int]


def insert(
    connection: sqlite3.Connection, batch: Sequence[Stored], numbers: Mapping[str, int], received: int
) -> Inserted:
    """Insert the plain rows of events that are new.

    ``numbers`` maps file names to those of the table ``files``. Raises sqlite3.IntegrityError when an event is known.
    """
    n = first = next_number(connection)
    events: list[tuple[Any, ...]] = []
    slots: dict[tuple[bytes, int, str, bytes], int] = {}
    twins: list[int] = []
    append, number = events.append, int.from_bytes
    for event, file, offset, length, bare in batch:
        identity, header, payload, spoiled = event
        if type(payload) is dict and not spoiled:
            session, project = payload.get("session", ""), payload.get("project", "")
            if type(session) is not str or type(project) is not str or not (session + project).isascii():
                session, project = string(payload, "session"), string(payload, "project")
        else:
            session = project = ""
            spoiled = spoiled or payload is not None
        _, _, _, writer, seq, _, lamport, _, kind, _, _, nonce, ordinal, _, _, wall, scope_key, person, _ = header
        if nonce and slots.setdefault((nonce, ordinal, kind, person), n) != n:
            twins.append(n)
        append(
            (
                n, lamport, identity, kind, nonce, ordinal, writer, seq, wall if wall <= INT_MAX else INT_MAX, received,
                numbers[file], offset, length, session, project, person,
                1 if not bare and (payload is not None or spoiled or scope_key) else 0, 1 if spoiled else 0,
                number(identity[:7], "big"), number(nonce[:7], "big") if nonce else None,
            )
        )  # fmt: skip
        n += 1
    connection.executemany(_INSERT_EVENTS, events)
    _count(connection, batch, events)
    if max([row[8] for row in events], default=0) > received:
        meta.put(connection, "ahead", 1)
    return Inserted(first, events, slots, twins)


def next_number(connection: sqlite3.Connection) -> int:
    """Return the number that the next event gets."""
    found: int = connection.execute("select coalesce(max(n), 0) + 1 from events").fetchone()[0]
    return found


def _count(connection: sqlite3.Connection, batch: Sequence[Stored], events: Sequence[tuple[Any, ...]]) -> None:
    """Count the events of every kind and writer, and those of the set digest."""
    connection.executemany(_PUT_KIND, Counter([row[3] for row in events]).items())
    seqs: dict[bytes, list[int]] = {}
    walls: dict[bytes, int] = {}
    for row in events:
        seqs.setdefault(row[6], []).append(row[7])
        walls[row[6]] = max(walls.get(row[6], 0), row[8])
    replicas = {stored.event.header.writer: stored.event.header.replica for stored in batch}
    writers = [
        (writer, replicas[writer], min(found), max(found), len(found), walls[writer]) for writer, found in seqs.items()
    ]
    connection.executemany(_PUT_WRITER, writers)
    sums.counted(connection, [sums.Counted(row[1], row[2], row[6], row[7]) for row in events if row[16]])


class Telling:
    """What a batch tells about the work: words to be found, sessions, places, touched files, delivered memories."""

    def __init__(self, connection: sqlite3.Connection, received: int) -> None:
        """``received`` is the time of receipt in ms; a wall time after it counts as that."""
        self._connection = connection
        self._received = received
        self._words: list[tuple[int, str, str]] = []
        self._sessions: dict[tuple[str, str], list[Any]] = {}
        self._latest: dict[tuple[str, str], tuple[Header, Mapping[str, Any]]] = {}
        self._touched: list[tuple[Any, ...]] = []
        self._ran: list[tuple[int, str, int, bool | None]] = []

    def add(self, n: int, event: Event) -> None:
        """Take in one well-formed event with a body, with the number ``n``."""
        _, header, payload, _ = event
        if payload is None:
            return
        kind = header.kind
        words = _WORDS.get(kind)
        if words is not None:
            self._observed(n, header, payload, words(payload))
        elif kind in _SESSIONS:
            self._session_event(header, payload)
        elif kind == model.PROJECT_SEEN:
            self._project_seen(event, payload)
        elif kind == model.CONTEXT_DELIVERED:
            self._delivered(n, payload)
        elif kind == model.CONFLICT_WARNED:
            self._warned(n, payload)
        elif kind == model.MEMORY_JUDGED:
            self._judged(n, header, payload)
        elif kind == model.ERASE_REQUESTED:
            self._erasure(n, event.id, payload)
        elif kind == model.ERASE_ACKNOWLEDGED:
            rows = [(erasure, header.replica, n) for erasure in reading.ids(payload.get("erasures")) or ()]
            self._connection.executemany("insert or ignore into acknowledged values(?, ?, ?)", rows)
        elif kind == model.DEVICE_HELLO:
            told = (string(payload, name) for name in ("device", "name", "platform", "version"))
            self._connection.execute("insert or ignore into replicas values(?, ?, ?, ?, ?)", (header.replica, *told))

    def write(self) -> None:
        """Write the rows collected so far."""
        for key, (header, payload) in self._latest.items():
            row = self._sessions[key]
            row[_LAMPORT], row[_DEVICE] = header.lamport, header.replica
            row[_PROJECT], row[_DIR] = string(payload, "project"), string(payload, "dir")
            row[_BRANCH], row[_HEAD] = string(payload, "branch"), string(payload, "head")
        connection = self._connection
        connection.executemany(_INSERT_WORDS, self._words)
        connection.executemany(_PUT_SESSION, self._sessions.values())
        connection.executemany(_PUT_TOUCHED, self._touched)
        connection.executemany("insert or ignore into ran values(?, ?, ?, ?)", self._ran)

    def _observed(self, n: int, header: Header, payload: Mapping[str, Any], text: str) -> None:
        session = self._session(header, payload)
        before = ""
        kind = header.kind
        if session is not None:
            session[_COUNT] += 1
            if kind == model.OBSERVED_PROMPT:
                if header.lamport > session[_PROMPT_LAMPORT]:
                    session[_PROMPT], session[_PROMPT_LAMPORT] = document(text[:_BEFORE_CHARS_MAX]), header.lamport
            elif kind == model.OBSERVED_REPLY and session[_PROMPT_LAMPORT] < header.lamport:
                before = session[_PROMPT]
        if kind == model.OBSERVED_EDIT and text:
            self._edited(n, header, payload)
        elif kind == model.OBSERVED_SHELL and text:
            ok = payload.get("ok")
            form = commands.number(text, string(payload, "dir"))
            self._ran.append((n, string(payload, "project"), form, ok if type(ok) is bool else None))
        self._words.append((n, _day(header.wall // 900_000) + document(text[:WORDS_CHARS_MAX]), before))

    def _edited(self, n: int, header: Header, payload: Mapping[str, Any]) -> None:
        words = [string(payload, name) for name in ("project", "path", "agent", "session", "branch", "op")]
        lines = [_count_of(payload, name) for name in ("added", "removed")]
        self._touched.append((n, *words, *lines, max(0, min(header.wall, self._received))))

    def _session(self, header: Header, payload: Mapping[str, Any]) -> list[Any] | None:
        """Return the row of the session that the event belongs to, and remember what the latest event says of it."""
        name, agent = payload.get("session"), payload.get("agent")
        if type(name) is not str or type(agent) is not str or not name:
            return None
        key = (name, agent)
        row = self._sessions.get(key) or self._load(name, agent, header)
        if row is None:
            return None
        wall = header.wall
        if wall > row[_LAST]:
            row[_LAST] = max(row[_LAST], min(wall, self._received))
        lamport = header.lamport
        if lamport >= row[_LAMPORT]:
            row[_LAMPORT] = lamport
            self._latest[key] = (header, payload)
        return row

    def _load(self, name: str, agent: str, header: Header) -> list[Any] | None:
        try:
            (name + agent).encode()
        except UnicodeEncodeError:
            return None
        found = self._connection.execute(_GET_SESSION, (name, agent)).fetchone()
        if found is not None:
            row = list(found)
        else:
            row = [agent, name, "", "", "", "", None, None, 0, "", "", header.replica, -1, 0, "", -1, -1, ""]
        self._sessions[name, agent] = row
        return row

    def _session_event(self, header: Header, payload: Mapping[str, Any]) -> None:
        row = self._session(header, payload)
        if row is None:
            return
        wall = max(0, min(header.wall, self._received))
        if header.kind == model.SESSION_OPENED:
            row[_OPENED] = wall if row[_OPENED] is None else min(row[_OPENED], wall)
            row[_TRANSCRIPT] = string(payload, "transcript") or row[_TRANSCRIPT]
            row[_ROOT] = string(payload, "root") or row[_ROOT]
            row[_MODEL] = string(payload, "model") or row[_MODEL]
            if payload.get("source") in _FORGETTING:
                row[_COMPACTED] = max(row[_COMPACTED], header.lamport)
        else:
            row[_CLOSED] = wall if row[_CLOSED] is None else max(row[_CLOSED], wall)

    def _project_seen(self, event: Event, payload: Mapping[str, Any]) -> None:
        key = string(payload, "key")
        if not key:
            return
        order = (event.header.lamport, event.id)
        self._connection.execute(_PUT_PROJECT, (key, key, string(payload, "name"), *order))
        path, device = string(payload, "path"), string(payload, "device")
        if path:
            self._connection.execute(_PUT_PLACE, (device, path, key, *order))
        identities = payload.get("identities")
        for pair in identities if isinstance(identities, (list, tuple)) else ():
            if isinstance(pair, (list, tuple)) and len(pair) == 2:
                kind, value = (string({"": part}, "") for part in pair)
                self._connection.execute("insert or ignore into identities values(?, ?, ?)", (key, kind, value))

    def _warned(self, n: int, payload: Mapping[str, Any]) -> None:
        session, items = string(payload, "session"), payload.get("items")
        for item in items if session and isinstance(items, (list, tuple)) else ():
            if isinstance(item, (list, tuple)) and [type(part) for part in item[:3]] == [str, str, bytes]:
                mark = working.mark(string({"": item[0]}, ""), string({"": item[1]}, ""), item[2])
                self._connection.execute("insert or ignore into delivered values(?, ?, ?)", (session, mark, n))

    def _judged(self, n: int, header: Header, payload: Mapping[str, Any]) -> None:
        verdict = payload.get("verdict")
        if verdict in model.VERDICTS and len(header.deps) >= 2:
            row = (*header.deps[:2], n, verdict)
            self._connection.execute("insert or ignore into judged values(?, ?, ?, ?)", row)

    def _erasure(self, n: int, identity: bytes, payload: Mapping[str, Any]) -> None:
        if reading.erasure(payload) is not None:
            self._connection.execute("insert or ignore into erasures values(?, ?)", (n, identity))
            kept = [(one,) for one in reading.ids(payload.get("kept")) or ()]
            self._connection.executemany("insert or ignore into kept values(?)", kept)
            sessions = payload.get("sessions")
            unread = [(string({"": one}, ""),) for one in sessions] if isinstance(sessions, (list, tuple)) else []
            self._connection.executemany("insert or ignore into unread values(?)", unread)

    def _delivered(self, n: int, payload: Mapping[str, Any]) -> None:
        session, items = string(payload, "session"), payload.get("items")
        for item in items if session and isinstance(items, (list, tuple)) else ():
            if isinstance(item, (list, tuple)) and item and type(item[0]) is bytes:
                self._connection.execute("insert or ignore into delivered values(?, ?, ?)", (session, item[0], n))


def _count_of(payload: Mapping[str, Any], name: str) -> int:
    value = payload.get(name)
    return value if type(value) is int and 0 <= value <= INT_MAX else 0


@lru_cache(maxsize=512)
def _day(quarter: int) -> str:
    """Return the local day of a quarter of an hour since 1970, as the words that are indexed."""
    try:
        day = time.localtime(quarter * 900)
    except (OverflowError, ValueError, OSError):
        return ""
    # As one word for the day and one for the month, which is what a date or the beginning of one is as a query.
    month = f"{day.tm_year:04}{day.tm_mon:02}"
    return f"{month}{day.tm_mday:02} {month} "


def _text(name: str) -> Callable[[Mapping[str, Any]], str]:
    def get(payload: Mapping[str, Any]) -> str:
        value = payload.get(name)
        return value if type(value) is str else ""

    return get


def _tool(payload: Mapping[str, Any]) -> str:
    given = payload.get("input")
    return f"{string(payload, 'tool')} {given if type(given) is str else ''}"


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    model.OBSERVED_PROMPT: _text("text"),
    model.OBSERVED_REPLY: _text("text"),
    model.OBSERVED_NOTE: _text("text"),
    model.OBSERVED_EDIT: _text("path"),
    model.OBSERVED_SHELL: _text("command"),
    model.OBSERVED_COMMIT: _text("subject"),
    model.OBSERVED_TOOL: _tool,
}
# After these the agent has lost what it was told, so it may be told again.
_FORGETTING: Final = ("compact", "clear")
_SESSIONS: Final = frozenset({model.SESSION_OPENED, model.SESSION_CLOSED})
