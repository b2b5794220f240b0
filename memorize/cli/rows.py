"""How a memory looks: one line for a person, one object for a program."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from memorize.index.query import Row
from memorize.recall import lines
from memorize.recall.plain import one_line
from memorize.recall.rank import Score

LINE_CHARS = 200


def as_line(row: Row, others: Collection[bytes] = ()) -> str:
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
    text = one_line(row.text)
    if len(text) > LINE_CHARS:
        text = text[: LINE_CHARS - 1] + "…"
    tail = f"  ({', '.join(marks)})" if marks else ""
    return f"{lines.tag(row, others).strip('[]')}  {text}{tail}"


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
