"""What peers give each other besides events: the keys that the other one may lack. Sealed, for those who can open them.

A gift goes with the greeting, before anybody has proved anything. So it holds only keys that are wrapped under others:
new store keys under older ones, as in packs, and scope keys under the current store key. A folder never holds the
latter, for its history would then be readable again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgpack

from memorize.ids import RANDOM_BYTES
from memorize.sync.handshake import GIFT_BYTES_MAX
from memorize.sync.peers import ADDRESSES_MAX, Address
from memorize.sync.ring import (
    KEY_ID_BYTES,
    WRAPPED_MAX,
    Keyring,
    adopt,
    destroyed,
    entered,
    wrap,
    wrapped_from,
    wrapped_row,
)

_GONE_MAX: Final = 200
_BROKEN: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError, msgpack.UnpackException)


def gift(ring: Keyring, salt: Callable[[], bytes], addresses: tuple[Address, ...] = ()) -> bytes:
    """Return what to give. ``addresses``: where this device listens, for the next time."""
    current = ring.current
    states = [ring.scope_state(project) for project in sorted({key.project for key in ring.scopes})]
    rows = [wrapped_row(one) for one in ring.wrapped]
    rows += [wrapped_row(wrap(state, current, salt())) for state in states if state is not None]
    fields = {
        "store": ring.store,
        "left": sorted(ring.left),
        "gone": sorted(ring.gone)[:_GONE_MAX],
        "at": [list(one) for one in addresses],
        "wrapped": rows,
    }
    packed: bytes = msgpack.packb(fields)
    while len(packed) > GIFT_BYTES_MAX and rows:  # the latest are at the end
        del rows[: max(1, len(rows) // 8)]
        packed = msgpack.packb(fields)
    return packed


def opened(ring: Keyring, packed: bytes) -> Keyring:
    """Return the ring with what a gift held for this device; the same one for anything that is no gift."""
    fields = _fields(packed)
    if fields is None:
        return ring
    rows = [one for one in map(wrapped_from, fields["wrapped"][:WRAPPED_MAX]) if one is not None]
    ring = destroyed(adopt(ring, rows), frozenset(fields["gone"]))
    if fields["store"] in ring.stores:
        ring = entered(ring, fields["store"], frozenset(fields["left"]))
    return ring


def addresses(packed: bytes) -> tuple[Address, ...]:
    """Return where the giver says that it listens."""
    fields = _fields(packed)
    if fields is None:
        return ()
    found = []
    for one in fields["at"][:ADDRESSES_MAX]:
        sound = isinstance(one, list) and len(one) == 2 and type(one[0]) is str and type(one[1]) is int
        if sound and 0 < len(one[0]) <= 255 and 0 < one[1] < 65_536:
            found.append(Address(*one))
    return tuple(found)


def _fields(packed: bytes) -> dict[str, Any] | None:
    try:
        fields: dict[str, Any] = msgpack.unpackb(packed)
        lists = [fields[name] for name in ("left", "gone", "at", "wrapped")]
        sound = all(type(one) is list for one in lists) and _ids([fields["store"], *fields["left"]], RANDOM_BYTES)
        return fields if sound and _ids(fields["gone"], KEY_ID_BYTES) else None
    except _BROKEN:
        return None


def _ids(values: list[Any], size: int) -> bool:
    return all(type(value) is bytes and len(value) == size for value in values)
