"""Small projections made by hand: rows as the projector writes them, without a log behind them."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
from blake3 import blake3

from memorize.index import schema, text
from memorize.index.query import Query

NOW = 1_796_000_000_000
DAY = 86_400_000
PROJECT = "a" * 32
OTHER = "b" * 32
EMPTY = msgpack.packb([])


def identity(words: str) -> bytes:
    """Return the id of the memory with these words: the same in every store."""
    return blake3(words.encode("utf-8", "surrogatepass")).digest()


def memory(words: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of a memory with sensible defaults."""
    return {
        "text": words,
        "id": identity(words),
        "lamport": 1,
        "kind": "decision",
        "scope": "project",
        "project": PROJECT,
        "importance": 5,
        "trust": "agent",
        "branch": "",
        "recency": NOW,
        "pinned": False,
        "expires_at": None,
        "disputed": (),
        "sources": (),
        "session": "",
        "review": False,
        "triggers": (),
        **fields,
    }


def store(memories: Iterable[Mapping[str, Any]], path: Path | None = None) -> sqlite3.Connection:
    """Return a projection that holds these memories, in memory unless a path is given."""
    base = schema.create(path) if path else _in_memory()
    base.execute("begin")
    for number, fields in enumerate(memories, 1):
        _insert(base, number, fields)
    base.execute("commit")
    return base


def query(memories: Iterable[Mapping[str, Any]]) -> Query:
    """Return a reader of a store with these memories."""
    return Query(store(memories))


def session(base: sqlite3.Connection, name: str, agent: str, project: str = PROJECT, branch: str = "") -> None:
    """Add a session."""
    base.execute(
        "insert into sessions values(?, ?, ?, '', ?, '', 0, null, 0, '', '', x'', 1, 0, '', 0, 0, '')",
        (agent, name, project, branch),
    )


def _in_memory() -> sqlite3.Connection:
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.executescript(schema.TABLES)
    return base


def _insert(base: sqlite3.Connection, number: int, one: Mapping[str, Any]) -> None:
    sources, disputed = (msgpack.packb(list(one[name])) for name in ("sources", "disputed"))
    place = "" if one["scope"] == "personal" else one["project"]
    key = blake3(repr((place, one["kind"], one["text"])).encode("utf-8", "surrogatepass")).digest()
    rank = math.log2(one["importance"]) + one["recency"] / DAY / 14
    base.execute(
        "insert into events values(?,?,?,'memory.formed',x'',0,x'',0,?,?,0,0,0,?,?,x'',1,0,?,null)",
        (
            number,
            one["lamport"],
            one["id"],
            one["recency"],
            one["recency"],
            one["session"],
            one["project"],
            int.from_bytes(one["id"][:7], "big"),
        ),
    )
    values: Sequence[Any] = (
        number, one["id"], b"", one["lamport"], one["recency"], "live", EMPTY, EMPTY, EMPTY, key, one["kind"],
        one["scope"], one["project"], one["text"], one["importance"], 80, one["trust"], one["branch"], "[]", "[]",
        json.dumps(one["triggers"]), "", "", "", 0, "", one["expires_at"], sources, "",
    )  # fmt: skip
    base.execute(f"insert into memories values({','.join('?' * len(values))})", values)
    values = (
        number, one["id"], key, one["scope"], place, place, one["kind"], rank, one["recency"], one["importance"],
        one["trust"], int(one["pinned"]), 0, one["expires_at"], bool(one["triggers"]), msgpack.packb([one["id"]]),
        msgpack.packb([one["id"]]), sources, disputed, EMPTY, EMPTY, int(one["review"]),
    )  # fmt: skip
    base.execute(f"insert into shown values({','.join('?' * len(values))})", values)
    base.execute("insert into memory_fts(rowid, text) values(?, ?)", (number, text.document(one["text"])))
