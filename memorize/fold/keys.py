"""Which events can influence each other: those connected through shared keys, directly or through others.

The state of a set of events is the union of the states of its connected parts. Whoever stores the keys of events
can fold a late event together with its connected part alone and replace just those rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from memorize import model
from memorize.fold import reading
from memorize.fold.reading import CONTRADICTS
from memorize.model import Event, Header

# The kinds whose deps mean something to the fold; deps of other kinds connect nothing.
_BY_DEPS: Final = frozenset(
    {
        model.MEMORY_SUPERSEDED,
        model.MEMORY_RETRACTED,
        model.MEMORY_RESTORED,
        model.MEMORY_PINNED,
        model.MEMORY_UNPINNED,
        model.MEMORY_CONFIRMED,
        model.PROJECT_UNLINKED,
        model.WINDOW_CONSOLIDATED,
    }
)


def id_key(identity: bytes) -> bytes:
    """Return the key of an event as such: it has it itself, and whatever names it has it too."""
    return b"i" + identity


def capture_key(header: Header) -> bytes:
    """Return the key that aliases share, b"" for an event without a nonce."""
    if not header.nonce:
        return b""
    sizes = b"a%d %d %d " % (header.ordinal, len(header.person), len(header.nonce))
    return sizes + header.person + header.nonce + header.kind.encode("utf-8", "surrogatepass")


def keys(event: Event) -> frozenset[bytes]:
    """Return the keys of an event; every event has the key of its own id and, with a nonce, that of its capture."""
    header = event.header
    found = {b"i" + event.id}
    if header.nonce:
        found.add(capture_key(header))
    if header.kind in _BY_DEPS:
        found.update(map(id_key, header.deps))
    more = _BY_PAYLOAD.get(header.kind)
    if more is not None and isinstance(event.payload, Mapping):
        found.update(more(header, event.payload))
    return frozenset(found)


def _formed(header: Header, payload: Mapping[str, Any]) -> Iterable[bytes]:
    group = reading.group_of(header.person, payload)
    return (b"g" + group,) if group else ()


def _verdict(header: Header, payload: Mapping[str, Any]) -> Iterable[bytes]:
    # Most verdicts say "unrelated", about everything that looked alike; they must not tie a whole store together.
    pair_counts = reading.verdict(payload) == CONTRADICTS
    return map(id_key, header.deps if pair_counts else header.deps[2:])


def _claim(_header: Header, payload: Mapping[str, Any]) -> Iterable[bytes]:
    words = reading.claim(payload)
    return map(id_key, words.sources + words.events) if words else ()


def _erasure(_header: Header, payload: Mapping[str, Any]) -> Iterable[bytes]:
    return map(id_key, reading.erasure(payload) or ())


def _link(_header: Header, payload: Mapping[str, Any]) -> Iterable[bytes]:
    return (b"p" + key.encode("utf-8", "surrogatepass") for key in reading.link(payload) or ())


_BY_PAYLOAD: Final[Mapping[str, Callable[[Header, Mapping[str, Any]], Iterable[bytes]]]] = {
    model.MEMORY_FORMED: _formed,
    model.MEMORY_JUDGED: _verdict,
    model.WINDOW_CONSOLIDATED: _claim,
    model.ERASE_REQUESTED: _erasure,
    model.PROJECT_LINKED: _link,
}
