"""Keys and the log together: joining a store, following another device into one, scopes of projects."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

from memorize.bootstrap.store import Store
from memorize.errors import Deferred, NotWritten
from memorize.log.identity import enter_store, peek
from memorize.model import STORE_JOINED, Draft
from memorize.sync import keys
from memorize.sync.keys import Keyring, Offer


class Taken(NamedTuple):
    """What became of an offer. ``outcome``: see ``sync.ring``; ``past``: this device had events when it joined."""

    before: Keyring
    after: Keyring
    outcome: str
    past: bool


def keyring(store: Store, *, bare: bool = False) -> Keyring:
    """Return the keys of this device, made with its identity; ``bare`` as in ``keys.load``.

    Raises CannotRead, KeysDamaged.
    """
    store.identity  # noqa: B018 - made at the first use, and the first key with it
    return keys.load(store.home, store.files, bare=bare)


def take(store: Store, given: Offer) -> Taken:
    """Take what another device of this person gives, and join its store when it is another one. Repeatable.

    Raises Busy, CannotRead, CannotWrite, KeysDamaged, NotKept.
    """
    store.identity  # noqa: B018 - see above
    told: list[tuple[Keyring, str]] = []

    def decide(ring: Keyring) -> Keyring:
        after, outcome = keys.merged(ring, given, keys.new_salt())
        told.append((ring, outcome))
        return after

    after = keys.change(store.home, store.files, decide, bare=True)
    before, outcome = told[0]
    return Taken(before, after, outcome, follow(store, before, after))


def update(store: Store, decide: Callable[[Keyring], Keyring], *, bare: bool = False) -> Keyring:
    """Change the keys, and follow into another store when the change says so. Raises as ``take`` does."""
    before = keyring(store, bare=bare)
    after = keys.change(store.home, store.files, decide, bare=bare)
    follow(store, before, after)
    return after


def follow(store: Store, before: Keyring, after: Keyring) -> bool:
    """Have the log write to the store of the keys; return whether there was a past to be told of.

    The event is in the spool before the identity changes, so a crash between both is mended by doing it again.
    """
    found = peek(store.home, store.files)
    if found is None or found.store == after.store:
        return False
    past = _has_past(store)
    if past:
        store.put([Draft(STORE_JOINED, {"store": after.store, "stores": sorted(before.stores)})], strict=True)
    store.renamed(enter_store(store.home, store.files, store.clock, after.store))
    with contextlib.suppress(Deferred, NotWritten):
        store.settle([])
    return past


def scope_project(store: Store, ring: Keyring, project: str) -> str:
    """Return the key under which the scope of a project is kept: its own, or one that is joined with it."""
    held = {key.project for key in ring.scopes}
    family = store.reader().family(project) if held and project not in held else (project,)
    return next((key for key in sorted(family) if key in held), project)


def renew_scopes(store: Store, projects: Iterable[str], cause: bytes) -> Keyring:
    """Give each of these projects that has a scope key a new one: on the device that asks for an erasure.

    ``cause``: id of the erasure. The old key is still readable until ``spend_scopes``.
    """
    chosen = sorted(set(projects))

    def decide(ring: Keyring) -> Keyring:
        for project in chosen:
            current = ring.scope_for(project)
            if current is not None and current.cause != cause:
                ring = keys.renew_scope(ring, project, keys.new_secret(), keys.new_salt(), cause)
        return ring

    return update(store, decide)


def spend_scopes(store: Store, projects: Iterable[str], cause: bytes) -> Keyring:
    """Destroy the scope keys of projects from before an erasure: on each device, once it has acknowledged it."""
    chosen = sorted(set(projects))
    return update(store, lambda ring: keys.spend(ring, chosen, cause))


def _has_past(store: Store) -> bool:
    """Tell whether there is any event, of what lies in the spool too."""
    return store.reader().counts().events > 0
