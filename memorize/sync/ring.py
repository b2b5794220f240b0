"""The keys of a device as values: what is current, what is readable, how one key gives the next one. No I/O, no chance.

A *store key* seals packs and proves a peer. A *scope key* seals the bodies of one project inside packs; it lies neither
in the log nor in a pack, so destroying it reaches copies that nobody can delete. A key follows another one by
*generation*; of two that were made at once the one with the greater id is current, on every device alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgpack
from blake3 import blake3

from memorize.ids import RANDOM_BYTES

SECRET_BYTES: Final = 32
KEY_ID_BYTES: Final = 16
SALT_BYTES: Final = 24
GENERATION_MAX: Final = 2**31
PROJECT_CHARS: Final = 32
# Rings grow by rotations alone; whoever sends more is not telling of keys.
WRAPPED_MAX: Final = 1_000

STORE: Final = "store"
SCOPE: Final = "scope"

_ID_CONTEXT: Final = "memorize 2026 key id v1"
_WRAP_CONTEXT: Final = "memorize 2026 wrapped key v1"
_NONCE: Final = bytes(12)  # each wrapping has a key of its own, made of random salt


class StoreKey(NamedTuple):
    """A key of a store. ``id`` tells which one it is and nothing of the secret."""

    id: bytes
    secret: bytes
    store: bytes
    generation: int = 0

    @property
    def rank(self) -> tuple[int, bytes]:
        """By this the current key is chosen."""
        return (self.generation, self.id)


class ScopeKey(NamedTuple):
    """A key of a project; an empty secret says that the project travels without one again.

    ``cause``: the erasure after which it was made, empty for one made by hand.
    """

    id: bytes
    secret: bytes
    project: str
    generation: int = 0
    cause: bytes = b""

    @property
    def rank(self) -> tuple[int, bytes]:
        """By this the current key is chosen."""
        return (self.generation, self.id)


class Wrapped(NamedTuple):
    """A key that only the holder of an older one can take out, so it may lie in a folder that others read.

    ``purpose`` STORE: of ``store``, under a key of the same store or of one that was left for it. SCOPE: of
    ``project``. ``salt`` is random; all fields but ``sealed`` are authenticated.
    """

    purpose: str
    new: bytes
    old: bytes
    store: bytes
    project: str
    generation: int
    cause: bytes
    salt: bytes
    sealed: bytes


class Keyring(NamedTuple):
    """All keys of a device. ``store``: the store that it writes to; ``left``: those that it or another one left for it.

    ``wrapped``: what packs carry, so that other devices follow. ``spent``: scope keys that are destroyed as soon as
    there is a newer one; ``gone``: ids of those that are destroyed already and are never taken back.
    """

    store: bytes
    keys: tuple[StoreKey, ...]
    scopes: tuple[ScopeKey, ...] = ()
    left: frozenset[bytes] = frozenset()
    wrapped: tuple[Wrapped, ...] = ()
    spent: frozenset[bytes] = frozenset()
    gone: frozenset[bytes] = frozenset()

    @property
    def current(self) -> StoreKey:
        """The key under which this device publishes and by which it proves itself."""
        return max((key for key in self.keys if key.store == self.store), key=lambda key: key.rank)

    @property
    def older(self) -> tuple[StoreKey, ...]:
        """All other store keys, those of joined stores too: readable, never used for anything new."""
        current = self.current
        return tuple(key for key in self.keys if key.id != current.id)

    @property
    def stores(self) -> frozenset[bytes]:
        """The joined stores: those that a key is held of."""
        return frozenset(key.store for key in self.keys)

    def find(self, identity: bytes) -> bytes | None:
        """Return the secret of a store key, None when it is not held."""
        return next((key.secret for key in self.keys if key.id == identity), None)

    def scope_for(self, project: str) -> ScopeKey | None:
        """Return the key under which bodies of a project travel, None when they travel without one."""
        current = self.scope_state(project)
        return current if current is not None and current.secret else None

    def scope_state(self, project: str) -> ScopeKey | None:
        """Return what holds for a project: its current key, one with an empty secret, or None for never set."""
        return max((key for key in self.scopes if key.project == project), key=lambda key: key.rank, default=None)

    def scope_secret(self, identity: bytes) -> bytes | None:
        """Return the secret of a scope key, None when it is not held (any more)."""
        return next((key.secret for key in self.scopes if key.id == identity and key.secret), None)


def key_id(secret: bytes) -> bytes:
    """Return the name of a key: 16 bytes from which the key cannot be found."""
    return blake3(secret, derive_key_context=_ID_CONTEXT).digest()[:KEY_ID_BYTES]


# -- one key under another ----------------------------------------------------------------------------------------


def wrap(new: StoreKey | ScopeKey, old: StoreKey | ScopeKey, salt: bytes) -> Wrapped:
    """Return a key wrapped under an older one; ``salt``: 24 random bytes, never used twice."""
    blank = _blank(new, old.id, salt)
    return blank._replace(sealed=_cipher(old.secret, salt).encrypt(_NONCE, new.secret, _bound(blank)))


def unwrap(wrapped: Wrapped, old_secret: bytes) -> bytes | None:
    """Return the wrapped secret, None when this is not the key, or anything in the record was changed."""
    from cryptography.exceptions import InvalidTag

    try:
        secret: bytes = _cipher(old_secret, wrapped.salt).decrypt(_NONCE, wrapped.sealed, _bound(wrapped))
    except (InvalidTag, ValueError):
        return None
    if wrapped.purpose == SCOPE and not secret:
        return secret
    return secret if len(secret) == SECRET_BYTES and key_id(secret) == wrapped.new else None


def wrapped_row(wrapped: Wrapped) -> list[Any]:
    """Return the record as it stands in packs and files (msgpack)."""
    return list(wrapped)


def wrapped_from(row: object) -> Wrapped | None:
    """Return the record that a row holds, None for anything else: it comes from others."""
    if not isinstance(row, list | tuple) or len(row) != len(Wrapped._fields):
        return None
    purpose, new, old, store, project, generation, cause, salt, sealed = row
    sized = ((new, KEY_ID_BYTES), (old, KEY_ID_BYTES), (salt, SALT_BYTES))
    if any(type(value) is not bytes or len(value) != size for value, size in sized):
        return None
    if type(generation) is not int or not 0 <= generation <= GENERATION_MAX:
        return None
    if type(cause) is not bytes or len(cause) > SECRET_BYTES or type(sealed) is not bytes or len(sealed) > 64:
        return None
    if type(store) is not bytes or type(project) is not str:
        return None
    named = (purpose == STORE and len(store) == RANDOM_BYTES and not project) or (
        purpose == SCOPE and not store and is_project(project)
    )
    return Wrapped(*row) if named else None


def is_project(text: object) -> bool:
    """Tell whether a text has the form of a project's key."""
    return type(text) is str and len(text) == PROJECT_CHARS and all(one in "0123456789abcdef" for one in text)


def _blank(new: StoreKey | ScopeKey, old: bytes, salt: bytes) -> Wrapped:
    if isinstance(new, StoreKey):
        return Wrapped(STORE, new.id, old, new.store, "", new.generation, b"", salt, b"")
    return Wrapped(SCOPE, new.id, old, b"", new.project, new.generation, new.cause, salt, b"")


def _bound(wrapped: Wrapped) -> bytes:
    packed: bytes = msgpack.packb([1, *wrapped[:-1]])
    return packed


def _cipher(secret: bytes, salt: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # 20 ms that most verbs need not pay

    return ChaCha20Poly1305(blake3(secret + salt, derive_key_context=_WRAP_CONTEXT).digest())


# -- new keys -----------------------------------------------------------------------------------------------------


def rotate(ring: Keyring, secret: bytes, salt: bytes, *, by_hand: bool = False) -> Keyring:
    """Return the ring with a new current store key. ``by_hand``: it is not wrapped, so nobody follows by itself.

    A ring that has lost the key of its store gets one to begin with again.
    """
    if ring.store not in ring.stores:
        return ring._replace(keys=(*ring.keys, StoreKey(key_id(secret), secret, ring.store, 0)))
    old = ring.current
    new = StoreKey(key_id(secret), secret, ring.store, old.generation + 1)
    ring = ring._replace(keys=(*ring.keys, new))
    return ring if by_hand else _carry(ring, [wrap(new, old, salt)])


def renew_scope(ring: Keyring, project: str, secret: bytes, salt: bytes, cause: bytes = b"") -> Keyring:
    """Return the ring with a new current key of a project, wrapped under the one before when there is one.

    An empty ``secret`` switches the scope off. Raises ValueError for a text that is no project's key.
    """
    if not is_project(project):
        raise ValueError("not a project's key")
    last = ring.scope_state(project)
    held = [key for key in ring.scopes if key.project == project and key.secret]
    # "Off" is no key, but other devices follow it like one; its name only has to be new.
    name = key_id(secret) if secret else key_id(salt)
    new = ScopeKey(name, secret, project, last.generation + 1 if last else 0, cause)
    ring = ring._replace(scopes=(*ring.scopes, new))
    if held:
        ring = _carry(ring, [wrap(new, max(held, key=lambda key: key.rank), salt)])
    return _settled(ring)


def spend(ring: Keyring, projects: Iterable[str], cause: bytes) -> Keyring:
    """Return the ring after this device has acknowledged an erasure: the projects' keys from before it are destroyed.

    One that is still current is destroyed as soon as the newer one has come from the device that asked.
    """
    chosen = frozenset(projects)
    spent = set(ring.spent)
    for project in chosen:
        current = ring.scope_state(project)
        for key in ring.scopes:
            if key.project == project and not (key is current and cause and key.cause == cause):
                spent.add(key.id)
    return _settled(ring._replace(spent=frozenset(spent)))


def adopt(ring: Keyring, wrapped: Iterable[Wrapped]) -> Keyring:
    """Return the ring with every key that can be taken out with one that is held; the same ring when there is none.

    A key of another store, wrapped under one of this device's store, says that the other device has left this store
    for that one: then ``store`` of the result differs, and the caller has the device follow (``log.identity``).
    """
    known = {(one.new, one.old) for one in ring.wrapped}
    held = {key.id for key in ring.keys} | {key.id for key in ring.scopes} | ring.gone
    waiting = [one for one in wrapped if (one.new, one.old) not in known or one.new not in held][:WRAPPED_MAX]
    while waiting:
        taken = [one for one in waiting if _old_secret(ring, one) is not None]
        if not taken:
            break
        waiting = [one for one in waiting if one not in taken]
        for one in taken:
            ring = _take(ring, one)
    return ring


def _old_secret(ring: Keyring, wrapped: Wrapped) -> bytes | None:
    if wrapped.purpose == SCOPE and (secret := ring.scope_secret(wrapped.old)) is not None:
        return secret
    return ring.find(wrapped.old)


def _take(ring: Keyring, wrapped: Wrapped) -> Keyring:
    secret = unwrap(wrapped, _old_secret(ring, wrapped) or b"")
    if secret is None or wrapped.new in ring.gone:
        return ring
    if wrapped.purpose == SCOPE:
        # Under a store key it came from a peer, and no folder may ever hold it so.
        ring = ring if ring.find(wrapped.old) is not None else _carry(ring, [wrapped])
        key = ScopeKey(wrapped.new, secret, wrapped.project, wrapped.generation, wrapped.cause)
        known = any(one.id == key.id for one in ring.scopes)
        return _settled(_linked(ring if known else ring._replace(scopes=(*ring.scopes, key)), key.project))
    ring = _carry(_with_keys(ring, [StoreKey(wrapped.new, secret, wrapped.store, wrapped.generation)]), [wrapped])
    of = next(key.store for key in ring.keys if key.id == wrapped.old)
    return ring if of == wrapped.store else entered(ring, wrapped.store, frozenset({of}))


def _linked(ring: Keyring, project: str) -> Keyring:
    """Wrap a project's key under one that was made at the same time elsewhere: who holds only that one follows."""
    new = ring.scope_for(project)
    twins = [key for key in ring.scopes if new and key.project == project and key.secret and key != new]
    twins = [key for key in twins if new and key.generation == new.generation]
    # The same two keys give the same record on every device, so this salt repeats nothing but itself.
    return _carry(ring, [wrap(new, key, blake3(new.id + key.id).digest()[:SALT_BYTES]) for key in twins if new])


# -- what another device gives ------------------------------------------------------------------------------------


class Offer(NamedTuple):
    """What a device gives to another one of the same person: by a key line, by pairing or over a peer session."""

    store: bytes
    keys: tuple[StoreKey, ...]
    scopes: tuple[ScopeKey, ...] = ()
    left: frozenset[bytes] = frozenset()
    gone: frozenset[bytes] = frozenset()


SAME: Final = "same"  # this store; whatever was new is taken
JOINED: Final = "joined"  # this device now writes to the other store
SETTLED: Final = "settled"  # each had joined the other's; the one with the least id holds for both
LEFT: Final = "left"  # this device has already gone on from that store to another one


def offer(ring: Keyring) -> Offer:
    """Return everything that a device which is to share all of this one's memory needs."""
    return Offer(ring.store, ring.keys, ring.scopes, ring.left, ring.gone)


def merged(ring: Keyring, given: Offer, salt: bytes) -> tuple[Keyring, str]:
    """Return the ring with what was given, and one of SAME, JOINED, SETTLED, LEFT.

    Joining keeps all keys, so that what was published under them stays readable, and wraps the key of the store that
    is joined under the own one: other devices of the own store follow.
    """
    before = ring
    ring = _with_keys(ring, given.keys)
    known = {key.id for key in ring.scopes} | ring.gone
    ring = ring._replace(scopes=(*ring.scopes, *(key for key in given.scopes if key.id not in known)))
    ring = destroyed(ring, given.gone)
    after = entered(ring, given.store, given.left)
    crossed = given.store in before.left and before.store in given.left
    if after.store != before.store and before.store in before.stores:
        after = _carry(after, [wrap(after.current, before.current, salt)])
    if given.store == before.store:
        return after, SAME
    if crossed:
        return after, SETTLED
    return after, JOINED if after.store == given.store else LEFT


def destroyed(ring: Keyring, gone: frozenset[bytes]) -> Keyring:
    """Return the ring after hearing that others have destroyed these scope keys."""
    return _settled(ring._replace(spent=ring.spent | (gone - ring.gone)))


def entered(ring: Keyring, store: bytes, left: frozenset[bytes]) -> Keyring:
    """Return the ring after meeting somebody who has left these stores for ``store``.

    A store that this device has left is not entered again, unless the other one left this device's store for it: each
    joined the other. Then the least id is chosen, which both sides find alone.
    """
    chosen = ring.store
    if store not in ring.left:
        chosen = store
    elif ring.store in left:
        chosen = min(store, ring.store)
    gone = (ring.left | left | {ring.store, store}) - {chosen} if chosen != ring.store or store == chosen else ring.left
    return ring._replace(store=chosen, left=frozenset(gone) - {chosen})


# -- order in the ring --------------------------------------------------------------------------------------------


def _with_keys(ring: Keyring, keys: Iterable[StoreKey]) -> Keyring:
    known = {key.id: key for key in ring.keys}
    for key in keys:
        if key.id not in known or known[key.id].generation < key.generation:
            known[key.id] = key
    return ring._replace(keys=tuple(known.values()))


def _carry(ring: Keyring, wrapped: Iterable[Wrapped]) -> Keyring:
    known = {(one.new, one.old): one for one in ring.wrapped}
    for one in wrapped:
        known.setdefault((one.new, one.old), one)
    return ring._replace(wrapped=tuple(sorted(known.values())))


def _settled(ring: Keyring) -> Keyring:
    """Destroy what is spent and has a successor; what leads to a destroyed key is not carried any more."""
    current = {ring.scope_state(key.project) for key in ring.scopes}
    doomed = {key.id for key in ring.scopes if key.id in ring.spent and key not in current}
    if not doomed:
        return ring
    return ring._replace(
        scopes=tuple(key for key in ring.scopes if key.id not in doomed),
        wrapped=tuple(one for one in ring.wrapped if one.new not in doomed),
        spent=ring.spent - doomed,
        gone=ring.gone | doomed,
    )
