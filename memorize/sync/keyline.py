"""One line of text that holds all keys of a device: what ``memorize key export`` prints and ``key import`` reads."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgpack
from blake3 import blake3

from memorize.errors import BadKeyLine
from memorize.ids import RANDOM_BYTES
from memorize.log.codec import UNREADABLE
from memorize.sync.ring import (
    GENERATION_MAX,
    KEY_ID_BYTES,
    SECRET_BYTES,
    Offer,
    ScopeKey,
    StoreKey,
    is_project,
    key_id,
)

PREFIX: Final = "memorize-key-1:"
LINE_BYTES_MAX: Final = 64 * 1024
_CHECK_BYTES: Final = 8
_CHECK_CONTEXT: Final = "memorize 2026 key line v1"
_BROKEN: Final = (*UNREADABLE, KeyError)


def export_line(given: Offer) -> str:
    """Return the line, without a newline at its end."""
    packed = pack_offer(given)
    return PREFIX + base64.urlsafe_b64encode(packed + _check(packed)).decode("ascii").rstrip("=")


def import_line(text: str | bytes) -> Offer:
    """Return what a line gives; white space around it does not matter. Raises BadKeyLine."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > LINE_BYTES_MAX:
        raise BadKeyLine(detail="it is too long")
    lines = raw.split()
    if not lines:
        raise BadKeyLine(detail="nothing was given")
    if len(lines) > 1:
        raise BadKeyLine(detail="it is more than one line, or was broken by white space")
    prefix = PREFIX.encode()
    if not lines[0].startswith(prefix):
        raise BadKeyLine(detail=f"it does not begin with {PREFIX}")
    coded = lines[0][len(prefix) :]
    try:
        data = base64.b64decode(coded + b"=" * (-len(coded) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadKeyLine(detail="a character of it was changed") from error
    packed, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
    if check != _check(packed):
        raise BadKeyLine(detail="a part is missing or was changed")
    found = unpack_offer(packed)
    if found is None:
        raise BadKeyLine(detail="a newer memorize made it")
    return found


def pack_offer(given: Offer) -> bytes:
    """Return the keys as bytes: they hold secrets."""
    packed: bytes = msgpack.packb(
        {
            "store": given.store,
            "keys": [[key.store, key.generation, key.secret] for key in given.keys],
            "scopes": [[bytes.fromhex(key.project), key.generation, key.cause, *_named(key)] for key in given.scopes],
            "left": sorted(given.left),
            "gone": sorted(given.gone),
        }
    )
    return packed


def unpack_offer(packed: bytes) -> Offer | None:
    """Return what the bytes give, None when they are not in order. Fields that are not known are left alone."""
    try:
        fields: Any = msgpack.unpackb(packed)
        keys = tuple(_store_key(*row[:3]) for row in fields["keys"])
        scopes = tuple(_scope_key(*row[:5]) for row in fields["scopes"])
        left, gone = _ids(fields["left"], RANDOM_BYTES), _ids(fields["gone"], KEY_ID_BYTES)
        store = _sized(fields["store"], RANDOM_BYTES)
    except _BROKEN:
        return None
    found = Offer(store, keys, scopes, left - {store}, gone)
    return found if any(key.store == store for key in keys) else None


def _named(key: ScopeKey) -> list[bytes]:
    return [key.secret] if key.secret else [b"", key.id]


def _store_key(store: bytes, generation: int, secret: bytes) -> StoreKey:
    return StoreKey(key_id(_sized(secret, SECRET_BYTES)), secret, _sized(store, RANDOM_BYTES), _generation(generation))


def _scope_key(project: bytes, generation: int, cause: bytes, secret: bytes, name: bytes = b"") -> ScopeKey:
    text = project.hex()
    if not is_project(text) or type(cause) is not bytes or len(cause) > SECRET_BYTES:
        raise ValueError("not a scope key")
    identity = key_id(_sized(secret, SECRET_BYTES)) if secret else _sized(name, KEY_ID_BYTES)
    return ScopeKey(identity, secret, text, _generation(generation), cause)


def _generation(value: object) -> int:
    if type(value) is not int or not 0 <= value <= GENERATION_MAX:
        raise ValueError("not a generation")
    return value


def _sized(value: object, size: int) -> bytes:
    if type(value) is not bytes or len(value) != size:
        raise ValueError("wrong size")
    return value


def _ids(values: list[bytes], size: int) -> frozenset[bytes]:
    return frozenset(_sized(value, size) for value in values)


def _check(packed: bytes) -> bytes:
    return blake3(packed, derive_key_context=_CHECK_CONTEXT).digest()[:_CHECK_BYTES]
