"""What stands beside a new memory, read from the index: the nearest by words, and what was once said of the two."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from memorize import model
from memorize.consolidate.judge import REFINES, SAME, Side
from memorize.consolidate.windows import Found
from memorize.fold.reading import group_key
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.recall import search
from memorize.recall.rank import Weights

_NEAR_MAX: Final = 10
_COLUMNS: Final = (
    "id, kind, scope, project, text, trust, wall, text_group, subject, predicate, object, single, obsolete_when"
)
# A new memory that says what an earlier one refined adds nothing to it.
_SEEN_FROM_THE_OTHER: Final[Mapping[str, str]] = MappingProxyType({REFINES: SAME})
# Candidates are found by words alone: an old and unimportant memory can be the one that is wrong now.
_BY_WORDS: Final = Weights(importance=0.0, recency=0.0)


class Neighbours:
    """The memories of one project, and the personal ones. Answers are kept: make a new one when the index changes."""

    def __init__(self, reader: Reader, project: str, now_ms: int) -> None:
        """``project`` is a key, ``now_ms`` the wall time."""
        self._reader = reader
        self._project = project
        self._now = now_ms
        self._near: dict[Found, Sequence[Side]] = {}

    def near(self, found: Found) -> Sequence[Side]:
        """Return live memories of the same scope that share words with a new one, or its subject, nearest first."""
        if found not in self._near:
            query = Query(self._reader.connection)
            hits = search.search(
                query, found.text, [self._project], [found.scope], self._now, _NEAR_MAX, weights=_BY_WORDS
            ).hits
            ids = dict.fromkeys((*self._of_subject(query, found), *(hit.row.id for hit in hits)))
            sides = (self.side(identity) for identity in ids)
            self._near[found] = [side for side in sides if side is not None]
        return self._near[found]

    def _of_subject(self, query: Query, found: Found) -> list[bytes]:
        if not found.predicate:
            return []
        roots = query.family(self._project) if found.scope == "project" else ("",)
        sql = f"""select m.id, m.subject from shown s join memories m on m.n = s.n
            where m.predicate = ? and s.scope = ? and not s.review and s.project_root in ({",".join("?" * len(roots))})
            order by s.rank desc, s.id desc"""
        rows = self._reader.connection.execute(sql, (found.predicate, found.scope, *roots))
        subject = model.text_key(found.subject)
        return [bytes(identity) for identity, about in rows if model.text_key(about) == subject][:_NEAR_MAX]

    def side(self, identity: bytes) -> Side | None:
        """Return a memory by its id, None when it is not known."""
        return side_of(self._reader, identity)

    def verdict(self, found: Found, side: Side) -> str:
        """Return the verdict once given on these two texts, seen from the new one; "" when there is none."""
        key = group_key(b"", found.scope, self._project, found.kind, model.text_key(found.text))
        sql = "select id from memories where text_group = ?"
        members = [bytes(identity) for (identity,) in self._reader.connection.execute(sql, (key,))]
        return verdict_on(self._reader.connection, members, side.members)


def side_of(reader: Reader, identity: bytes) -> Side | None:
    """Return a memory as one side of a pair, None when it is not known."""
    connection = reader.connection
    row = connection.execute(f"select {_COLUMNS} from memories where id = ?", (identity,)).fetchone()
    if row is None:
        return None
    _, kind, scope, project, text, trust, wall, group, subject, predicate, value, single, obsolete_when = row
    members: tuple[bytes, ...] = (identity,)
    if group:
        found = connection.execute("select id from memories where text_group = ?", (group,))
        members = tuple(bytes(one) for (one,) in found) or members
    event = reader.event(identity)
    said = (event.payload or {}).get("said_at") if event else None
    at_ms = said if type(said) is int and said > 0 else wall
    where = project if scope == "project" else ""
    about = (subject, predicate, value, bool(single), obsolete_when, where)
    return Side(identity, members, kind, scope, text, trust, at_ms, *about)


def standing(reader: Reader, project: str | None, most: int) -> list[Side]:
    """Return the live memories of a project and the personal ones, or (None) all, the highest in rank first."""
    connection = reader.connection
    roots = () if project is None else (*Query(connection).family(project), "")
    where = f" and project_root in ({','.join('?' * len(roots))})" if roots else ""
    sql = f"select id from shown where not review{where} order by rank desc, id desc limit ?"
    rows = connection.execute(sql, (*roots, most)).fetchall()
    sides = (side_of(reader, bytes(identity)) for (identity,) in rows)
    return [side for side in sides if side is not None]


def verdicts_on(connection: sqlite3.Connection, one: Side, other: Side) -> list[bytes]:
    """Return the events of all verdicts on two memories, in whatever order they name them."""
    pairs = [(a, b) for a in one.members for b in other.members]
    sql = "select e.id from judged j join events e on e.n = j.n where j.one = ? and j.other = ? order by j.n"
    found = (row for a, b in pairs for pair in ((a, b), (b, a)) for row in connection.execute(sql, pair))
    return list(dict.fromkeys(bytes(identity) for (identity,) in found))


def verdict_on(connection: sqlite3.Connection, new: Sequence[bytes], old: Sequence[bytes | int]) -> str:
    """Return the latest verdict on any two members of two groups, seen from the first one; "" when there is none."""
    others = {one for one in old if isinstance(one, bytes)}
    found: list[tuple[int, str]] = []
    for identity in new:
        sql = "select n, other, verdict, 0 from judged where one = ? union all "
        sql += "select n, one, verdict, 1 from judged where other = ?"
        for n, other, verdict, is_reversed in connection.execute(sql, (identity, identity)):
            if other in others:
                found.append((n, _SEEN_FROM_THE_OTHER.get(verdict, verdict) if is_reversed else verdict))
    return max(found)[1] if found else ""
