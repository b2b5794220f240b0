"""What goes along when something is erased: everything that says the same, and what was taken from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from memorize import model
from memorize.fold.state import SHADOWED
from memorize.index.groups import replaced
from memorize.index.packing import chunks, number8, unpack

# Why an event goes.
NAMED: Final = "named"
SAME_CAPTURE: Final = "the same capture"
SAME_TEXT: Final = "says the same"
EARLIER: Final = "an earlier version of it"
TWIN: Final = "made of the same, elsewhere"
CITES: Final = "was taken from it"
SUMMARY: Final = "sums up what it was part of"

# Kinds that hold a person's or an agent's words. Of the rest nothing can be erased, or only harm would be done by it.
_WORDY: Final = ("observed.", "session.", "memory.")
_WORDY_TOO: Final = frozenset({model.CONTEXT_DELIVERED, model.CONFLICT_WARNED, model.PROJECT_SEEN})
_SUMMARIES: Final = ("summary", "progress")


class Going(NamedTuple):
    """What is to be erased (id -> why), and what is kept though it was taken from some of it."""

    ids: Mapping[bytes, str]
    kept: tuple[bytes, ...]


class _Memory(NamedTuple):
    id: bytes
    kind: str
    scope: str
    status: str
    window: str
    text: str
    group: bytes
    sources: tuple[bytes, ...]


def may_go(kind: str) -> bool:
    """Tell whether an event of this kind can be erased on demand."""
    return kind.startswith(_WORDY) or kind in _WORDY_TOO


def kinds_of(connection: sqlite3.Connection, ids: Collection[bytes]) -> dict[bytes, str]:
    """Return id -> kind of those of the events that are known."""
    wanted = set(ids)
    found: dict[bytes, str] = {}
    for chunk in chunks(sorted({number8(identity) for identity in wanted})):
        rows = connection.execute(f"select id, kind from events where id8 in ({chunk})")
        found.update((bytes(identity), kind) for identity, kind in rows if identity in wanted)
    return found


def going(
    connection: sqlite3.Connection, chosen: Iterable[bytes], keep: Collection[bytes] = (), *, personal: bool = True
) -> Going:
    """Return the chosen events and all that goes along, without what is erased already or cannot be.

    ``keep`` are memories that may stay. Without ``personal`` the person's own memories stay although they were taken
    from what goes; they then wait for review.
    """
    finder = _Finder(connection, frozenset(keep), personal)
    ids = finder.run(chosen)
    kinds = kinds_of(connection, ids)
    ids = {identity: why for identity, why in ids.items() if identity in kinds and may_go(kinds[identity])}
    erased = {one for one in ids if connection.execute("select 1 from erased where id = ?", (one,)).fetchone()}
    return Going({one: why for one, why in ids.items() if one not in erased}, tuple(sorted(finder.spared)))


class _Finder:
    def __init__(self, connection: sqlite3.Connection, keep: frozenset[bytes], personal: bool) -> None:
        self.spared: set[bytes] = set()
        self._connection = connection
        self._keep = keep
        self._personal = personal
        self._memories: dict[bytes, _Memory] = {}
        self._citing: dict[bytes, list[bytes]] = {}
        self._alike: dict[tuple[str, object], list[bytes]] = {}
        columns = "id, kind, scope, status, window, text, text_group, sources"
        for *fields, sources in connection.execute(f"select {columns} from memories"):
            memory = _Memory._make([*fields, tuple(unpack(sources))])
            self._memories[memory.id] = memory
            for source in memory.sources:
                self._citing.setdefault(source, []).append(memory.id)
            for key in (("text", memory.text), ("group", memory.group)):
                if key[1]:
                    self._alike.setdefault(key, []).append(memory.id)

    def run(self, chosen: Iterable[bytes]) -> dict[bytes, str]:
        found = dict.fromkeys(chosen, NAMED)
        waiting = list(found)
        while waiting:
            identity = waiting.pop()
            for other, why in self._beside(identity):
                if other in self._keep:
                    self.spared.add(other)
                elif other not in found:
                    found[other] = why
                    waiting.append(other)
        return found

    def _beside(self, identity: bytes) -> Iterator[tuple[bytes, str]]:
        for other in self._aliases(identity):
            yield other, SAME_CAPTURE
        memory = self._memories.get(identity)
        if memory is not None:
            for key in (("text", memory.text), ("group", memory.group)):
                for other in self._alike.get(key, ()):
                    yield other, SAME_TEXT
            for other in replaced(self._connection, (identity,)):
                yield other, EARLIER
            for other in self._twins(memory):
                yield other, TWIN
        for other in self._citing.get(identity, ()):
            if self._personal or self._memories[other].scope != "personal":
                yield other, CITES
        for window in self._windows(identity):
            for other in self._summaries(window):
                yield other, SUMMARY

    def _aliases(self, identity: bytes) -> list[bytes]:
        sql = "select canonical from aliases where id = ?"
        row = self._connection.execute(sql, (identity,)).fetchone()
        counting = bytes(row[0]) if row else identity
        rows = self._connection.execute("select id from aliases where canonical = ?", (counting,))
        return [counting, *(bytes(other) for (other,) in rows)]

    def _twins(self, memory: _Memory) -> Iterator[bytes]:
        """What another device made of the same observations, in a consolidation that lost or won against this one."""
        for source in memory.sources:
            for other in self._citing[source]:
                if SHADOWED in (memory.status, self._memories[other].status):
                    yield other

    def _windows(self, identity: bytes) -> list[str]:
        sql = "select c.window from claimed s join claims c on c.id = s.claim where s.source = ? and c.window <> ''"
        return [window for (window,) in self._connection.execute(sql, (identity,))]

    def _summaries(self, window: str) -> Sequence[bytes]:
        return [one.id for one in self._memories.values() if one.window == window and one.kind in _SUMMARIES]


def of_session(connection: sqlite3.Connection, session: str) -> list[bytes]:
    """Return the events of a session, and the memories that were formed from it."""
    events = connection.execute("select id, kind from events where session = ? and session <> ''", (session,))
    found = [bytes(identity) for identity, kind in events if may_go(kind)]
    sql = "select m.id from memories m where m.window in (select window from claims where session = ? and window <> '')"
    return list(dict.fromkeys([*found, *(bytes(one) for (one,) in connection.execute(sql, (session,)))]))


def of_projects(connection: sqlite3.Connection, keys: Sequence[str], seen: Iterable[bytes]) -> list[bytes]:
    """Return the events of projects, and their memories; ``seen`` are the events that tell of these projects.

    What is the person's own stays, wherever it was learned.
    """
    marks = ",".join("?" * len(keys))
    events = connection.execute(f"select id, kind from events where project in ({marks})", keys)
    found = [bytes(one) for one, kind in events if may_go(kind) and kind != model.MEMORY_FORMED]
    memories = connection.execute(f"select id from memories where scope = 'project' and project in ({marks})", keys)
    return list(dict.fromkeys([*found, *(bytes(one) for (one,) in memories), *seen]))


def sightings(connection: sqlite3.Connection) -> list[bytes]:
    """Return the events that tell of projects."""
    rows = connection.execute("select id from events where kind = ? and held", (model.PROJECT_SEEN,))
    return [bytes(identity) for (identity,) in rows]


def sessions_like(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the sessions whose name begins so, at most a few; the one that is called exactly so alone."""
    rows = connection.execute(
        "select distinct session from events where session >= ? and session < ? and session <> '' limit 6",
        (prefix, prefix + "\U0010ffff"),
    )
    found = [str(session) for (session,) in rows]
    return [prefix] if prefix in found else found


def sessions_of(connection: sqlite3.Connection, ids: Collection[bytes]) -> list[str]:
    """Return the sessions that these events belong to."""
    return _column(connection, "session", ids)


def projects_of(connection: sqlite3.Connection, ids: Collection[bytes]) -> list[str]:
    """Return the projects that these events belong to."""
    return _column(connection, "project", ids)


def _column(connection: sqlite3.Connection, name: str, ids: Collection[bytes]) -> list[str]:
    wanted = set(ids)
    found: set[str] = set()
    for chunk in chunks(sorted({number8(identity) for identity in wanted})):
        rows = connection.execute(f"select id, {name} from events where id8 in ({chunk}) and {name} <> ''")
        found.update(value for identity, value in rows if identity in wanted)
    return sorted(found)
