"""Fold what a batch touches, and write the difference between the state before and after it."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

from memorize import model
from memorize.fold import MemoryState, Shown, State, fold, row_hash, rows
from memorize.index import cited, meta, sums
from memorize.index.closure import connected
from memorize.index.packing import chunks, pack
from memorize.index.text import document
from memorize.limits import HALF_LIFE_DAYS
from memorize.model import Event

_HALF_LIFE_MS: Final = HALF_LIFE_DAYS * 86_400_000
_NOTHING: Final = fold(())
_PUT_MEMORY: Final = f"insert or replace into memories values({','.join('?' * 29)})"
_PUT_SHOWN: Final = f"insert or replace into shown values({','.join('?' * 22)})"
_PUT_CLAIM: Final = f"insert or replace into claims values({','.join('?' * 9)})"
_EMPTY_LIST: Final = pack(())


def settle(
    connection: sqlite3.Connection,
    fresh: Mapping[int, Event],
    before: Mapping[int, Event],
    alone: Collection[int],
    made: Mapping[int, frozenset[bytes]],
) -> None:
    """Bring the state up to ``fresh``, events just inserted or changed.

    ``before`` holds those of them that were there already, as they were then; for the rest see ``connected``.
    """
    events = connected(connection, fresh, alone, made)
    old = {n: before.get(n, event) for n, event in events.items() if n in before or n not in fresh}
    erases = settle_closed(connection, events, old)
    if erases or any(event.header.kind == model.ERASE_REQUESTED for event in fresh.values()):
        cited.mark(connection)


def settle_closed(connection: sqlite3.Connection, events: Mapping[int, Event], before: Mapping[int, Event]) -> bool:
    """Replace the state of ``before`` by that of ``events``, both closed under connection.

    Tells whether more events are erased now: then ``cited.mark`` has to be called once everything is settled.
    """
    old = fold(before.values()) if before else _NOTHING
    new = fold(events.values())
    _count(connection, old, new)
    numbers = {event.id: n for n, event in events.items()}
    _put_plain(connection, old, new)
    erased = new.erased - old.erased
    _put_erased(connection, erased, numbers)
    _put_claims(connection, old.claims, new.claims, {event.id: event for event in events.values()}, numbers)
    _put_memories(connection, old.memories, new.memories, numbers)
    _put_projects(connection, old, new)
    _Board(connection, events, numbers, new.memories).put(old.shown, new.shown)
    return bool(erased)


def _count(connection: sqlite3.Connection, old: State, new: State) -> None:
    """Keep count and sum of the state's rows, from which its digest is made."""
    after = set(rows(new))
    gone: set[tuple[bytes, bytes]] = set()
    if old is not _NOTHING:
        gone = set(rows(old))
        after, gone = after - gone, gone - after
    total = sum([row_hash(key, value) for key, value in after]) - sum([row_hash(key, value) for key, value in gone])
    meta.add(connection, "state", len(after) - len(gone), total)


def _put_plain(connection: sqlite3.Connection, old: State, new: State) -> None:
    gone = [(alias,) for alias in old.aliases if alias not in new.aliases]
    connection.executemany("delete from aliases where id = ?", gone)
    changed = [pair for pair in new.aliases.items() if old.aliases.get(pair[0]) != pair[1]]
    connection.executemany("insert or replace into aliases values(?, ?)", changed)
    gone = [(identity,) for identity in old.quarantined - new.quarantined]
    connection.executemany("delete from quarantined where id = ?", gone)
    fresh = [(identity,) for identity in new.quarantined - old.quarantined]
    connection.executemany("insert or ignore into quarantined values(?)", fresh)


def _put_erased(connection: sqlite3.Connection, erased: Iterable[bytes], numbers: Mapping[bytes, int]) -> None:
    """Take out of the index what the bodies of events said. An erasure is never undone."""
    for identity in erased:
        n = numbers[identity]
        connection.execute("update foldable set payload = null where n = ?", (n,))
        connection.execute("delete from observation_fts where rowid = ?", (n,))
        connection.execute("delete from touched where n = ?", (n,))
        connection.execute("delete from ran where n = ?", (n,))
        connection.execute("delete from delivered where n = ?", (n,))
        kind, session, lamport, writer, seq, is_held = connection.execute(
            "select kind, session, lamport, writer, seq, held from events where n = ?", (n,)
        ).fetchone()
        connection.execute("insert or ignore into erased values(?, ?)", (identity, not is_held))
        if kind == model.OBSERVED_PROMPT:
            _forget_prompt(connection, session, lamport)
        if not is_held:
            sums.counted(connection, [sums.Counted(lamport, identity, writer, seq)])


def _forget_prompt(connection: sqlite3.Connection, session: str, lamport: int) -> None:
    """Take the words of a prompt from the replies that were indexed beside it."""
    connection.execute("update sessions set prompt = '' where session = ? and prompt_lamport = ?", (session, lamport))
    replies = connection.execute(
        "select n from events where session = ? and session <> '' and kind = ? and lamport > ?"
        " and lamport < coalesce((select min(lamport) from events where session = ? and session <> '' and kind = ?"
        " and lamport > ?), 9223372036854775807)",
        (session, model.OBSERVED_REPLY, lamport, session, model.OBSERVED_PROMPT, lamport),
    ).fetchall()
    connection.executemany("update observation_fts set before = '' where rowid = ?", replies)


def _put_claims(
    connection: sqlite3.Connection,
    old: Mapping[bytes, bool],
    new: Mapping[bytes, bool],
    events: Mapping[bytes, Event],
    numbers: Mapping[bytes, int],
) -> None:
    for identity in old.keys() - new.keys():
        connection.execute("delete from claims where id = ?", (identity,))
        _put_sources(connection, identity, False, {})
    for identity, accepted in new.items():
        if old.get(identity) == accepted:
            continue
        payload = events[identity].payload or {}
        words = [payload.get(name) for name in ("window", "agent", "session", "project", "extractor")]
        texts = [word if type(word) is str else "" for word in words]
        transcript = payload.get("transcript")
        connection.execute(
            _PUT_CLAIM,
            (identity, numbers[identity], accepted, *map(_bindable, texts), pack(transcript) if transcript else None),
        )
        _put_sources(connection, identity, accepted, payload)


def _put_sources(connection: sqlite3.Connection, claim: bytes, accepted: bool, payload: Mapping[str, Any]) -> None:
    connection.execute("delete from claimed where claim = ?", (claim,))
    if accepted:
        sources = [(source, claim) for source in payload.get("sources") or ()]
        connection.executemany("insert or ignore into claimed values(?, ?)", sources)


def _put_memories(
    connection: sqlite3.Connection,
    old: Mapping[bytes, MemoryState],
    new: Mapping[bytes, MemoryState],
    numbers: Mapping[bytes, int],
) -> None:
    gone = [identity for identity in old if identity not in new]
    connection.executemany("delete from memories where n = ?", [(numbers[identity],) for identity in gone])
    changed = [memory for identity, memory in new.items() if old.get(identity) != memory] if old else [*new.values()]
    _put(connection, _PUT_MEMORY, [_memory_row(numbers[memory.id], memory) for memory in changed])
    unsaid = [(numbers[one],) for one in old if old[one].text and (one not in new or new[one].text != old[one].text)]
    connection.executemany("delete from memory_fts where rowid = ?", unsaid)
    said = [
        (numbers[memory.id], _words(memory))
        for memory in changed
        if memory.text and (memory.id not in old or old[memory.id].text != memory.text)
    ]
    connection.executemany("insert into memory_fts(rowid, text) values(?, ?)", said)


def _words(memory: MemoryState) -> str:
    """Return what is indexed of a memory: its text, and the names it goes with."""
    more = (*memory.paths, *memory.tags, *memory.triggers, memory.subject, memory.object)
    return document(memory.text + "\n" + " ".join(more) if any(more) else memory.text)


def _memory_row(n: int, memory: MemoryState) -> tuple[Any, ...]:
    (
        identity, person, lamport, wall, status, by, heirs, contested, group, kind, scope, project, text, importance,
        confidence, trust, branch, paths, tags, triggers, subject, predicate, object_, single, obsolete_when,
        expires_at, sources, window,
    ) = memory  # fmt: skip
    return (
        n, identity, person, lamport, wall, status,
        pack(by) if by else _EMPTY_LIST, pack(heirs) if heirs else _EMPTY_LIST,
        pack(contested) if contested else _EMPTY_LIST, group, kind, scope, project, text, importance, confidence, trust,
        branch, _words_list(paths) if paths else "[]", _words_list(tags) if tags else "[]",
        _words_list(triggers) if triggers else "[]", subject, predicate, object_, single, obsolete_when, expires_at,
        pack(sources) if sources else _EMPTY_LIST, window,
    )  # fmt: skip


def _put(connection: sqlite3.Connection, sql: str, found: list[tuple[Any, ...]]) -> None:
    """Write rows; a text that no log can hold (but a test can) is made storable only when it turns up."""
    try:
        connection.executemany(sql, found)
    except UnicodeEncodeError:
        clean = [tuple(_bindable(cell) if isinstance(cell, str) else cell for cell in row) for row in found]
        connection.executemany(sql, clean)


def _bindable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _list(ids: tuple[bytes, ...]) -> bytes:
    return pack(ids) if ids else _EMPTY_LIST


@lru_cache(maxsize=1024)
def _words_list(words: tuple[str, ...]) -> str:
    return json.dumps(words, ensure_ascii=False)


def _put_projects(connection: sqlite3.Connection, old: State, new: State) -> None:
    """Follow links and their undoing in ``projects`` and in the column ``project_root`` of what is shown."""
    for key in {*old.projects, *new.projects}:
        was, root = (_bindable(state.root(key)) for state in (old, new))
        if was == root:
            continue
        project = _bindable(key)
        connection.execute(
            "insert into projects values(?, ?, '', -1, x'') on conflict(key) do update set root = excluded.root",
            (project, root),
        )
        connection.execute(
            "update shown set project_root = ? where project_root = ? and project = ?", (root, was, project)
        )


class _Board:
    """Writes the rows of ``shown``."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        events: Mapping[int, Event],
        numbers: Mapping[bytes, int],
        memories: Mapping[bytes, MemoryState],
    ) -> None:
        self._connection = connection
        self._events = events
        self._numbers = numbers
        self._memories = memories
        self._roots: dict[str, str] = {}

    def put(self, old: Mapping[bytes, Shown], new: Mapping[bytes, Shown]) -> None:
        """Write what differs between the two."""
        changed = [shown for key, shown in new.items() if old.get(key) != shown] if old else [*new.values()]
        gone = [(self._numbers[shown.id],) for key, shown in old.items() if new.get(key) != shown]
        self._connection.executemany("delete from shown where n = ?", gone)
        if not changed:
            return
        self._roots = dict(self._connection.execute("select key, root from projects where root <> key"))
        # Wall times after their receipt are rare; as long as there was none, nothing needs to be looked up.
        ahead = bool(meta.get(self._connection, "ahead"))
        _put(self._connection, _PUT_SHOWN, [self._row(shown, ahead) for shown in changed])

    def _row(self, shown: Shown, ahead: bool) -> tuple[Any, ...]:
        project = _bindable(shown.project) if shown.scope == "project" else ""
        recency = self._recency(shown) if ahead else shown.recency
        return (
            self._numbers[shown.id], shown.id, shown.key, shown.scope, project, self._roots.get(project, project),
            shown.kind, math.log2(shown.importance) + recency / _HALF_LIFE_MS, recency, shown.importance,
            shown.trust, shown.pinned, shown.confirmations, shown.expires_at, bool(shown.triggers),
            _list(shown.members),
            _list(shown.live), _list(shown.sources), _list(shown.disputed), _list(shown.contested),
            _list(shown.supersedes), self._waits(shown),
        )  # fmt: skip

    def _waits(self, shown: Shown) -> bool:
        """Tell whether a person must accept it first: every live member was set aside, or cites what was erased."""
        members = [self._memories[identity] for identity in shown.live]
        if model.REVIEW in shown.tags and all(model.REVIEW in one.tags and one.window for one in members):
            return True
        return self._erases and all(cited.taken_from(self._connection, one.id, one.sources) for one in members)

    @cached_property
    def _erases(self) -> bool:
        return cited.anything(self._connection)

    def _recency(self, shown: Shown) -> int:
        """Return the recency where each event counts at most as its time of receipt."""
        confirmed, times = self._times
        found = [times[self._numbers[identity]] for identity in shown.live]
        for identity in (*shown.members, *shown.supersedes):
            found += [times[n] for n in confirmed.get(identity, ())]
        if any(wall == shown.recency <= received for wall, received in found):
            return shown.recency
        return max(min(wall, received) for wall, received in found)

    @cached_property
    def _times(self) -> tuple[dict[bytes, list[int]], dict[int, tuple[int, int]]]:
        """Return which events confirm a memory, and when every event was made and received."""
        confirmed: dict[bytes, list[int]] = {}
        for n, event in self._events.items():
            for dep in event.header.deps if event.header.kind == model.MEMORY_CONFIRMED else ():
                confirmed.setdefault(dep, []).append(n)
        times: dict[int, tuple[int, int]] = {}
        for chunk in chunks(list(self._events)):
            rows_of = self._connection.execute(f"select n, max(wall, 0), received from events where n in ({chunk})")
            times.update((n, (wall, received)) for n, wall, received in rows_of)
        return confirmed, times
