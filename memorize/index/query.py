"""The read side of the projection for recall: memories by rank, by words and by id. SQL only, no scoring.

``Query`` wraps a connection that ``schema.open_read`` gave. Projects are named by keys; a project's memories are found
under the root of everything that is joined with it. Every method that a session start uses runs along an index, and
equal ranks are settled by the id, so that answers do not depend on the order in which events arrived.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgpack

from memorize import ids, model

MEMORIES: Final = "memory_fts"
LIVE: Final = "live"
EXPIRED: Final = "expired"
OBSERVATIONS: Final = "observation_fts"

# The columns of Row, in its order; s is shown, m the memory that speaks for it.
_COLUMNS: Final = (
    "m.n, m.id, m.lamport, m.kind, m.scope, m.project, m.text, s.importance, s.trust, m.branch, s.recency_ms, "
    "s.pinned, s.confirmations, s.expires_at, s.disputed, s.sources, 'live', s.review"
)
_SHOWN: Final = "shown s join memories m on m.n = s.n"
# A memory that is overruled has no row in shown: nobody pins or confirms it any more.
_ANY_COLUMNS: Final = (
    "m.n, m.id, m.lamport, m.kind, m.scope, m.project, m.text, m.importance, m.trust, m.branch, "
    "coalesce(s.recency_ms, m.wall), coalesce(s.pinned, 0), coalesce(s.confirmations, 0), m.expires_at, "
    "coalesce(s.disputed, x'90'), coalesce(s.sources, m.sources), m.status, coalesce(s.review, 0)"
)
_ANY: Final = "memories m left join shown s on s.n = m.n"
# A live memory without a row in shown is a double of one that has it.
_DEAD: Final = "(s.n is not null or m.status in ('superseded', 'retracted', 'shadowed'))"
_OBSERVED: Final = (
    "e.n, e.id, e.lamport, e.kind, e.project, max(t.branch), e.wall "
    "from events e left join sessions t on t.session = e.session"
)
_EPISODES: Final = "s.kind in ('summary', 'progress')"
_IN_MAX: Final = 500
# How far back the edits of a session are looked for.
_LAST_EVENTS: Final = 200
# So many times more candidates are taken from the full-text index than are wanted, before the scope is looked at.
_POOL: Final = 4


class Row(NamedTuple):
    """A memory as it is shown, or an observation (``kind`` begins with ``observed.``). ``doc`` is its local number.

    ``recency`` is in ms since 1970; ``disputed`` are the ids of the memories it contradicts; ``status`` is ``live``
    for all that is shown, until it expires; what has ``review`` waits for a person and is found only when asked for.
    """

    doc: int
    id: bytes
    lamport: int
    kind: str
    scope: str
    project: str
    text: str
    importance: int
    trust: str
    branch: str
    recency: int
    pinned: bool
    confirmations: int
    expires_at: int | None
    disputed: tuple[bytes, ...]
    sources: tuple[bytes, ...]
    status: str = LIVE
    review: bool = False

    def at(self, now_ms: int) -> Row:
        """Return the row as it stands at a time: what has expired is not live any more."""
        over = self.expires_at is not None and self.expires_at <= now_ms
        return self._replace(status=EXPIRED) if over and self.status == LIVE else self


class Candidate(NamedTuple):
    """What is needed to rank a document before it is read; importance is 0 for an observation."""

    doc: int
    id: bytes
    importance: int
    recency: int


class Scope(NamedTuple):
    """What to look in: project keys (none = every project), scopes, kinds (none = all).

    ``dead``: the overruled ones too; ``review``: also what waits for a person. At ``now_ms`` what has expired is dead;
    without it nothing expires.
    """

    projects: tuple[str, ...] = ()
    scopes: tuple[str, ...] = model.SCOPES
    kinds: tuple[str, ...] = ()
    dead: bool = False
    review: bool = False
    now_ms: int | None = None


class _Filter(NamedTuple):
    """A condition of SQL with its values."""

    sql: str
    values: tuple[object, ...]


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _row(values: Sequence[Any]) -> Row:
    """Return a row as read; lists of ids are msgpack."""
    disputed, sources = (tuple(msgpack.unpackb(blob)) for blob in values[14:16])
    return Row._make((*values[:11], bool(values[11]), *values[12:14], disputed, sources, values[16], bool(values[17])))


class Query:
    """Questions to the projection. ``texts`` gives the full text of an observation by its number."""

    def __init__(self, connection: sqlite3.Connection, texts: Callable[[int], str] | None = None) -> None:
        self._db = connection
        self._texts = texts

    # Projects and people's ids.

    def family(self, project: str) -> tuple[str, ...]:
        """Return the root key of everything joined with this project, as a tuple of one."""
        row = self._db.execute("select root from projects where key = ?", (project,)).fetchone()
        return (str(row[0]),) if row else (project,)

    def rivals(self, identities: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return the ids of memories that share their first six hex digits with another one of them or of all."""
        found: set[bytes] = set()
        size = ids.SHORT_HEX_MIN // 2
        for start in {identity[:size] for identity in identities}:
            end = start + b"\xff" * ids.ID_BYTES
            rows = self._db.execute("select id from memories where id between ? and ?", (start, end)).fetchall()
            if len(rows) > 1:
                found.update(identity for (identity,) in rows)
        return tuple(sorted(found))

    def agent_of(self, row: Row) -> str:
        """Return the agent in whose session a memory was made, "" when unknown."""
        found = self._db.execute("select session from events where n = ?", (row.doc,)).fetchone()
        session = str(found[0]) if found else ""
        for source in () if session else row.sources[:1]:
            number = int.from_bytes(source[:7], "big")
            found = self._db.execute("select session from events where id8 = ? and id = ?", (number, source)).fetchone()
            session = str(found[0]) if found else ""
        if not session:
            return ""
        found = self._db.execute(
            "select agent from sessions where session = ? order by last desc", (session,)
        ).fetchone()
        return str(found[0]) if found else ""

    def recent_files(self, projects: Sequence[str], most: int) -> tuple[str, ...]:
        """Return the files that the latest session of these projects edited last, the newest first."""
        keys = self._keys(projects)
        sql = f"select session from sessions where project in ({_marks(keys)}) order by last desc, session limit 1"
        latest = self._db.execute(sql, keys).fetchone()
        if latest is None or self._texts is None:
            return ()
        sql = (
            f"select n, kind from events where session = ? and session <> '' order by lamport desc limit {_LAST_EVENTS}"
        )
        edits = [n for n, kind in self._db.execute(sql, latest) if kind == model.OBSERVED_EDIT]
        # The text of an edit begins with its path.
        paths = (self._texts(n).split("\n", 1)[0] for n in edits[: 2 * most])
        return tuple(dict.fromkeys(path for path in paths if path))[:most]

    # Memories by rank.

    def leading(self, root: str, kind: str, now_ms: int, limit: int, *, free: bool = False) -> list[Candidate]:
        """Return the memories of one kind of a project (root; "" = personal) by importance x recency, best first.

        ``free``: only those that no action brings up.
        """
        also = "and not has_triggers " if free else ""
        sql = (
            "select n, id, importance, recency_ms from shown where project_root = ? and kind = ? and not review "
            f"{also}and (expires_at is null or expires_at > ?) order by rank desc, id desc limit ?"
        )
        return [Candidate(*found) for found in self._db.execute(sql, (root, kind, now_ms, limit))]

    def standing(self, projects: Sequence[str], kind: str, now_ms: int, limit: int) -> list[Row]:
        """Return the memories of one kind of these projects (roots) by importance x recency, best first."""
        docs = [one.doc for root in projects for one in self.leading(root, kind, now_ms, limit)]
        found = {row.doc: row for row in self.documents(MEMORIES, docs)}
        return [found[doc] for doc in docs]

    def pinned(self, projects: Sequence[str], now_ms: int, limit: int) -> list[Row]:
        """Return the pinned memories of these projects and the personal ones."""
        rows: list[Row] = []
        for root in (*projects, ""):
            rows += self._shown("s.project_root = ? and s.pinned", (root,), now_ms, "s.rank desc, s.id desc", limit)
        return rows

    def triggered(self, root: str | None, now_ms: int) -> list[tuple[Row, tuple[str, ...]]]:
        """Return the memories with triggers of a project (root; "" = personal) or of all (None) and these triggers.

        The newest event comes first.
        """
        where, values = ("", ()) if root is None else ("s.project_root = ? and ", (root,))
        sql = (
            f"select {_COLUMNS}, m.triggers from {_SHOWN} where {where}s.has_triggers and not s.review "
            "and (s.expires_at is null or s.expires_at > ?) order by m.lamport desc, m.id desc"
        )
        found = self._db.execute(sql, (*values, now_ms))
        return [(_row(values[:-1]), tuple(json.loads(values[-1]))) for values in found]

    def bound(self, identities: Iterable[bytes]) -> frozenset[bytes]:
        """Return those of these shown memories that an action brings up."""
        sql = "select 1 from memories m join shown s on s.n = m.n where m.id = ? and s.has_triggers"
        return frozenset(identity for identity in identities if self._db.execute(sql, (identity,)).fetchone())

    def latest(self, projects: Sequence[str], now_ms: int, limit: int) -> list[Row]:
        """Return the newest summaries and progress notes of these projects, newest first."""
        rows: list[Row] = []
        order = "s.recency_ms desc, s.id desc"
        for root in projects:
            rows += self._shown(f"s.project_root = ? and {_EPISODES}", (root,), now_ms, order, limit)
        return sorted(rows, key=lambda row: (-row.recency, row.id))[:limit]

    def _shown(self, condition: str, values: tuple[object, ...], now_ms: int, order: str, limit: int) -> list[Row]:
        """Return shown memories that have not expired."""
        sql = (
            f"select {_COLUMNS} from {_SHOWN} where {condition} and not s.review "
            "and (s.expires_at is null or s.expires_at > ?) "
            f"order by {order} limit ?"
        )
        return [_row(found) for found in self._db.execute(sql, (*values, now_ms, limit))]

    def rows(self, identities: Sequence[bytes]) -> list[Row]:
        """Return the shown memories with these ids, in the order given, without those that wait for a person."""
        found: dict[bytes, Row] = {}
        for identity in identities:
            sql = f"select {_COLUMNS} from {_SHOWN} where m.id = ? and not s.review"
            found |= {row.id: row for row in map(_row, self._db.execute(sql, (identity,)))}
        return [found[identity] for identity in identities if identity in found]

    def waiting(self, projects: Sequence[str] | None) -> list[Row]:
        """Return what waits for a person: of these projects (roots) and personal, or (None) everything."""
        where, roots = "s.review", () if projects is None else (*projects, "")
        if projects is not None:
            where += f" and s.project_root in ({_marks(roots)})"
        sql = f"select {_COLUMNS} from {_SHOWN} where {where} order by s.rank desc, s.id desc"
        return [_row(found) for found in self._db.execute(sql, roots)]

    # Search.

    def count(self, scope: Scope) -> int:
        """Return how many memories a search in this scope looks through."""
        where = self._memories_filter(scope)
        source = _ANY if scope.dead else "shown s"
        return int(self._db.execute(f"select count(*) from {source} where {where.sql}", where.values).fetchone()[0])

    def ranked(self, scope: Scope, limit: int) -> list[Row]:
        """Return the memories in scope by rank, best first; pinned ones before the rest, overruled ones last."""
        where = self._memories_filter(scope)
        columns, source = (_ANY_COLUMNS, _ANY) if scope.dead else (_COLUMNS, _SHOWN)
        order = "s.n is null, s.pinned desc, s.rank desc, m.wall desc, m.id desc"
        sql = f"select {columns} from {source} where {where.sql} order by {order} limit ?"
        return [_row(found) for found in self._db.execute(sql, (*where.values, limit))]

    def size(self, table: str) -> int:
        """Return how many documents a full-text table holds, from the index's own bookkeeping."""
        row = self._db.execute(f"select block from {table}_data where id = 1").fetchone()
        return _varint(bytes(row[0])) if row else 0

    def frequency(self, table: str, unit: str, most: int | None = None) -> int:
        """Return how many documents match an expression, counting no further than ``most``."""
        sql = f"select count(*) from {table} where {table} match ?"
        if most is not None:
            sql = f"select count(*) from (select 1 from {table} where {table} match ? limit {int(most)})"
        return int(self._db.execute(sql, (unit,)).fetchone()[0])

    def weights(self, table: str, unit: str, among: Collection[int] | None = None) -> list[tuple[int, float]]:
        """Return (document, rank of the full-text index) of the documents that match one expression.

        ``among`` keeps the reckoning to those documents, without asking the index for each of them.
        """
        kept = "" if among is None else f" and +rowid in ({', '.join(str(int(doc)) for doc in among)})"
        sql = f"select rowid, bm25({table}) from {table} where {table} match ?{kept}"
        return [(int(doc), float(rank)) for doc, rank in self._db.execute(sql, (unit,))]

    def best(self, table: str, units: Sequence[str], scope: Scope, most: int | None) -> list[Candidate]:
        """Return the documents in scope that match any expression: all, or the best ``most`` by the index's rank."""
        match = " OR ".join(units)
        if most is None:
            return self._matching(f"select rowid as doc from {table} where {table} match ?", match, table, scope)
        # Ranking inside the full-text index alone is several times cheaper than with the scope looked up for each.
        some = _POOL * most
        inner = f"select rowid as doc from {table} where {table} match ? order by rank limit {some}"
        found = self._matching(inner, match, table, scope)
        if len(found) >= most or self.frequency(table, match, some + 1) <= some:
            return found[:most]
        inner = f"select rowid as doc, rank as fit from {table} where {table} match ?"
        return self._matching(inner, match, table, scope, f" order by c.fit limit {int(most)}")

    def _matching(self, inner: str, match: str, table: str, scope: Scope, order: str = "") -> list[Candidate]:
        """Return the documents of an inner query that are in scope, in its order."""
        if table == OBSERVATIONS:
            where = self._observations_filter(scope)
            columns, source = "e.n, e.id, 0, e.wall", "events e on e.n = c.doc"
        elif scope.dead:
            where = self._memories_filter(scope)
            columns = "m.n, m.id, m.importance, coalesce(s.recency_ms, m.wall)"
            source = "memories m on m.n = c.doc left join shown s on s.n = m.n"
        else:
            where = self._memories_filter(scope)
            columns, source = "s.n, s.id, s.importance, s.recency_ms", "shown s on s.n = c.doc"
        sql = f"select {columns} from ({inner}) c cross join {source} where {where.sql}{order}"
        return [Candidate(*found) for found in self._db.execute(sql, (match, *where.values))]

    def documents(self, table: str, docs: Sequence[int]) -> list[Row]:
        """Return the rows of these documents, overruled memories included, in no particular order."""
        rows: list[Row] = []
        for start in range(0, len(docs), _IN_MAX):
            part = docs[start : start + _IN_MAX]
            if table == MEMORIES:
                sql = f"select {_ANY_COLUMNS} from {_ANY} where m.n in ({_marks(part)})"
                rows += map(_row, self._db.execute(sql, part))
            else:
                sql = f"select {_OBSERVED} where e.n in ({_marks(part)}) group by e.n"
                rows += (self._observation(found) for found in self._db.execute(sql, part))
        return rows

    def _observation(self, found: Sequence[Any]) -> Row:
        """Return an observation as a row; its text is read from the log, else from the full-text table."""
        doc, identity, lamport, kind, project, branch, wall = found
        if self._texts is not None:
            text = self._texts(doc)
        else:
            text = self._db.execute("select text from observation_fts where rowid = ?", (doc,)).fetchone()[0]
        # Only a prompt is the person's own words.
        trust = "user" if kind == model.OBSERVED_PROMPT else "agent"
        return Row(
            doc, identity, lamport, kind, "project", project, text, 0, trust, branch or "", wall, False, 0, None, (), ()
        )

    def _roots(self, projects: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(root for project in projects for root in self.family(project)))

    def _memories_filter(self, scope: Scope) -> _Filter:
        """Return the condition on shown (and memories, when dead ones are asked for) that a scope means."""
        if scope.dead:
            place, keys = "case m.scope when 'project' then m.project else '' end", self._keys(scope.projects)
            kind = "m.kind"
        else:
            place, keys, kind = "s.project_root", self._roots(scope.projects), "s.kind"
        project, personal = "project" in scope.scopes, "personal" in scope.scopes
        values: list[object] = [*(keys if project else ()), *([""] if personal else ())]
        sql = f"{place} in ({_marks(values)})"
        if project and not keys:
            sql, values = (f"{place} is not null" if personal else f"{place} <> ''"), []
        if scope.kinds:
            sql += f" and {kind} in ({_marks(scope.kinds)})"
            values += scope.kinds
        if not scope.review:
            sql += " and coalesce(s.review, 0) = 0" if scope.dead else " and not s.review"
        if scope.now_ms is not None and not scope.dead:
            sql += " and (s.expires_at is null or s.expires_at > ?)"
            values.append(scope.now_ms)
        return _Filter(f"{sql} and {_DEAD}" if scope.dead else sql, tuple(values))

    def _observations_filter(self, scope: Scope) -> _Filter:
        """Return the condition on events that a scope means; observations belong to a project only."""
        if "project" not in scope.scopes:
            return _Filter("0", ())
        keys = self._keys(scope.projects)
        return _Filter(f"e.project in ({_marks(keys)})", keys) if scope.projects else _Filter("1", ())

    def _keys(self, projects: Iterable[str]) -> tuple[str, ...]:
        """Return every key of these projects, joined ones included."""
        found = dict.fromkeys(projects)
        for root in self._roots(projects):
            rows = self._db.execute("select key from projects where root = ?", (root,))
            found |= dict.fromkeys((root, *(str(key) for (key,) in rows)))
        return tuple(found)


def _varint(block: bytes) -> int:
    """Return the number that a record begins with: seven bits a byte, the highest bit says whether more follow."""
    value = 0
    for byte in block[:8]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value
