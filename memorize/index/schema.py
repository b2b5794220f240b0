"""The index: one SQLite file, derived from the log, which may be deleted at any time.

One process writes it (the holder of the ingest lock), any number read it. Every document, event or memory, has one
number ``n`` for all tables and both full-text tables; numbers are local and change with a rebuild. Lists of ids are
msgpack, lists of words JSON.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from memorize.errors import CannotWrite, IndexMissing
from memorize.index.damage import BUSY_S as BUSY_S
from memorize.index.damage import GuardedConnection
from memorize.index.damage import guard as guard
from memorize.limits import FOLD_VERSION

# Raise it with every change of a table, or of what is written to one: an index of another version is built again.
SCHEMA_VERSION: Final = 7
_CACHE_KIB: Final = 32 * 1024
# Checkpoint every 16 MiB: the pages of the random-keyed indexes are then written once for many batches.
_CHECKPOINT_PAGES: Final = 4000

TABLES: Final = """
create table meta(key text primary key, value) without rowid;
create table files(number integer primary key, name text not null unique, offset integer not null);

-- One row an event, in order of arrival. id8 and nonce8 are the first 7 bytes of id and nonce as a number: an index
-- of small integers costs a third of one of the bytes, and the row itself settles a collision. held is 0 when the
-- body is not there.
create table events(
  n integer primary key, lamport integer not null, id blob not null, kind text not null,
  nonce blob not null, ordinal integer not null, writer blob not null, seq integer not null, wall integer not null,
  received integer not null, file integer not null, offset integer not null, length integer not null,
  session text not null, project text not null, person blob not null,
  held integer not null, malformed integer not null, id8 integer not null, nonce8 integer
);
create unique index events_order on events(lamport, id);
create index events_id on events(id8);
create index events_nonce on events(nonce8) where nonce8 is not null;
create index events_session on events(session, lamport) where session <> '';
create index events_writer on events(writer, seq);
create index events_bare on events(lamport, id) where not held;
-- wall: the latest one of its events, for showing only.
create table writers(writer blob primary key, replica blob not null, first_seq integer not null,
  last_seq integer not null, events integer not null, wall integer not null) without rowid;

create table kinds(kind text primary key, events integer not null) without rowid;

-- What the set digest counts, by stretches of 1,024 Lamport numbers (total: the sum of the ids mod 2^256); the runs of
-- numbers of every writer, which never touch; and the numbers that more than one event has.
create table sums(bucket integer primary key, events integer not null, total blob not null);
create table runs(writer blob not null, low integer not null, high integer not null,
  primary key(writer, low)) without rowid;
create table twins(writer blob not null, seq integer not null, primary key(writer, seq)) without rowid;

-- What the fold reads: every event of a kind that it knows, and every malformed one. links holds the keys that
-- connect such an event with others, as numbers (a collision only makes a closure larger than it need be).
create table foldable(n integer primary key, header blob not null, payload blob);
create table links(key integer not null, n integer not null, primary key(key, n)) without rowid;
create table named_by_erasures(id blob primary key) without rowid;

-- The state.
create table aliases(id blob primary key, canonical blob not null) without rowid;
-- clean: nothing that the event said is left in this state directory (purge).
create table erased(id blob primary key, clean integer not null) without rowid;
create index erased_open on erased(id) where not clean;
create table quarantined(id blob primary key) without rowid;
create table claims(id blob primary key, n integer not null, accepted integer not null, window text not null,
  agent text not null, session text not null, project text not null, extractor text not null,
  transcript blob) without rowid;
create index claims_session on claims(session);
-- The sources that accepted claims name: what a window leaves out.
create table claimed(source blob not null, claim blob not null, primary key(source, claim)) without rowid;
create table memories(
  n integer primary key, id blob not null, person blob not null, lamport integer not null, wall integer not null,
  status text not null, overruled_by blob not null, heirs blob not null, contested blob not null,
  text_group blob not null, kind text not null, scope text not null, project text not null, text text not null,
  importance integer not null, confidence integer not null, trust text not null, branch text not null,
  paths text not null, tags text not null, triggers text not null, subject text not null, predicate text not null,
  object text not null, single integer not null, obsolete_when text not null, expires_at integer,
  sources blob not null, window text not null
);
create index memories_id on memories(id);
create index memories_group on memories(text_group);
-- One row a text group with a live member; n and id are those of the member that speaks for it, whose text and other
-- fields are in its row of memories. project and project_root are '' for scope personal. What has review waits for a
-- person: nobody is told it.
create table shown(
  n integer primary key, id blob not null, text_group blob not null, scope text not null, project text not null,
  project_root text not null, kind text not null, rank real not null, recency_ms integer not null,
  importance integer not null, trust text not null, pinned integer not null, confirmations integer not null,
  expires_at integer, has_triggers integer not null, members blob not null, live blob not null, sources blob not null,
  disputed blob not null, contested blob not null, supersedes blob not null, review integer not null
);
create index shown_triggers on shown(project_root, scope) where has_triggers;
-- The id settles equal ranks, so that what is cut off does not depend on the order of arrival.
create index shown_kind on shown(project_root, kind, rank, id);
create index shown_pinned on shown(project_root, rank, id) where pinned;
create index shown_review on shown(project_root, rank, id) where review;
create index shown_episodes on shown(project_root, recency_ms, id) where kind in ('summary', 'progress');

-- Every verdict on a pair of memories, so that nobody asks twice; only "contradicts" means something to the fold.
-- The key comes first: quick_check misreads a table without rowid whose columns stand in another order than its key.
create table judged(one blob not null, other blob not null, n integer not null, verdict text not null,
  primary key(one, other, n)) without rowid;
create index judged_other on judged(other);

-- What is known of the work itself. Each row keeps the (lamport, id) that it was taken from where the last one wins.
create table projects(key text primary key, root text not null, name text not null, lamport integer not null,
  id blob not null) without rowid;
create index projects_root on projects(root);
create table places(device text not null, path text not null, project text not null, lamport integer not null,
  id blob not null, primary key(device, path)) without rowid;
-- Which replicas were or are incarnations of a device, and what it told of itself, by their greetings.
create table replicas(replica blob primary key, device text not null, name text not null, platform text not null,
  version text not null) without rowid;
create table identities(project text not null, kind text not null, value text not null,
  primary key(project, kind, value)) without rowid;
create table sessions(
  agent text not null, session text not null, project text not null, dir text not null, branch text not null,
  head text not null, opened integer, closed integer, last integer not null, transcript text not null,
  model text not null, device blob not null, lamport integer not null, observations integer not null,
  prompt text not null, prompt_lamport integer not null, compacted integer not null, root text not null,
  primary key(session, agent)
) without rowid;
create index sessions_last on sessions(project, last);
-- One row an edit; at is its wall time, never after its receipt.
create table touched(n integer primary key, project text not null, path text not null, agent text not null,
  session text not null, branch text not null, op text not null, added integer not null, removed integer not null,
  at integer not null);
create index touched_at on touched(project, at);
-- One row a shell command, by a number made of its normal form (commands.py); ok is null when nobody told.
create table ran(n integer primary key, project text not null, command integer not null, ok integer);
create index ran_command on ran(project, command);
-- What a session was told: ids of memories, and the marks of warnings (working.mark).
create table delivered(session text not null, item blob not null, n integer not null,
  primary key(session, item, n)) without rowid;
create table briefs(agent text not null, directory text not null, project text not null, record text not null,
  text text not null, primary key(agent, directory)) without rowid;

-- Requests for erasures that can be read; which replica said that it has done one; what may stay although it cites what
-- was erased.
create table erasures(n integer primary key, id blob not null);
create table acknowledged(erasure blob not null, replica blob not null, n integer not null,
  primary key(erasure, replica)) without rowid;
create table kept(id blob primary key) without rowid;
-- Sessions of which something was erased: their transcripts, which the agents keep, are read no more.
create table unread(session text primary key) without rowid;

create virtual table memory_fts using fts5(text, tokenize = 'porter unicode61');
-- before: the prompt that a reply answers, in a column of its own so that an erasure can empty it.
create virtual table observation_fts using fts5(text, before, tokenize = 'porter unicode61');
"""

_Kind = TypeVar("_Kind", bound=sqlite3.Connection)


def version() -> str:
    """Return what an index must be stamped with to be used by this program."""
    return f"{SCHEMA_VERSION}.{FOLD_VERSION}"


def create(path: Path) -> sqlite3.Connection:
    """Make a new index at ``path``, where none may be, and return the open connection."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600))
    with guard(path):
        connection = _connect(path, "rw", BUSY_S, sqlite3.Connection)
        _prepare_writer(connection)
        connection.execute("begin immediate")
        for statement in TABLES.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        for name in ("memory_fts", "observation_fts"):
            # Without this an erased word stays in old parts of the full-text index until they are merged.
            if sqlite3.sqlite_version_info >= (3, 42):
                connection.execute(f"insert into {name}({name}, rank) values('secure-delete', 1)")
        rows = [("version", version()), ("top", 0), ("set_count", 0), ("state_count", 0)]
        rows += [("set_sum", bytes(32)), ("state_sum", bytes(32))]
        connection.executemany("insert into meta values(?, ?)", rows)
        connection.execute("commit")
    return connection


def open_write(path: Path, busy_s: float = BUSY_S) -> sqlite3.Connection:
    """Open the index for its one writer. Raises IndexMissing, IndexDamaged, Busy or CannotWrite."""
    _must_exist(path)
    with guard(path):
        connection = _connect(path, "rw", busy_s, sqlite3.Connection)
        try:
            _check(connection, path)
            _prepare_writer(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def open_read(path: Path, busy_s: float = BUSY_S, *, as_it_lies: bool = False) -> sqlite3.Connection:
    """Open the index for reading; it is never created or changed. Raises as ``open_write`` does.

    Everything that is asked through the connection later raises IndexDamaged, Busy or CannotWrite, too. Also readers
    need a few pages on the disk: with ``as_it_lies`` the file is read without them when a full disk refuses them. Such
    a connection sees no changes and must not be kept.
    """
    _must_exist(path)
    try:
        return _open_read(path, "ro", busy_s)
    except CannotWrite:
        if not as_it_lies or _waits(path):
            raise
        return _open_read(path, "ro&immutable=1", busy_s)


def _open_read(path: Path, mode: str, busy_s: float) -> sqlite3.Connection:
    with guard(path):
        connection = _connect(path, mode, busy_s, GuardedConnection)
        connection.path = path
        try:
            _check(connection, path)
            connection.execute("pragma query_only = on")
        except BaseException:
            connection.close()
            raise
    return connection


def _waits(path: Path) -> bool:
    """Tell whether changes lie beside the index that are not in the file yet."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def _must_exist(path: Path) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise IndexMissing(path=path, detail="no such file") from None
    except OSError as error:
        raise CannotWrite(path=path, detail=error.strerror or error) from error
    if size == 0:
        raise IndexMissing(path=path, detail="the file is empty")


def _connect(path: Path, mode: str, busy_s: float, factory: type[_Kind]) -> _Kind:
    found = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=factory,
    )
    assert isinstance(found, factory)
    return found


def _prepare_writer(connection: sqlite3.Connection) -> None:
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute("pragma secure_delete = on")
    connection.execute(f"pragma cache_size = -{_CACHE_KIB}")
    connection.execute(f"pragma wal_autocheckpoint = {_CHECKPOINT_PAGES}")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse an index that another version made, or one that shows at once that it is damaged."""
    row = connection.execute("select value from meta where key = 'version'").fetchone()
    if row is None or row[0] != version():
        raise IndexMissing(path=path, detail=f"version {row[0] if row else 'unknown'} instead of {version()}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Take the write lock at once; a transaction that begins by reading can fail when it wants to write."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def file_identity(path: Path) -> tuple[int, int]:
    """Return what tells whether the file at ``path`` is still the one that was opened."""
    try:
        found = path.stat()
    except OSError:
        return (-1, -1)
    return (found.st_dev, found.st_ino)
