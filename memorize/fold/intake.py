"""The first steps: one event an id, aliases, erasures, and every payload read once.

What follows sees only events that count: canonical, well-formed, with the ids in their deps made canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from memorize import model
from memorize.fold import reading
from memorize.fold.reading import ClaimWords
from memorize.fold.state import MemoryState
from memorize.model import INDELIBLE, Event

Aliases = Mapping[bytes, bytes]


class Act(NamedTuple):
    """One event that does something to others: who made it, what it names, and the one word it carries.

    ``word`` is the window nonce ("" for none); a verdict has its own field.
    """

    id: bytes
    person: bytes
    wall: int
    deps: tuple[bytes, ...]
    word: str = ""
    verdict: str = ""


class Claim(NamedTuple):
    """One ``window.consolidated``; every id in it is canonical."""

    id: bytes
    person: bytes
    lamport: int
    deps: tuple[bytes, ...]
    window: str
    sources: frozenset[bytes]
    events: frozenset[bytes]


class Intake(NamedTuple):
    """Everything that counts, sorted by what it is; and what does not count, by reason."""

    aliases: dict[bytes, bytes]
    erased: dict[bytes, tuple[bytes, ...]]
    quarantined: frozenset[bytes]
    formed: dict[bytes, MemoryState]
    claims: list[Claim]
    links: dict[bytes, tuple[str, str]]
    acts: dict[str, dict[bytes, Act]]


def distinct(events: Iterable[Event]) -> dict[bytes, Event]:
    """Return the events by id. Of two copies the one with its body counts."""
    known: dict[bytes, Event] = {}
    for event in events:
        held = known.setdefault(event.id, event)
        if held is not event and held.payload is None and (event.payload is not None or event.malformed):
            known[event.id] = event
    return known


def aliases_of(known: Mapping[bytes, Event]) -> dict[bytes, bytes]:
    """Map every alias to the event that counts: of one person, nonce, ordinal and kind the least (lamport, id).

    Only headers decide, so that neither an erasure nor a malformed body changes which event counts.
    """
    first: dict[tuple[bytes, bytes, int, str], Event] = {}
    twins: dict[tuple[bytes, bytes, int, str], list[Event]] = {}
    for event in known.values():
        header = event.header
        if not header.nonce:
            continue
        slot = (header.person, header.nonce, header.ordinal, header.kind)
        held = first.setdefault(slot, event)
        if held is not event:
            twins.setdefault(slot, [held]).append(event)
    aliases: dict[bytes, bytes] = {}
    for found in twins.values():
        found.sort(key=lambda event: event.order)
        for other in found[1:]:
            aliases[other.id] = found[0].id
    return aliases


def erasures_of(known: Mapping[bytes, Event], aliases: Aliases) -> dict[bytes, tuple[bytes, ...]]:
    """Map every known event that is erased to the erasures that say so.

    Remove wins: an erasure is never cancelled, counts even when it is itself an alias, and hits all aliases of what
    it names; but only events of its own person, and none that cannot be erased.
    """
    named: dict[tuple[bytes, bytes], list[bytes]] = {}
    for event in known.values():
        if event.header.kind != model.ERASE_REQUESTED or event.malformed or not isinstance(event.payload, Mapping):
            continue
        for target in reading.erasure(event.payload) or ():
            named.setdefault((event.header.person, aliases.get(target, target)), []).append(event.id)
    if not named:
        return {}
    erased: dict[bytes, tuple[bytes, ...]] = {}
    for identity, event in known.items():
        found = named.get((event.header.person, aliases.get(identity, identity)))
        if found and event.header.kind not in INDELIBLE:
            erased[identity] = tuple(sorted(set(found)))
    return erased


def take_in(events: Iterable[Event]) -> Intake:
    """Sort out which events count and read them.

    An erased event has no payload, whether or not its body is still there: what its header names still acts (an erased
    retraction still retracts), what its payload said is as if it had not been said. An event whose body is missing
    without an erasure is as if it were not known: the set digest does not count it either, and equal sets must have
    equal states.
    """
    known = distinct(events)
    aliases = aliases_of(known)
    erased = erasures_of(known, aliases)
    if bare := [identity for identity, event in known.items() if identity not in erased and _is_bare(event)]:
        for identity in bare:
            del known[identity]
        aliases = aliases_of(known)
    quarantined: set[bytes] = set()
    taken = Intake(aliases, erased, frozenset(), {}, [], {}, {kind: {} for kind in _ACTS})
    for identity, event in known.items():
        payload: Mapping[str, Any] | None = event.payload
        if identity in erased:
            payload = None
        elif event.malformed or not (payload is None or isinstance(payload, Mapping)):
            quarantined.add(identity)
            continue
        sort = _SORTS.get(event.header.kind)
        if sort is not None and not sort(taken, event, payload, identity not in aliases):
            quarantined.add(identity)
    return taken._replace(quarantined=frozenset(quarantined))


def _is_bare(event: Event) -> bool:
    """Tell whether the body of an event is not there. One under a scope key may be there and not be readable."""
    return event.payload is None and not event.malformed and not event.header.scope_key


def _named(taken: Intake, ids: Iterable[bytes]) -> tuple[bytes, ...]:
    aliases = taken.aliases
    return tuple(aliases.get(identity, identity) for identity in ids) if aliases else tuple(ids)


# Each of these puts one event where it belongs when it counts, and returns False when its payload has a wrong shape.
_Sort = Callable[[Intake, Event, Mapping[str, Any] | None, bool], bool]


def _sort_formed(taken: Intake, event: Event, payload: Mapping[str, Any] | None, counts: bool) -> bool:
    header = event.header
    memory = reading.bodiless(event.id, header) if payload is None else reading.formed(event.id, header, payload)
    if memory is None:
        return False
    if counts:
        taken.formed[event.id] = memory
    return True


def _sort_claim(taken: Intake, event: Event, payload: Mapping[str, Any] | None, counts: bool) -> bool:
    words: ClaimWords | None = None if payload is None else reading.claim(payload)
    if words is None:
        return payload is None
    if counts:
        sources, made = frozenset(_named(taken, words.sources)), frozenset(_named(taken, words.events))
        header = event.header
        deps = _named(taken, header.deps)
        taken.claims.append(Claim(event.id, header.person, header.lamport, deps, words.window, sources, made))
    return True


def _sort_link(taken: Intake, event: Event, payload: Mapping[str, Any] | None, counts: bool) -> bool:
    pair = None if payload is None else reading.link(payload)
    if pair is None:
        return payload is None
    if counts:
        taken.links[event.id] = pair
        _act(taken, event)
    return True


def _sort_erasure(_taken: Intake, _event: Event, payload: Mapping[str, Any] | None, _counts: bool) -> bool:
    return payload is None or reading.erasure(payload) is not None


def _sort_plain(taken: Intake, event: Event, _payload: Mapping[str, Any] | None, counts: bool) -> bool:
    if counts:
        _act(taken, event)
    return True


def _sort_made(taken: Intake, event: Event, payload: Mapping[str, Any] | None, counts: bool) -> bool:
    word = "" if payload is None else reading.window(payload)
    if word is None:
        return False
    if counts:
        _act(taken, event, word)
    return True


def _sort_verdict(taken: Intake, event: Event, payload: Mapping[str, Any] | None, counts: bool) -> bool:
    if payload is None:
        return True
    word, verdict = reading.window(payload), reading.verdict(payload)
    if word is None or verdict is None:
        return False
    if counts:
        _act(taken, event, word, verdict)
    return True


def _act(taken: Intake, event: Event, word: str = "", verdict: str = "") -> None:
    header = event.header
    act = Act(event.id, header.person, header.wall, _named(taken, header.deps), word, verdict)
    taken.acts[header.kind][event.id] = act


_SORTS: Final[Mapping[str, _Sort]] = {
    model.MEMORY_FORMED: _sort_formed,
    model.WINDOW_CONSOLIDATED: _sort_claim,
    model.PROJECT_LINKED: _sort_link,
    model.PROJECT_UNLINKED: _sort_plain,
    model.MEMORY_RETRACTED: _sort_plain,
    model.MEMORY_RESTORED: _sort_plain,
    model.MEMORY_PINNED: _sort_plain,
    model.MEMORY_UNPINNED: _sort_plain,
    model.MEMORY_SUPERSEDED: _sort_made,
    model.MEMORY_CONFIRMED: _sort_made,
    model.MEMORY_JUDGED: _sort_verdict,
    model.ERASE_REQUESTED: _sort_erasure,
}
_ACTS: Final = tuple(_SORTS)
