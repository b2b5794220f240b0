"""How a memory looks: one line for a person, one object for a program."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Any

from memorize.cli.terminal import columns
from memorize.index.groups import Group
from memorize.index.query import Row
from memorize.recall import lines
from memorize.recall.plain import one_line
from memorize.recall.rank import Score

WIDTH_MIN = 40
WIDTH_MAX = 200


def width() -> int:
    """Return how many columns a line may take: those of the terminal or of COLUMNS, many when neither is there."""
    return max(WIDTH_MIN, min(WIDTH_MAX, columns(WIDTH_MAX)))


def fit(text: str, columns: int) -> str:
    """Return the text cut to that many columns; a wide character takes two, a combining one none."""
    taken = 0
    for place, char in enumerate(text):
        step = 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if taken + step > columns - 1 and columns_of(text[place:]) > columns - taken:
            return text[:place].rstrip() + "…"
        taken += step
    return text


def columns_of(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def named(group: Group) -> str:
    """Return short id and text, whatever the text is made of."""
    return f"{group.id.hex()[:6]}: {one_line(group.text)}"


def padded(text: str, columns: int) -> str:
    """Return the text cut or filled up to that many columns."""
    text = fit(text, columns)
    return text + " " * (columns - columns_of(text))


def as_line(row: Row, others: Collection[bytes] = (), columns: int = WIDTH_MAX) -> str:
    """Return kind letter, short id and text on one line, with marks for what is pinned, disputed or not live."""
    marks = [
        word
        for word, holds in (
            ("pinned", row.pinned),
            ("disputed", bool(row.disputed)),
            ("external", row.trust == "external"),
            ("review", row.review),
            (row.status, row.status != "live"),
        )
        if holds
    ]
    tail = f"  ({', '.join(marks)})" if marks else ""
    head = f"{lines.tag(row, others).strip('[]')}  "
    return f"{head}{fit(one_line(row.text), columns - len(head) - len(tail))}{tail}"


def as_item(row: Row, score: Score | None = None) -> dict[str, Any]:
    """Return the object of ``--json``: ids in full, times in ms since 1970 (UTC)."""
    item: dict[str, Any] = {
        "id": row.id,
        "kind": row.kind,
        "text": row.text,
        "scope": row.scope,
        "project": row.project,
        "importance": row.importance,
        "trust": row.trust,
        "branch": row.branch,
        "recency_ms": row.recency,
        "pinned": row.pinned,
        "confirmations": row.confirmations,
        "expires_at": row.expires_at,
        "disputed": list(row.disputed),
        "status": row.status,
        "review": row.review,
    }
    if score is not None:
        item["score"] = score._asdict() | {"fit": score.fit._asdict() if score.fit else None}
    return item
