"""Payloads as typed values. Total: any payload of a wrong shape gives None, nothing is ever raised.

A reader looks only at the fields that the fold uses; unknown fields are never a fault. A wrong type, an unknown word
or a number out of its range is one: the event is then quarantined whole, because half of it may mean something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from blake3 import blake3

from memorize.fold.state import MS_MAX
from memorize.model import SCOPES, TRUSTS, VERDICTS

# What is taken when the writer left the field out: the middle, and the least trusted.
_CONFIDENCE: Final = 50
_TRUST: Final = TRUSTS[0]
_OPTIONAL_TEXTS: Final = ("branch", "subject", "predicate", "object", "obsolete_when", "window")


class Content(NamedTuple):
    """What a ``memory.formed`` event says; the fields are the last ones of ``MemoryState``."""

    group: bytes
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
    subject: str
    predicate: str
    object: str
    single: bool
    obsolete_when: str
    expires_at: int | None
    sources: tuple[bytes, ...]
    window: str


# A memory whose body is gone: it can still be named, and its supersede edges still count.
BLANK: Final = Content(b"", "", "", "", "", 0, 0, "", "", (), (), (), "", "", "", False, "", None, (), "")


class ClaimWords(NamedTuple):
    """What a ``window.consolidated`` event says: its nonce, the sources it claims and the events it made."""

    window: str
    sources: tuple[bytes, ...]
    events: tuple[bytes, ...]


def group_key(person: bytes, scope: str, project: str, kind: str, text_key: str) -> bytes:
    """Return the 16 bytes that name a text group. The project counts only within the scope ``project``."""
    where = project if scope == "project" else ""
    sizes = f"{len(person)} {len(scope)} {len(where)} {len(kind)}\0"
    raw = person + f"{sizes}{scope}{where}{kind}{text_key}".encode("utf-8", "surrogatepass")
    return blake3(raw).digest(16)


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


def formed(person: bytes, payload: Mapping[str, Any]) -> Content | None:
    """Read a ``memory.formed`` payload."""
    get = payload.get
    kind, text, text_key = get("kind"), get("text"), get("text_key")
    if type(kind) is not str or type(text) is not str or type(text_key) is not str or not (kind and text and text_key):
        return None
    scope, project, trust = get("scope"), get("project"), get("trust", _TRUST)
    if type(scope) is not str or scope not in SCOPES or type(trust) is not str or trust not in TRUSTS:
        return None
    if project is None and scope != "project":
        project = ""
    if type(project) is not str or (scope == "project" and not project):
        return None
    importance, confidence = get("importance"), get("confidence", _CONFIDENCE)
    if type(importance) is not int or type(confidence) is not int:
        return None
    single, expires = get("single", False), get("expires_at")
    if not 1 <= importance <= 10 or not 0 <= confidence <= 100 or type(single) is not bool:
        return None
    if expires is not None and (type(expires) is not int or not 0 <= expires <= MS_MAX):
        return None
    paths, tags, triggers = _strings(get("paths")), _strings(get("tags")), _strings(get("triggers"))
    words, sources = _optional(payload), ids(get("sources", ()))
    if paths is None or tags is None or triggers is None or words is None or sources is None:
        return None
    branch, subject, predicate, object_, obsolete_when, window = words
    group = group_key(person, scope, project, kind, text_key)
    return Content(
        group, kind, scope, project, text, importance, confidence, trust, branch, paths, tags, triggers,
        subject, predicate, object_, single, obsolete_when, expires, sources, window,
    )  # fmt: skip


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
    sources, events = ids(payload.get("sources")), ids(payload.get("events", ()))
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


def _strings(value: object) -> tuple[str, ...] | None:
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
