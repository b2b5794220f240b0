"""What a person does to a memory, as drafts. Pure; each function gives one batch.

An event overrules only what it names, so every change names all members of the text group that are known, and a
forgetting also all that they replaced: nothing forgotten comes back by itself (DESIGN 5 rule 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from memorize.limits import DEPS_MAX, MEMORY_TEXT_CHARS_MAX
from memorize.model import (
    MEMORY_CONFIRMED,
    MEMORY_FORMED,
    MEMORY_PINNED,
    MEMORY_RESTORED,
    MEMORY_RETRACTED,
    MEMORY_SUPERSEDED,
    MEMORY_UNPINNED,
    Draft,
    Payload,
    text_key,
)

USER: Final = "user"
CERTAIN: Final = 100


def formed(text: str, kind: str, scope: str, project: str, importance: int, **fields: Any) -> Payload:
    """Return the payload of a memory that a person stated. ``fields`` are further fields of ``memory.formed``."""
    folded = text.strip()[:MEMORY_TEXT_CHARS_MAX]
    payload = {
        "kind": kind,
        "text": folded,
        "text_key": text_key(folded),
        "importance": importance,
        "confidence": CERTAIN,
        "scope": scope,
        "project": project,
        "trust": USER,
        "sources": [],
    }
    return {**payload, **fields}


def remembered(payload: Payload) -> list[Draft]:
    """Return the batch that stores a new memory."""
    return [Draft(MEMORY_FORMED, payload)]


def edited(payload: Payload, members: Sequence[bytes]) -> list[Draft]:
    """Return the batch that puts a new memory in the place of every member of an old one's group."""
    replaced = [
        Draft(MEMORY_SUPERSEDED, {"reason": "edited"}, ordinal=1 + number, deps=(0, *part))
        for number, part in enumerate(_parts(members, DEPS_MAX - 1))
    ]
    return [Draft(MEMORY_FORMED, payload), *replaced]


def forgotten(members: Iterable[bytes], replaced: Iterable[bytes], reason: str) -> list[Draft]:
    """Return the batch that retracts a memory and everything that it had replaced."""
    return _about(MEMORY_RETRACTED, {"reason": reason}, [*members, *replaced])


def restored(overruling: Iterable[bytes]) -> list[Draft]:
    """Return the batch that cancels these retractions and supersede events."""
    return _about(MEMORY_RESTORED, {}, overruling)


def pinned(members: Iterable[bytes]) -> list[Draft]:
    """Return the batch that pins a memory."""
    return _about(MEMORY_PINNED, {}, members)


def unpinned(pins: Iterable[bytes]) -> list[Draft]:
    """Return the batch that takes back the pins that were seen."""
    return _about(MEMORY_UNPINNED, {}, pins)


def confirmed(members: Iterable[bytes]) -> list[Draft]:
    """Return the batch that says: still true."""
    return _about(MEMORY_CONFIRMED, {}, members)


def _about(kind: str, payload: Payload, ids: Iterable[bytes]) -> list[Draft]:
    unique = list(dict.fromkeys(ids))
    return [Draft(kind, payload, ordinal=number, deps=part) for number, part in enumerate(_parts(unique, DEPS_MAX))]


def _parts(ids: Sequence[bytes], size: int) -> Iterator[tuple[bytes, ...]]:
    for start in range(0, len(ids), size):
        yield tuple(ids[start : start + size])
