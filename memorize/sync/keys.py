"""The keys of a state directory on disk: ``keys/<store hex>.key`` and ``keys/ring.json``, all of them 0600.

The ring holds everything; the key files repeat the current secret of each joined store, so that losing the ring costs
history at most. Secrets never enter the log, a message or an argument of a program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

from memorize.errors import CannotRead, CannotWrite, KeyMissing, KeysDamaged
from memorize.ids import RANDOM_BYTES
from memorize.log.files import Files, replace_file
from memorize.log.identity import KEY_SUFFIX, key_path, make_dirs, peek
from memorize.paths import Home
from memorize.sync.keyline import export_line, import_line, pack_offer, unpack_offer
from memorize.sync.ring import (
    KEY_ID_BYTES,
    SALT_BYTES,
    SECRET_BYTES,
    Keyring,
    Offer,
    ScopeKey,
    StoreKey,
    Wrapped,
    adopt,
    key_id,
    merged,
    offer,
    renew_scope,
    rotate,
    spend,
    unwrap,
    wrap,
    wrapped_from,
    wrapped_row,
)

__all__ = [
    "Keyring",
    "Offer",
    "ScopeKey",
    "StoreKey",
    "Wrapped",
    "adopt",
    "change",
    "export_line",
    "import_line",
    "key_id",
    "load",
    "merged",
    "new_salt",
    "new_secret",
    "offer",
    "renew_scope",
    "rotate",
    "save",
    "spend",
    "unwrap",
    "wrap",
    "wrapped_from",
    "wrapped_row",
]

RING: Final = "ring.json"
_FORMAT: Final = 1
_RING_BYTES_MAX: Final = 16 * 1024 * 1024
_LOCK_WAIT_S: Final = 10.0


def new_secret() -> bytes:
    """Return 32 random bytes."""
    return os.urandom(SECRET_BYTES)


def new_salt() -> bytes:
    """Return 24 random bytes: no counter, which a restored state directory would repeat."""
    return os.urandom(SALT_BYTES)


def load(home: Home, files: Files, *, bare: bool = False) -> Keyring:
    """Return the keys of a state directory that has an identity. Raises CannotRead, KeysDamaged.

    Without a key of its store it is KeyMissing, unless ``bare``: for who is about to give one.
    """
    try:
        identity = peek(home, files)
        names = _names(home, files)
        loose = [_key_file(home, files, name) for name in sorted(names) if name.endswith(KEY_SUFFIX)]
        raw = files.read(str(home.keys / RING), _RING_BYTES_MAX) if RING in names else b""
    except OSError as error:
        raise CannotRead(path=home.keys, detail=error.strerror or str(error)) from error
    if identity is None:
        raise CannotRead(path=home.identity, detail="there is no identity yet, or it is damaged")
    ring = _parse(raw, identity.store, str(home.keys / RING)) if raw else Keyring(identity.store, ())
    known = {key.id for key in ring.keys}
    ring = ring._replace(keys=(*ring.keys, *(key for key in loose if key is not None and key.id not in known)))
    if not bare and ring.store not in ring.stores:
        raise KeyMissing(path=home.keys)
    return ring


def save(home: Home, files: Files, ring: Keyring) -> None:
    """Write the ring, then the key files, each beside, synced and renamed. Raises CannotWrite."""
    try:
        make_dirs(home, files)
        replace_file(files, str(home.keys / RING), _dump(ring))
        for store in sorted(ring.stores):
            secret = ring._replace(store=store).current.secret
            path = str(key_path(home, store))
            if os.path.basename(path) in _names(home, files) and files.read(path, 64) == secret:  # noqa: PTH119
                continue
            replace_file(files, path, secret)
    except OSError as error:
        raise CannotWrite(path=home.keys, detail=error.strerror or str(error)) from error


def change(home: Home, files: Files, decide: Callable[[Keyring], Keyring], *, bare: bool = False) -> Keyring:
    """Load, let ``decide`` make another ring of it, and save that when it differs; one process at a time.

    The store of the result need not be that of the identity; the caller has the identity follow
    (``bootstrap.keeping``). Raises Busy, CannotRead, CannotWrite, KeysDamaged.
    """
    with files.lock(str(home.locks / "keys"), _LOCK_WAIT_S):
        ring = load(home, files, bare=bare)
        after = decide(ring)
        if after != ring:
            save(home, files, after)
        return after


def _names(home: Home, files: Files) -> list[str]:
    try:
        return files.names(str(home.keys))
    except FileNotFoundError:  # a backup may leave out what is secret
        return []


def _key_file(home: Home, files: Files, name: str) -> StoreKey | None:
    try:
        store = bytes.fromhex(name.removesuffix(KEY_SUFFIX))
    except ValueError:
        return None
    secret = files.read(str(home.keys / name), SECRET_BYTES + 1)
    sound = len(store) == RANDOM_BYTES and len(secret) == SECRET_BYTES
    return StoreKey(key_id(secret), secret, store) if sound else None


def _dump(ring: Keyring) -> bytes:
    fields = {
        "format": _FORMAT,
        "offer": pack_offer(offer(ring)).hex(),
        "wrapped": [[_shown(value) for value in wrapped_row(one)] for one in ring.wrapped],
        "spent": sorted(one.hex() for one in ring.spent),
    }
    return (json.dumps(fields, indent=1) + "\n").encode()


def _shown(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _parse(raw: bytes, store: bytes, path: str) -> Keyring:
    try:
        fields: Any = json.loads(raw)
        given = unpack_offer(bytes.fromhex(fields["offer"]))
        rows = [[bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in row] for row in fields["wrapped"]]
        spent = frozenset(bytes.fromhex(one) for one in fields["spent"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise KeysDamaged(path=path, detail=str(error)) from error
    if given is None or any(len(one) != KEY_ID_BYTES for one in spent):
        raise KeysDamaged(path=path, detail="it does not hold what it should")
    wrapped = tuple(one for one in map(wrapped_from, rows) if one is not None)
    return Keyring(store, given.keys, given.scopes, given.left - {store}, wrapped, spent, given.gone)
