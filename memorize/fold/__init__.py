"""The fold: a set of events -> what it means. Pure and total (DESIGN 5).

The same set gives the same state whatever the order, grouping or repetition of arrival. ``keys`` tells which events
can influence each other, ``rows`` and ``digest`` turn a state into comparable bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from memorize.fold.claims import judge
from memorize.fold.groups import memory_states, shown_groups
from memorize.fold.intake import take_in
from memorize.fold.keys import capture_key, id_key, keys
from memorize.fold.memories import mark
from memorize.fold.projects import roots
from memorize.fold.reading import group_key
from memorize.fold.state import (
    ERASED,
    LIVE,
    RETRACTED,
    SHADOWED,
    SUPERSEDED,
    MemoryState,
    Shown,
    State,
    digest,
    finish,
    row_hash,
    rows,
)
from memorize.limits import FOLD_VERSION
from memorize.model import Event

__all__ = [
    "ERASED",
    "FOLD_VERSION",
    "LIVE",
    "RETRACTED",
    "SHADOWED",
    "SUPERSEDED",
    "MemoryState",
    "Shown",
    "State",
    "capture_key",
    "digest",
    "finish",
    "fold",
    "group_key",
    "id_key",
    "keys",
    "row_hash",
    "rows",
]


def fold(events: Iterable[Event]) -> State:
    """Return the state of a set of events. Never raises, whatever the payloads hold."""
    taken = take_in(events)
    claims = judge(taken.claims)
    marks = mark(taken, claims)
    memories = memory_states(taken, marks)
    return State(
        aliases=taken.aliases,
        erased=frozenset(taken.erased),
        quarantined=taken.quarantined,
        claims=claims.accepted,
        memories=memories,
        shown=shown_groups(memories, marks),
        projects=roots(taken),
    )
