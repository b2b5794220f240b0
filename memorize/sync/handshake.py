"""How two peers come to trust each other: versions and capabilities in common, and proof of a store key on both sides.

Each side says HELLO with a challenge; a proof is a keyed hash over both greetings and the role of the one who proves,
so it can be neither replayed nor reflected. No key and nothing from which a key could be found is ever sent.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgpack
from blake3 import blake3

from memorize.ids import ID_BYTES, RANDOM_BYTES
from memorize.log.codec import UNREADABLE
from memorize.sync.wire import VERSION, Garbled

CHALLENGE_BYTES: Final = 32
# Other stores and older keys that a device still answers to.
DOORS_MAX: Final = 64
GIFT_BYTES_MAX: Final = 32 * 1024

PACKS: Final = "zstd"
STAYS: Final = "live"
CAPABILITIES: Final = frozenset({PACKS, STAYS})

_NAME_CONTEXT: Final = "memorize 2026 peer key id v1"
_PROOF_CONTEXT: Final = "memorize 2026 peer proof v1"
_NAME_CHARS_MAX: Final = 64

# Keys of the greeting. Add, never change the meaning; others are skipped.
_VERSIONS: Final = 0
_CAPABILITIES: Final = 1
_DOORS: Final = 2
_CHALLENGE: Final = 3
_GIFT: Final = 4


class Role(Enum):
    """Who began."""

    INITIATOR = b"initiator"
    RESPONDER = b"responder"


class Door(NamedTuple):
    """A store, and a key of it by which another device may prove that it belongs to the same person."""

    store: bytes
    secret: bytes

    @property
    def name(self) -> tuple[bytes, bytes]:
        """What is told of it: the store, and an id of the key that tells nothing of it."""
        return (self.store, blake3(self.secret, derive_key_context=_NAME_CONTEXT).digest()[:RANDOM_BYTES])


class Greeting(NamedTuple):
    """What one side says first. ``raw`` are its exact bytes, over which both prove."""

    versions: tuple[int, ...]
    capabilities: frozenset[str]
    doors: tuple[tuple[bytes, bytes], ...]
    challenge: bytes
    gift: bytes
    raw: bytes


class Refused(Exception):  # noqa: N818 - called for what happened
    """The other side is not one to exchange events with: ``code`` for programs, the text for people."""

    def __init__(self, code: str, text: str) -> None:
        """Keep both."""
        super().__init__(text)
        self.code = code
        self.text = text


def greeting(doors: Sequence[Door], capabilities: frozenset[str], challenge: bytes, gift: bytes = b"") -> Greeting:
    """Return what to say first. ``doors`` in the order in which they are wanted; ``gift``: bytes for the other side."""
    names = tuple(door.name for door in doors[:DOORS_MAX])
    fields = {
        _VERSIONS: [VERSION],
        _CAPABILITIES: sorted(capabilities),
        _DOORS: names,
        _CHALLENGE: challenge,
        _GIFT: gift if len(gift) <= GIFT_BYTES_MAX else b"",
    }
    raw: bytes = msgpack.packb(fields)
    return Greeting((VERSION,), capabilities, names, challenge, gift, raw)


def read_greeting(raw: bytes) -> Greeting:
    """Return the greeting in these bytes. Raises Garbled."""
    try:
        fields = msgpack.unpackb(raw, raw=False, strict_map_key=False)
    except UNREADABLE as error:
        raise Garbled(f"a greeting: {error}") from None
    if type(fields) is not dict:
        raise Garbled("a greeting that is no map")
    wanted: tuple[Any, ...] = tuple(fields.get(key) for key in (_VERSIONS, _CAPABILITIES, _DOORS, _CHALLENGE))
    versions, names, doors, challenge = wanted
    gift = fields.get(_GIFT, b"")
    sound = (
        _are(versions, int)
        and _are(names, str)
        and all(len(name) <= _NAME_CHARS_MAX for name in names)
        and type(doors) is list
        and len(doors) <= DOORS_MAX
        and all(_are(door, bytes) and [len(part) for part in door] == [RANDOM_BYTES] * 2 for door in doors)
        and type(challenge) is type(gift) is bytes
        and len(challenge) == CHALLENGE_BYTES
        and len(gift) <= GIFT_BYTES_MAX
    )
    if not sound:
        raise Garbled("a greeting with other fields than it should have")
    pairs = tuple((store, name) for store, name in doors)
    return Greeting(tuple(versions), frozenset(names), pairs, challenge, gift, raw)


def _are(value: Any, kind: type) -> bool:
    return type(value) is list and all(type(item) is kind for item in value)


def agree(mine: Sequence[Door], first: Greeting, second: Greeting) -> Door:
    """Return the door through which both go: the first one that the initiator names and the responder has, too.

    ``first`` is the initiator's greeting. Raises Refused.
    """
    if not set(first.versions) & set(second.versions):
        raise Refused("version", "it speaks no version of the protocol that this one speaks")
    shared = next((name for name in first.doors if name in second.doors), None)
    if shared is None:
        same_store = {store for store, _ in first.doors} & {store for store, _ in second.doors}
        if same_store:
            raise Refused("key", "it has another key of this store")
        raise Refused("store", "it holds the memory of another store, and has no key of this one")
    for door in mine:
        if door.name == shared:
            return door
    raise Refused("key", "it chose a key that this side did not name")


def prove(door: Door, role: Role, first: Greeting, second: Greeting) -> bytes:
    """Return the proof that the one in this role has the key."""
    key = blake3(door.secret, derive_key_context=_PROOF_CONTEXT).digest()
    told = b"".join(len(raw).to_bytes(4, "big") + raw for raw in (first.raw, second.raw))
    proof: bytes = blake3(role.value + b"\0" + told, key=key).digest()
    assert len(proof) == ID_BYTES
    return proof


def is_proof(given: bytes, door: Door, role: Role, first: Greeting, second: Greeting) -> bool:
    """Tell whether a proof is the right one."""
    return hmac.compare_digest(given, prove(door, role, first, second))
