"""Payloads as typed values. Total: any payload of a wrong shape gives None, nothing is ever raised.

A reader looks only at the fields that the fold uses; unknown fields are never a fault. A wrong type, an unknown word
or a number out of its range is one: the event is then quarantined whole, because half of it may mean something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from blake3 import blake3

from memorize.fold.state import ERASED, LIVE, MS_MAX, MemoryState
from memorize.model import SCOPES, TRUSTS, VERDICTS, Header

# What is taken when the writer left the field out: the middle, and the least trusted.
_CONFIDENCE: Final = 50
_TRUST: Final = TRUSTS[0]

# The one verdict that the fold acts on; the others are remembered so that nobody asks twice.
CONTRADICTS: Final = "contradicts"
_OPTIONAL_TEXTS: Final = ("project", "branch", "trust", "subject", "predicate", "object", "obsolete_when", "window")


class ClaimWords(NamedTuple):
    """What a ``window.consolidated`` event says: its nonce, the sources it claims and the events it made."""

    window: str
    sources: tuple[bytes, ...]
    events: tuple[bytes, ...]


def group_key(person: bytes, scope: str, project: str, kind: str, text_key: str) -> bytes:
    """Return the 16 bytes that name a text group. The project counts only within the scope ``project``."""
    where = project if scope == "project" else ""
    return blake3(_group_prefix(person, scope, where, kind) + text_key.encode("utf-8", "surrogatepass")).digest(16)


@lru_cache(maxsize=1024)
def _group_prefix(person: bytes, scope: str, where: str, kind: str) -> bytes:
    """Return what the groups of one person, scope, project and kind have in common; kept, since they are few."""
    sizes = f"{len(person)} {len(scope)} {len(where)} {len(kind)}\0"
    return person + f"{sizes}{scope}{where}{kind}".encode("utf-8", "surrogatepass")


def group_of(person: bytes, payload: object) -> bytes:
    """Return the group of a ``memory.formed`` payload, b"" when it belongs to none."""
    if not isinstance(payload, Mapping):
        return b""
    scope, project = payload.get("scope"), payload.get("project")
    kind, text_key = payload.get("kind"), payload.get("text_key")
    if type(scope) is not str or type(kind) is not str or type(text_key) is not str:
        return b""
    if project is not None and type(project) is not str:
        return b""
    return group_key(person, scope, project or "", kind, text_key)


def formed(identity: bytes, header: Header, payload: Mapping[str, Any]) -> MemoryState | None:
    """Read a ``memory.formed`` event as a live memory. An optional field that is None counts as left out."""
    get = payload.get
    kind, text, text_key = get("kind"), get("text"), get("text_key")
    if type(kind) is not str or type(text) is not str or type(text_key) is not str or not (kind and text and text_key):
        return None
    words, lists = _optional(payload), _lists(payload)
    numbers = _numbers(get("importance"), get("confidence"), get("expires_at"))
    scope, single = get("scope"), get("single")
    if type(scope) is not str or scope not in SCOPES or not (single is None or type(single) is bool):
        return None
    if words is None or lists is None or numbers is None:
        return None
    project, branch, trust, subject, predicate, object_, obsolete_when, made_by = words
    trust = trust or _TRUST
    if trust not in TRUSTS or (scope == "project" and not project):
        return None
    importance, confidence, expires = numbers
    paths, tags, triggers, sources = lists
    person, wall = header.person, header.wall
    group = group_key(person, scope, project, kind, text_key)
    return tuple.__new__(  # the plain call takes twice as long, and this is the busiest line of the fold
        MemoryState,
        (identity, person, header.lamport, wall if 0 <= wall <= MS_MAX else cut(wall), LIVE, (), (), (),
         group, kind, scope, project, text, importance, confidence, trust, branch, paths, tags, triggers,
         subject, predicate, object_, bool(single), obsolete_when, expires, sources, made_by),
    )  # fmt: skip


def bodiless(identity: bytes, header: Header) -> MemoryState:
    """Return a memory whose body is gone: it can still be named, and its supersede edges still count."""
    head = (identity, header.person, header.lamport, cut(header.wall), ERASED, (), (), ())
    return MemoryState(*head, b"", "", "", "", "", 0, 0, "", "", (), (), (), "", "", "", False, "", None, (), "")


def cut(wall: int) -> int:
    """Return a wall time in ms that is neither negative nor beyond ``MS_MAX``."""
    return max(0, min(wall, MS_MAX))


def _numbers(importance: object, confidence: object, expires: object) -> tuple[int, int, int | None] | None:
    if confidence is None:
        confidence = _CONFIDENCE
    # A bool is an int for Python, not for us.
    if type(importance) is not int or type(confidence) is not int:
        return None
    if not 1 <= importance <= 10 or not 0 <= confidence <= 100:
        return None
    if expires is None:
        return importance, confidence, None
    if type(expires) is not int or not 0 <= expires <= MS_MAX:
        return None
    return importance, confidence, expires


def window(payload: Mapping[str, Any]) -> str | None:
    """Read the window nonce of an event that a consolidation may have made; "" when there is none."""
    found = payload.get("window")
    if found is None:
        return ""
    return found if type(found) is str else None


def verdict(payload: Mapping[str, Any]) -> str | None:
    """Read the verdict of ``memory.judged``."""
    found = payload.get("verdict")
    return found if type(found) is str and found in VERDICTS else None


def claim(payload: Mapping[str, Any]) -> ClaimWords | None:
    """Read a ``window.consolidated`` payload."""
    nonce = payload.get("window")
    events = payload.get("events")
    sources, events = ids(payload.get("sources")), () if events is None else ids(events)
    if type(nonce) is not str or not nonce or sources is None or events is None:
        return None
    return ClaimWords(nonce, sources, events)


def erasure(payload: Mapping[str, Any]) -> tuple[bytes, ...] | None:
    """Read the ids that an ``erase.requested`` payload names."""
    return ids(payload.get("ids"))


def link(payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read the two project keys of ``project.linked``."""
    one, other = payload.get("a"), payload.get("b")
    if type(one) is not str or type(other) is not str or not one or not other:
        return None
    return one, other


def ids(value: object) -> tuple[bytes, ...] | None:
    """Return a list of ids as a tuple, None when it is anything else."""
    if not isinstance(value, (list, tuple)):
        return None
    for item in value:
        if type(item) is not bytes or not item:
            return None
    return tuple(value)


_Strings = tuple[str, ...]


def _lists(payload: Mapping[str, Any]) -> tuple[_Strings, _Strings, _Strings, tuple[bytes, ...]] | None:
    get = payload.get
    sources = get("sources")
    paths, tags, triggers = _strings(get("paths")), _strings(get("tags")), _strings(get("triggers"))
    sources = () if sources is None else ids(sources)
    if sources and len(sources) > 1:
        sources = tuple(dict.fromkeys(sources))
    if paths is None or tags is None or triggers is None or sources is None:
        return None
    return paths, tags, triggers, sources


def _strings(value: object) -> _Strings | None:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        return None
    for item in value:
        if type(item) is not str:
            return None
    return tuple(value)


def _optional(payload: Mapping[str, Any]) -> list[str] | None:
    found = []
    for name in _OPTIONAL_TEXTS:
        value = payload.get(name)
        if value is None:
            value = ""
        elif type(value) is not str:
            return None
        found.append(value)
    return found
