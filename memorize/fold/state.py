"""The values that the fold gives, and their canonical rows and digest.

A state is a set of independent rows: the state of two unconnected sets of events is the union of their rows, and its
digest is a count and a sum, so that whoever keeps the rows can keep the digest by addition and subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgpack
from blake3 import blake3

from memorize.limits import FOLD_VERSION

LIVE: Final = "live"
SUPERSEDED: Final = "superseded"
RETRACTED: Final = "retracted"
SHADOWED: Final = "shadowed"
ERASED: Final = "erased"
# Of several that hold, the last one is the status.

# Wall times and expiries above this are cut to it: they are nonsense, and must fit a signed 64-bit column.
MS_MAX: Final = 2**53
_ROW_CONTEXT: Final = "memorize 2026 state row v1"
_DIGEST_CONTEXT: Final = "memorize 2026 state digest v1"
_SUM_MODULUS: Final = 2**256


class MemoryState(NamedTuple):
    """One ``memory.formed`` event (never an alias) and what other events did to it.

    ``by`` holds the ids of all events in force against it: erasures, retractions, supersede events, and the refused
    claims that list it when it is shadowed; a restore may name them all. ``heirs`` are the memories that replaced it,
    ``contested`` the events of other persons that would overrule it and do not. ``sources`` are ids as they were
    stored (an alias stays an alias). ``text`` and the fields after it are empty when the body is gone, ``group`` too.
    """

    id: bytes
    person: bytes
    lamport: int
    wall: int
    status: str
    by: tuple[bytes, ...]
    heirs: tuple[bytes, ...]
    contested: tuple[bytes, ...]
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


class Shown(NamedTuple):
    """One text group with at least one live member: the memory that a person sees.

    ``id`` is the live member with the greatest (lamport, id); every field up to ``expires_at`` is that member's,
    ``sources`` begins with its own. ``members`` are all known members whose body is held, ``live`` the live ones.
    ``recency`` is the wall time in ms at which a live member was last formed, or it or what it replaced was last
    confirmed. ``disputed`` are the ids of the shown memories that a verdict says it contradicts, ``contested`` the
    events of other persons against it, ``supersedes`` every memory that a member replaced, directly or through others.
    """

    key: bytes
    id: bytes
    person: bytes
    lamport: int
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
    members: tuple[bytes, ...]
    live: tuple[bytes, ...]
    recency: int
    pinned: bool
    confirmations: int
    disputed: tuple[bytes, ...]
    contested: tuple[bytes, ...]
    supersedes: tuple[bytes, ...]


class State(NamedTuple):
    """What a set of events means.

    ``aliases``: event id -> the event that counts for the same capture. ``erased``: known events whose body is erased.
    ``quarantined``: known events that are malformed and have no effect. ``claims``: claim id -> accepted.
    ``memories``: by event id. ``shown``: by group key. ``projects``: project key -> root, of joined keys only.
    """

    aliases: Mapping[bytes, bytes]
    erased: frozenset[bytes]
    quarantined: frozenset[bytes]
    claims: Mapping[bytes, bool]
    memories: Mapping[bytes, MemoryState]
    shown: Mapping[bytes, Shown]
    projects: Mapping[str, str]

    def root(self, project: str) -> str:
        """Return the key that stands for this project and everything joined with it."""
        return self.projects.get(project, project)


def rows(state: State) -> Iterator[tuple[bytes, bytes]]:
    """Return the canonical (key, value) rows of a state; keys are unique, their order means nothing."""
    pack: Any = msgpack.Packer(unicode_errors="surrogatepass").pack
    for alias, canonical in state.aliases.items():
        yield b"a" + alias, canonical
    for identity in state.erased:
        yield b"e" + identity, b""
    for identity in state.quarantined:
        yield b"q" + identity, b""
    for identity, accepted in state.claims.items():
        yield b"c" + identity, b"\x01" if accepted else b"\x00"
    for identity, memory in state.memories.items():
        yield b"m" + identity, pack(memory)
    for key, shown in state.shown.items():
        yield b"s" + key, pack(shown)
    for project, root in state.projects.items():
        yield b"p" + project.encode("utf-8", "surrogatepass"), root.encode("utf-8", "surrogatepass")


def row_hash(key: bytes, value: bytes) -> int:
    """Return the number by which one row enters the sum of the state digest."""
    raw = len(key).to_bytes(4, "big") + key + value
    return int.from_bytes(blake3(raw, derive_key_context=_ROW_CONTEXT).digest(), "big")


def finish(count: int, total: int) -> bytes:
    """Return the state digest of ``count`` rows whose hashes sum up to ``total`` (taken mod 2^256)."""
    raw = f"{FOLD_VERSION} {count} {total % _SUM_MODULUS:x}".encode("ascii")
    return blake3(raw, derive_key_context=_DIGEST_CONTEXT).digest()


def digest(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the state digest of these rows."""
    count = total = 0
    for key, value in pairs:
        count += 1
        total += row_hash(key, value)
    return finish(count, total)
