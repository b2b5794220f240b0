"""Under which project's key the body of an event travels. ``sync`` asks; only here is it known what a body says."""

from __future__ import annotations

from typing import Final

from memorize.bootstrap.store import Store
from memorize.index.scoped import projects_of
from memorize.log.codec import Bad, decode
from memorize.sync.keys import Keyring
from memorize.sync.port import Envelope

_FIELDS: Final = ("project", "key")


class Scoping:
    """Answers for one round; a link between projects or a new key is seen by the next one."""

    def __init__(self, store: Store, ring: Keyring) -> None:
        """Nothing is read while no project has a key of its own."""
        self._store = store
        self._ring = ring
        self._projects = sorted({key.project for key in ring.scopes})
        self._known: dict[str, tuple[bytes, bytes] | None] = {"": None}

    def scope_of(self, envelope: Envelope) -> tuple[bytes, bytes] | None:
        """Return id and secret of the key that seals this body inside a pack, None when it needs none.

        What names no project itself (a retraction with its reason, for one) goes with what it acts on.
        """
        if not self._projects or envelope.body is None:
            return None
        try:
            event = decode(envelope.header, envelope.body)
        except Bad:
            return None
        payload = event.payload or {}
        for field in _FIELDS:
            named = payload.get(field)
            if isinstance(named, str) and (key := self._key(named)) is not None:
                return key
        deps = event.header.deps
        acted_on = projects_of(self._store.reader(drain=False).connection, deps) if deps else []
        return next((key for project in acted_on if (key := self._key(project)) is not None), None)

    def _key(self, project: str) -> tuple[bytes, bytes] | None:
        if project not in self._known:
            family = {project, *self._store.reader(drain=False).family(project)}
            # Two projects that each had a key before they were joined: any of both will do, but the same one always.
            found = [self._ring.scope_for(one) for one in self._projects if one in family]
            key = next((one for one in found if one is not None), None)
            self._known[project] = None if key is None else (key.id, key.secret)
        return self._known[project]
