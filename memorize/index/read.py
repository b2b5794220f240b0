"""The read side that every room needs: events by place, lists, counts and digests. Ranking is in ``query``."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from memorize.errors import CannotRead
from memorize.index import meta, moved, schema
from memorize.index.packing import number8, pack, string
from memorize.index.place import Place
from memorize.log.codec import Bad
from memorize.log.segments import read_event
from memorize.model import Event
from memorize.paths import Home

# What is shown of an observation, in this order; every kind has some of these.
_TEXTS: Final = ("text", "path", "tool", "command", "subject", "diff", "output")
_NO_IDS: Final = pack(())


class Spot(NamedTuple):
    """Where an event lies in the log."""

    n: int
    id: bytes
    file: str
    offset: int
    length: int


class Counts(NamedTuple):
    """How much there is; of one project where its key was given (then ``events`` still counts all).

    ``memories`` are the shown ones, ``review`` those that wait for a person. ``last`` is the wall time in ms of the
    last thing seen, ``consolidated`` that of the last claim; 0 when there is none.
    """

    events: int
    observed: int
    memories: int
    rules: int
    disputed: int
    sessions: int
    last: int
    last_agent: str
    consolidated: int
    quarantined: int
    aliases: int
    erased: int
    review: int = 0


class Digest(NamedTuple):
    """The set digest (count, then sum of the ids) and the state digest, both in hex."""

    set: str
    state: str


class Project(NamedTuple):
    """A project; ``root`` is the key that stands for it and all that are joined with it."""

    key: str
    root: str
    name: str
    memories: int
    sessions: int
    observations: int
    paths: tuple[str, ...]


class Session(NamedTuple):
    """A session. Times are wall ms; ``closed`` is None while it runs, or when it was taken up again.

    ``device`` is the replica that captured it, ``root`` the checkout it began in ("" when nobody told).
    """

    agent: str
    session: str
    project: str
    dir: str
    branch: str
    head: str
    opened: int | None
    closed: int | None
    last: int
    transcript: str
    model: str
    device: bytes
    observations: int
    root: str


class Reader:
    """A connection for reading, which follows the index when a rebuild swaps it.

    Every method raises IndexMissing, IndexDamaged or Busy.
    """

    def __init__(self, home: Home, busy_s: float = schema.BUSY_S, *, as_it_lies: bool = False) -> None:
        """Open the index of a state directory; the options are those of ``schema.open_read``."""
        self._home = home
        self._options: tuple[float, bool] = (busy_s, as_it_lies)
        self._connection, self._file = self._open()

    @classmethod
    def open(cls, home: Home, busy_s: float = schema.BUSY_S, *, as_it_lies: bool = False) -> Reader:
        """Open the index of a state directory."""
        return cls(home, busy_s, as_it_lies=as_it_lies)

    def _open(self) -> tuple[sqlite3.Connection, tuple[int, int]]:
        busy_s, as_it_lies = self._options
        file = schema.file_identity(self._home.index)
        return schema.open_read(self._home.index, busy_s, as_it_lies=as_it_lies), file

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection to the index as it is now; don't keep it for long."""
        if schema.file_identity(self._home.index) != self._file:
            fresh = self._open()
            self._connection.close()
            self._connection, self._file = fresh
        return self._connection

    def digest(self) -> Digest:
        """Return both digests."""
        from memorize.fold import finish  # only digests and unreadable events need the fold

        connection = self.connection
        with self._guard():
            count, total = meta.totals(connection, "set")
            state = finish(*meta.totals(connection, "state"))
        return Digest(f"{count:x}-{total:064x}", state.hex())

    def counts(self, project: str | None = None) -> Counts:
        """Return how much there is, in one project or in all."""
        connection = self.connection
        with self._guard():
            kinds = dict(connection.execute("select kind, events from kinds"))
            keys = self.family(project) if project is not None else ()
            marks = ",".join("?" * len(keys))
            where = f" where project in ({marks})" if project is not None else ""
            one = "select count(*), coalesce(sum(observations), 0) from sessions" + where
            sessions, observed = connection.execute(one, keys).fetchone()
            latest = connection.execute(
                f"select last, agent from sessions{where} order by last desc limit 1", keys
            ).fetchone()
            if project is None:
                observed = sum(number for kind, number in kinds.items() if kind.startswith("observed."))
            shown = connection.execute(
                "select count(*), sum(kind = 'rule'), sum(disputed <> ?) from shown where not review"
                + where.replace(" where", " and"),
                (_NO_IDS, *keys),
            ).fetchone()
            # What is the person's own waits in every project.
            also = f" and project in ({marks}, '')" if project is not None else ""
            review = connection.execute(f"select count(*) from shown where review{also}", keys)
            waiting: int = review.fetchone()[0]
            claims = (
                f"select max(e.wall) from claims c join events e on e.n = c.n{where.replace('project', 'c.project')}"
            )
            consolidated = connection.execute(claims, keys).fetchone()[0]
            quarantined, aliases, erased = (
                connection.execute(f"select count(*) from {table}").fetchone()[0]
                for table in ("quarantined", "aliases", "erased")
            )
        last, agent = latest or (0, "")
        memories, rules, disputed = (number or 0 for number in shown)
        held = (sum(kinds.values()), observed, memories, rules, disputed, sessions, last, agent, consolidated or 0)
        return Counts(*held, quarantined, aliases, erased, waiting)

    def projects(self) -> list[Project]:
        """Return every project that was seen, the one with most memories first."""
        connection = self.connection
        with self._guard():
            paths: dict[str, list[str]] = {}
            for project, path in connection.execute("select project, path from places order by lamport desc, path"):
                paths.setdefault(project, []).append(path)
            memories = dict(
                connection.execute(
                    "select project, count(*) from shown where scope = 'project' and not review group by project"
                )
            )
            worked = {
                project: (sessions, observations)
                for project, sessions, observations in connection.execute(
                    "select project, count(*), sum(observations) from sessions group by project"
                )
            }
            known = {
                key: (root, name) for key, root, name in connection.execute("select key, root, name from projects")
            }
        found = []
        for key in sorted({*known, *memories, *worked} - {""}):
            root, name = known.get(key, (key, ""))
            found.append(
                Project(key, root, name, memories.get(key, 0), *worked.get(key, (0, 0)), tuple(paths.get(key, ())))
            )
        return sorted(found, key=lambda one: (-one.memories, -one.observations, one.key))

    def projects_alike(self) -> dict[str, tuple[str, ...]]:
        """Map keys of projects to others that are not joined with them though both begin with the same commit.

        A hint for a person: forks and templates share their first commit, too.
        """
        sql = """select a.project, b.project from identities a
            join identities b on b.kind = a.kind and b.value = a.value and b.project <> a.project
            left join projects p on p.key = a.project left join projects q on q.key = b.project
            where a.kind = 'root' and coalesce(p.root, a.project) <> coalesce(q.root, b.project) order by 1, 2"""
        found: dict[str, tuple[str, ...]] = {}
        with self._guard():
            for one, other in self.connection.execute(sql):
                found[one] = (*found.get(one, ()), other)
        return found

    def links_between(self, one: str, other: str) -> list[bytes]:
        """Return the ids of the links that name both keys of projects, those that were undone too."""
        with self._guard():
            return moved.links_between(self.connection, one, other)

    def sessions(self, project: str | None = None, limit: int | None = None) -> list[Session]:
        """Return the sessions of one project or of all, the one that was active last first."""
        connection = self.connection
        with self._guard():
            keys = self.family(project) if project is not None else ()
            where = f"where project in ({','.join('?' * len(keys))})" if project is not None else ""
            rows = connection.execute(
                "select agent, session, project, dir, branch, head, opened, case when closed >= last then closed end,"
                f" last, transcript, model, device, observations, root from sessions {where}"
                " order by last desc, session limit ?",
                (*keys, -1 if limit is None else limit),
            )
            return [Session(*row) for row in rows]

    def last_words(self) -> Mapping[str, int]:
        """Return agent -> when it was captured last (wall ms)."""
        connection = self.connection
        with self._guard():
            return dict(connection.execute("select agent, max(last) from sessions group by agent"))

    def flaws(self) -> str:
        """Return what SQLite finds wrong with the file, "" when nothing."""
        connection = self.connection
        with self._guard():
            verdict = str(connection.execute("pragma quick_check(1)").fetchone()[0])
        return "" if verdict == "ok" else verdict

    def log(
        self,
        *,
        kind: str | None = None,
        session: str | None = None,
        project: str | None = None,
        limit: int = 20,
    ) -> list[Event]:
        """Return the last events in log order, the newest first, read from the log.

        ``kind`` also matches kinds that begin with it and a dot. An event that cannot be read comes without a body.
        """
        with self._guard():
            where, values = self._chosen(kind, session, project)
            spots = self._spots(f"{where} order by e.lamport desc, e.id desc limit ?", *values, limit)
            return [self._read(spot) for spot in spots]

    def log_total(self, *, kind: str | None = None, session: str | None = None, project: str | None = None) -> int:
        """Return how many events ``log`` would find without a limit."""
        with self._guard():
            where, values = self._chosen(kind, session, project)
            return int(self.connection.execute(f"select count(*) from events e{where}", values).fetchone()[0])

    def _chosen(self, kind: str | None, session: str | None, project: str | None) -> tuple[str, list[object]]:
        """Return the condition of ``log``, and its values."""
        parts: list[str] = []
        values: list[object] = []
        if kind is not None:
            parts.append("(e.kind = ? or (e.kind >= ? and e.kind < ?))")
            values += [kind, f"{kind.rstrip('.')}.", f"{kind.rstrip('.')}/"]
        if session is not None:
            # The index by session leaves out events without one, and wants to be told that none is meant.
            parts.append("e.session = ? and e.session <> ''" if session else "e.session = ?")
            values.append(session)
        if project is not None:
            keys = self.family(project)
            parts.append(f"e.project in ({','.join('?' * len(keys))})")
            values += keys
        return f" where {' and '.join(parts)}" if parts else "", values

    def spots(self, prefix: str, limit: int = 20) -> list[Spot]:
        """Return where the events lie whose ids begin with these hex digits (nothing for anything else)."""
        digits = prefix.strip().lower()
        if not digits or len(digits) > 64 or set(digits) - set("0123456789abcdef"):
            return []
        low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
        where = " where e.id8 between ? and ? and e.id between ? and ? order by e.id limit ?"
        with self._guard():
            return self._spots(where, number8(low), number8(high), low, high, limit)

    def event(self, identity: bytes) -> Event | None:
        """Return the event with this id, read from the log; None when it is not known."""
        found = self.spots(identity.hex(), 1)
        return self._read(found[0]) if found else None

    def erased(self) -> frozenset[bytes]:
        """Return the ids of the events that an erasure in force takes the body of."""
        return frozenset(bytes(identity) for (identity,) in self.connection.execute("select id from erased"))

    def observation_text(self, n: int) -> str:
        """Return everything that an observation says, by its number; "" when its body is gone."""
        payload = self.payload(n)
        return "\n".join(text for name in _TEXTS if (text := string(payload, name)))

    def payload(self, n: int) -> Mapping[str, Any]:
        """Return what an event says, by its number; nothing when its body is gone."""
        with self._guard():
            found = self._spots(" where e.n = ?", n)
        payload = self._read(found[0]).payload if found else None
        return payload if isinstance(payload, Mapping) else {}

    def delivered(self, session: str) -> frozenset[bytes]:
        """Return the memories and marks of warnings that a session was told since it began or was compacted last."""
        sql = """select d.item from delivered d join events e on e.n = d.n where d.session = ?
            and e.lamport > coalesce((select max(compacted) from sessions where session = d.session), -1)"""
        connection = self.connection
        with self._guard():
            return frozenset(item for (item,) in connection.execute(sql, (session,)))

    def session_of(self, nonce: bytes) -> str:
        """Return the session that a capture belongs to, "" when unknown."""
        sql = "select session from events where nonce8 = ? and nonce = ? and session <> '' order by lamport, id limit 1"
        connection = self.connection
        with self._guard():
            row = connection.execute(sql, (number8(nonce), nonce)).fetchone()
        return str(row[0]) if row else ""

    def knows_place(self, payload: Mapping[str, Any]) -> bool:
        """Tell whether a ``project.seen`` with this payload would tell nothing new."""
        connection = self.connection
        key = payload["key"]
        with self._guard():
            place = connection.execute(
                "select project from places where device = ? and path = ?", (payload["device"], payload["path"])
            ).fetchone()
            name = connection.execute("select name from projects where key = ?", (key,)).fetchone()
            known = set(connection.execute("select kind, value from identities where project = ?", (key,)))
        return (
            place == (key,) and name == (payload["name"],) and known >= {tuple(pair) for pair in payload["identities"]}
        )

    def former_key(self, device: str, place: Place) -> str:
        """Return the key of the project that this one is to be linked with, "" without one (``moved.former_key``)."""
        connection = self.connection
        with self._guard():
            return moved.former_key(connection, device, place)

    def family(self, project: str) -> tuple[str, ...]:
        """Return every key that is joined with a project, its own first."""
        connection = self.connection
        with self._guard():
            return moved.family(connection, project)

    def offsets(self) -> Mapping[str, int]:
        """Return file name -> offset up to which it is indexed."""
        connection = self.connection
        with self._guard():
            return dict(connection.execute("select name, offset from files"))

    def _spots(self, where: str, *values: object) -> list[Spot]:
        sql = f"select e.n, e.id, f.name, e.offset, e.length from events e join files f on f.number = e.file{where}"
        return [Spot(*row) for row in self.connection.execute(sql, values)]

    def _read(self, spot: Spot) -> Event:
        try:
            return read_event(self._home.root / spot.file, spot.offset, spot.length)
        except (CannotRead, Bad):
            from memorize.index import closure

            bare = closure.load(self.connection, [spot.n])[spot.n]
            return bare._replace(payload=None)

    def _guard(self) -> Any:
        return schema.guard(self._home.index)
