"""Which keys a peer is given besides events: those that it may lack, sealed so that only who should can open them.

They go with the greeting, before anybody has proved anything: new store keys under older ones, as in packs, and scope
keys under the current store key. A folder never holds the latter, for its history would then be readable again.
"""

from __future__ import annotations

from collections.abc import Callable

from memorize.sync.ring import Keyring, Wrapped, wrap


def for_peer(ring: Keyring, salt: Callable[[], bytes]) -> list[Wrapped]:
    """Return the wrapped keys; the other side's ``ring.adopt`` takes them. ``salt`` gives 24 random bytes a call."""
    current = ring.current
    states = [ring.scope_state(project) for project in sorted({key.project for key in ring.scopes})]
    return [*ring.wrapped, *(wrap(state, current, salt()) for state in states if state is not None)]
