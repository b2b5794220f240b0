"""Names of things: event ids, body commitments, random ids, and their short forms on screen."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from blake3 import blake3

ID_BYTES: Final = 32
RANDOM_BYTES: Final = 16
SHORT_HEX_MIN: Final = 6
_EVENT_CONTEXT: Final = "memorize 2026 event id v1"
_PROJECT_CONTEXT: Final = "memorize 2026 project key v1"


def event_id(header: bytes) -> bytes:
    """Return the id of the event with these raw header bytes: blake3 in derive-key mode, 32 bytes."""
    return blake3(header, derive_key_context=_EVENT_CONTEXT).digest()


def commitment(body: bytes) -> bytes:
    """Return the 32 bytes by which a header commits to a stored body (salt and payload, as stored)."""
    return blake3(body).digest()


def project_key(kind: str, value: str) -> str:
    """Return the key of the project with this identity, 32 hex digits (``kind``: marker, remote, root, path)."""
    raw = f"{kind}\0{value}".encode("utf-8", "surrogatepass")
    return blake3(raw, derive_key_context=_PROJECT_CONTEXT).hexdigest()[:32]


def random_id() -> bytes:
    """Return 16 random bytes: a nonce, a writer, a replica, a store."""
    return os.urandom(RANDOM_BYTES)


def short(identity: bytes, others: Iterable[bytes] = ()) -> str:
    """Return the shortest prefix of at least six hex digits that fits none of the others."""
    full = identity.hex()
    rivals = [other.hex() for other in others if other != identity]
    size = SHORT_HEX_MIN
    while size < len(full) and any(rival.startswith(full[:size]) for rival in rivals):
        size += 1
    return full[:size]
