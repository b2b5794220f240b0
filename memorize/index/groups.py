"""One memory as a person means it: all members of its text group, what they replaced, and what stands against them."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Final, NamedTuple

import msgpack

from memorize.errors import AmbiguousId, UnknownMemory
from memorize.ids import ID_BYTES
from memorize.index.packing import key_number, unpack
from memorize.model import MEMORY_PINNED, MEMORY_SUPERSEDED

SHORT_MIN: Final = 4
_NAMED_MAX: Final = 5
_COLUMNS: Final = (
    "id, status, kind, scope, project, text, importance, confidence, trust, branch, paths, tags, triggers,"
    " expires_at, wall, text_group, overruled_by, heirs, sources"
)


class Group(NamedTuple):
    """A memory and its group. ``members`` are all known members, ``supersedes`` all that they replaced."""

    id: bytes
    status: str
    kind: str
    scope: str
    project: str
    text: str
    importance: int
    confidence: int
    trust: str
    branch: str
    paths: tuple[str, ...]
    tags: tuple[str, ...]
    triggers: tuple[str, ...]
    expires_at: int | None
    wall: int
    overruled_by: tuple[bytes, ...]
    heirs: tuple[bytes, ...]
    sources: tuple[bytes, ...]
    members: tuple[bytes, ...]
    supersedes: tuple[bytes, ...]
    pinned: bool
    confirmations: int
    recency: int
    disputed: tuple[bytes, ...]

    def shown(self) -> dict[str, Any]:
        """Return what ``--json`` shows of it besides the id."""
        names = ("status", "kind", "scope", "text", "importance", "confidence", "trust", "branch", "paths", "tags")
        more = ("triggers", "expires_at", "pinned", "confirmations", "heirs", "disputed")
        return {name: getattr(self, name) for name in (*names, *more)}


def find(connection: sqlite3.Connection, prefix: str, *, events: bool = False) -> bytes:
    """Return the id of the memory (or, with ``events``, of any event) that begins with these hex digits.

    Raises UnknownMemory, AmbiguousId.
    """
    digits = prefix.strip().lower()
    if len(digits) < SHORT_MIN or any(digit not in "0123456789abcdef" for digit in digits):
        raise UnknownMemory(prefix=prefix)
    for table in ("memories", "events") if events else ("memories",):
        found = _matching(connection, table, digits)
        if len(found) == 1:
            return found[0]
        if found:
            named = ", ".join(identity.hex()[: max(12, len(digits) + 4)] for identity in found[:_NAMED_MAX])
            raise AmbiguousId(prefix=prefix, count=len(found), candidates=named)
    raise UnknownMemory(prefix=prefix)


def _matching(connection: sqlite3.Connection, table: str, digits: str) -> list[bytes]:
    full = 2 * ID_BYTES
    if len(digits) > full:
        return []
    low, high = bytes.fromhex(digits.ljust(full, "0")), bytes.fromhex(digits.ljust(full, "f"))
    if table == "memories":
        rows = connection.execute("select distinct id from memories where id between ? and ?", (low, high))
    else:
        numbers = (int.from_bytes(low[:7], "big"), int.from_bytes(high[:7], "big"))
        sql = "select id from events where id8 between ? and ? and id between ? and ?"
        rows = connection.execute(sql, (*numbers, low, high))
    return [bytes(identity) for (identity,) in rows]


def load(connection: sqlite3.Connection, identity: bytes) -> Group:
    """Return a memory with its group. Raises UnknownMemory."""
    row = connection.execute(f"select {_COLUMNS} from memories where id = ?", (identity,)).fetchone()
    if row is None:
        raise UnknownMemory(prefix=identity.hex()[:12])
    lists = [tuple(json.loads(cell)) for cell in row[10:13]]
    overruled, heirs, sources = (tuple(msgpack.unpackb(cell)) for cell in row[16:19])
    members, supersedes, pinned, confirmations, recency, disputed = _of_group(connection, row[15], identity)
    values: list[Any] = [*row[:10], *lists, row[13], row[14], overruled, heirs, sources]
    values += [members, supersedes, pinned, confirmations, recency or row[14], disputed]
    return Group(*values)


def _of_group(connection: sqlite3.Connection, group: bytes, identity: bytes) -> tuple[Any, ...]:
    # An erased memory belongs to no group any more.
    sql = "select id from memories where text_group = ?" if group else "select id from memories where id = ?"
    members = tuple(bytes(found) for (found,) in connection.execute(sql, (group or identity,)))
    shown = connection.execute(
        "select supersedes, pinned, confirmations, recency_ms, disputed from shown"
        " where n in (select n from memories where text_group = ?)",
        (group,),
    ).fetchone()
    if shown is None or not group:
        members = members or (identity,)
        return members, replaced(connection, members), False, 0, 0, ()
    supersedes, pinned, confirmations, recency, disputed = shown
    return (
        members,
        tuple(msgpack.unpackb(supersedes)),
        bool(pinned),
        confirmations,
        recency,
        tuple(msgpack.unpackb(disputed)),
    )


def replaced(connection: sqlite3.Connection, members: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Return everything that these memories replaced, directly or through others; an undone edit replaces nothing.

    What is shown has this in its row; a version in the middle has no row, so its supersede events are followed.
    """
    found: dict[bytes, None] = {}
    waiting = list(members)
    sql = """select f.header from links l join events e on e.n = l.n join foldable f on f.n = l.n
        where l.key = ? and e.kind = ?"""
    while waiting:
        new = waiting.pop()
        for (header,) in connection.execute(sql, (key_number(b"i" + new), MEMORY_SUPERSEDED)):
            deps = unpack(header)[7]
            for old in deps[1:] if deps and deps[0] == new else ():
                if old not in found and old not in members and new in _heirs(connection, old):
                    found[old] = None
                    waiting.append(old)
    return tuple(found)


def _heirs(connection: sqlite3.Connection, identity: bytes) -> tuple[bytes, ...]:
    row = connection.execute("select heirs from memories where id = ?", (identity,)).fetchone()
    return tuple(msgpack.unpackb(row[0])) if row else ()


def siblings(connection: sqlite3.Connection, identities: tuple[bytes, ...]) -> list[bytes]:
    """Return these events and all others of the same kind that came in one batch with one of them."""
    found: dict[bytes, None] = dict.fromkeys(identities)
    for identity in identities:
        number = int.from_bytes(identity[:7], "big")
        sql = """select o.id from events e
            join events o on o.nonce8 = e.nonce8 and o.nonce = e.nonce and o.kind = e.kind
            where e.id8 = ? and e.id = ? and e.nonce8 is not null order by o.ordinal"""
        found.update(dict.fromkeys(bytes(other) for (other,) in connection.execute(sql, (number, identity))))
    return list(found)


def pins(connection: sqlite3.Connection, memories: tuple[bytes, ...]) -> list[bytes]:
    """Return the pin events that name one of these memories."""
    wanted = set(memories)
    sql = "select e.id, f.header from events e join foldable f on f.n = e.n where e.kind = ? order by e.lamport, e.id"
    return [
        bytes(identity)
        for identity, header in connection.execute(sql, (MEMORY_PINNED,))
        if wanted.intersection(unpack(header)[7])
    ]
