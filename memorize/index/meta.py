"""The few single values of the index: counts, sums and stamps."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

_MODULUS: Final = 2**256


def get(connection: sqlite3.Connection, key: str, default: Any = 0) -> Any:
    """Return the value of a key."""
    row = connection.execute("select value from meta where key = ?", (key,)).fetchone()
    return default if row is None else row[0]


def put(connection: sqlite3.Connection, key: str, value: object) -> None:
    """Set the value of a key."""
    connection.execute("insert or replace into meta values(?, ?)", (key, value))


def totals(connection: sqlite3.Connection, name: str) -> tuple[int, int]:
    """Return count and sum (mod 2^256) of the rows of the ``state``, or of the ids of the ``set``."""
    return get(connection, f"{name}_count"), int.from_bytes(get(connection, f"{name}_sum", b""), "big")


def add(connection: sqlite3.Connection, name: str, count: int, total: int) -> None:
    """Add to count and sum of the ``state`` or the ``set``; both may be negative."""
    if not count and not total:
        return
    old_count, old_total = totals(connection, name)
    put(connection, f"{name}_count", old_count + count)
    put(connection, f"{name}_sum", ((old_total + total) % _MODULUS).to_bytes(32, "big"))
