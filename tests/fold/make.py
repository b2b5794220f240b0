"""Events by hand: short words for the tests, with ids that tell nothing about order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from blake3 import blake3

from memorize import model
from memorize.fold import State, fold
from memorize.model import Event, Header, text_key

PROJECT = "a1" * 16
OTHER_PROJECT = "b2" * 16
STRANGER = b"Q" * 32


def name(word: str | int) -> bytes:
    """Return an id for this word: 32 bytes whose order has nothing to do with the word's."""
    return blake3(str(word).encode("utf-8")).digest()


def event(
    word: str | int,
    kind: str,
    payload: Any = None,
    deps: Iterable[str | int | bytes] = (),
    *,
    at: int = 1,
    nonce: bytes = b"",
    ordinal: int = 0,
    person: bytes = b"",
    wall: int = 1_796_000_000_000,
    malformed: bool = False,
) -> Event:
    """Return an event called ``word``; deps are words, too."""
    named = tuple(dep if isinstance(dep, bytes) else name(dep) for dep in deps)
    header = Header(
        1, b"s" * 16, b"r" * 16, b"w" * 16, 1, b"", at, named, kind, 64, b"c" * 32, nonce, ordinal, b"", 0, wall,
        person=person,
    )  # fmt: skip
    return Event(name(word), header, payload, malformed)


def words(text: str, /, **fields: Any) -> dict[str, Any]:
    """Return a ``memory.formed`` payload."""
    found: dict[str, Any] = {
        "kind": "fact",
        "text": text,
        "text_key": text_key(text),
        "importance": 5,
        "confidence": 80,
        "scope": "project",
        "project": PROJECT,
        "trust": "user",
        "sources": [],
    }
    return {**found, **fields}


def formed(
    word: str | int, text: str = "", *, at: int = 1, header: Mapping[str, Any] | None = None, **fields: Any
) -> Event:
    """Return a memory; its text is the word when none is given."""
    return event(word, model.MEMORY_FORMED, words(text or str(word), **fields), at=at, **(header or {}))


def superseded(word: str, new: str, *old: str, window: str | None = None, **header: Any) -> Event:
    payload = {"reason": "edit"} if window is None else {"reason": "judged", "window": window}
    return event(word, model.MEMORY_SUPERSEDED, payload, (new, *old), **header)


def retracted(word: str, *memories: str, **header: Any) -> Event:
    return event(word, model.MEMORY_RETRACTED, {"reason": "틀렸음"}, memories, **header)


def restored(word: str, *acts: str, **header: Any) -> Event:
    return event(word, model.MEMORY_RESTORED, {}, acts, **header)


def pinned(word: str, *memories: str, **header: Any) -> Event:
    return event(word, model.MEMORY_PINNED, {}, memories, **header)


def unpinned(word: str, *pins: str, **header: Any) -> Event:
    return event(word, model.MEMORY_UNPINNED, {}, pins, **header)


def confirmed(word: str, *memories: str, window: str | None = None, **header: Any) -> Event:
    return event(word, model.MEMORY_CONFIRMED, {"window": window}, memories, **header)


def judged(
    word: str,
    one: str,
    other: str,
    *before: str,
    verdict: str = "contradicts",
    window: str | None = None,
    **header: Any,
) -> Event:
    return event(word, model.MEMORY_JUDGED, {"verdict": verdict, "window": window}, (one, other, *before), **header)


def claim(
    word: str,
    window: str,
    sources: Iterable[str] = (),
    made: Iterable[str] = (),
    redoes: Iterable[str] = (),
    **header: Any,
) -> Event:
    payload = {"window": window, "sources": [name(one) for one in sources], "events": [name(one) for one in made]}
    return event(word, model.WINDOW_CONSOLIDATED, payload, redoes, **header)


def erasure(word: str, *targets: str, **header: Any) -> Event:
    return event(word, model.ERASE_REQUESTED, {"ids": [name(one) for one in targets], "reason": "비밀"}, **header)


def linked(word: str, one: str, other: str, **header: Any) -> Event:
    return event(word, model.PROJECT_LINKED, {"a": one, "b": other}, **header)


def unlinked(word: str, *links: str, **header: Any) -> Event:
    return event(word, model.PROJECT_UNLINKED, {}, links, **header)


def noted(word: str, **header: Any) -> Event:
    return event(word, model.OBSERVED_NOTE, {"text": "메모"}, **header)


def status(state: State, word: str) -> str:
    return state.memories[name(word)].status


def texts(*events: Event) -> list[str]:
    """Return the texts shown after these events."""
    return sorted(shown.text for shown in fold(events).shown.values())
