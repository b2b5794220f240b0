"""What happens to memories: retractions and restores, shadows, supersede edges, pins, confirmations, verdicts.

Everything here maps the id of a ``memory.formed`` event to the events in force for it; a memory that nothing touches
appears nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from memorize import model
from memorize.fold.claims import OWN, SHUT, Claims
from memorize.fold.components import components
from memorize.fold.intake import Act, Intake
from memorize.fold.reading import CONTRADICTS
from memorize.fold.state import MemoryState

Found = dict[bytes, list[bytes]]
Memories = Mapping[bytes, MemoryState]


class Edge(NamedTuple):
    """A supersede edge: the event ``act`` says that ``new`` stands for ``old``."""

    new: bytes
    old: bytes
    act: bytes


class Marks(NamedTuple):
    """The events in force, by the memory that they touch.

    ``replaced``: old side -> edges it obeys. ``replaces``: new side -> old sides, of one person. ``disputes``: pairs.
    """

    retracted: Found
    contested: Found
    shadowed: dict[bytes, tuple[bytes, ...]]
    pins: Found
    confirmed: dict[bytes, list[Act]]
    replaced: dict[bytes, list[Edge]]
    replaces: Found
    disputes: list[tuple[bytes, bytes]]


def mark(taken: Intake, claims: Claims) -> Marks:
    """Find what is in force for every memory.

    The steps depend on each other in one direction only: an edge counts by what was retracted and shadowed, and
    neither of these looks at edges; so nothing has to be repeated until it settles.
    """
    formed, acts = taken.formed, taken.acts
    cancelled = _cancelled(acts[model.MEMORY_RESTORED], acts[model.MEMORY_RETRACTED], acts[model.MEMORY_SUPERSEDED])
    edits = {identity: act for identity, act in acts[model.MEMORY_SUPERSEDED].items() if identity not in cancelled}
    unpinned = _cancelled(acts[model.MEMORY_UNPINNED], acts[model.MEMORY_PINNED])
    retractions = {identity: act for identity, act in acts[model.MEMORY_RETRACTED].items() if identity not in cancelled}
    pinning = {identity: act for identity, act in acts[model.MEMORY_PINNED].items() if identity not in unpinned}
    retracted, contested = _named(formed, retractions)
    pins, _ = _named(formed, pinning)
    confirmed, kept = _confirmed(formed, acts[model.MEMORY_CONFIRMED], claims)
    kept.update(pins, _edited(formed, edits, claims))
    shadowed = _shadowed(formed, claims, kept)
    edges = [edge for edge in _edges(formed, edits, claims) if not (edge.new in retracted or edge.new in shadowed)]
    replaced, replaces = _obeyed(formed, edits, edges, contested)
    disputes = _disputes(formed, acts[model.MEMORY_JUDGED], claims)
    return Marks(retracted, contested, shadowed, pins, confirmed, replaced, replaces, disputes)


def _named(formed: Memories, acts: Mapping[bytes, Act]) -> tuple[Found, Found]:
    """Return which acts name a memory: those of its own person, and those of others."""
    own: Found = {}
    foreign: Found = {}
    for identity, act in acts.items():
        for memory in _known(formed, act.deps):
            found = own if formed[memory].person == act.person else foreign
            found.setdefault(memory, []).append(identity)
    return own, foreign


def _confirmed(
    formed: Memories, acts: Mapping[bytes, Act], claims: Claims
) -> tuple[dict[bytes, list[Act]], set[bytes]]:
    """Return the confirmations in force by memory, and the memories that a person confirmed."""
    confirmed: dict[bytes, list[Act]] = {}
    by_person: set[bytes] = set()
    for identity, act in acts.items():
        standing = claims.standing(identity, act.person, act.word)
        if standing != SHUT:
            for memory in _of_person(formed, act, act.deps):
                confirmed.setdefault(memory, []).append(act)
                if standing == OWN:
                    by_person.add(memory)
    return confirmed, by_person


def _edited(formed: Memories, edits: Mapping[bytes, Act], claims: Claims) -> Iterator[bytes]:
    """Return the memories that a person edited."""
    for identity, act in edits.items():
        if claims.standing(identity, act.person, act.word) == OWN:
            yield from _of_person(formed, act, act.deps[1:])


def _known(formed: Memories, ids: tuple[bytes, ...]) -> Iterator[bytes]:
    """Return the memories among these ids, each once; a dep on another kind is ignored alone."""
    return (identity for identity in dict.fromkeys(ids) if identity in formed)


def _of_person(formed: Memories, act: Act, ids: tuple[bytes, ...]) -> Iterator[bytes]:
    return (memory for memory in _known(formed, ids) if formed[memory].person == act.person)


def _cancelled(by: Mapping[bytes, Act], *targets: Mapping[bytes, Act]) -> set[bytes]:
    """Return the targets that an event of ``by`` names, of the same person: observed-remove."""
    found: set[bytes] = set()
    for act in by.values():
        for dep in act.deps:
            for target in targets:
                if dep in target and dep != act.id and target[dep].person == act.person:
                    found.add(dep)
    return found


def _shadowed(formed: Memories, claims: Claims, kept: set[bytes]) -> dict[bytes, tuple[bytes, ...]]:
    """Return the memories of consolidations that have no effect, with the (refused) claims that list them."""
    found: dict[bytes, tuple[bytes, ...]] = {}
    standing, listing = claims.standing, claims.listing
    for identity, memory in formed.items():
        if (memory.window or listing) and identity not in kept:
            person = memory.person
            if standing(identity, person, memory.window) == SHUT:
                found[identity] = tuple(sorted(claim.id for claim in listing.get((person, identity), ())))
    return found


def _edges(formed: Memories, edits: Mapping[bytes, Act], claims: Claims) -> Iterator[Edge]:
    """Return the edges between known memories that supersede events in force make."""
    for identity, act in edits.items():
        if len(act.deps) < 2 or act.deps[0] not in formed:
            continue
        if claims.standing(identity, act.person, act.word) != SHUT:
            new = act.deps[0]
            for old in _known(formed, act.deps[1:]):
                if old != new:
                    yield Edge(new, old, identity)


def _obeyed(
    formed: Memories, edits: Mapping[bytes, Act], edges: list[Edge], contested: Found
) -> tuple[dict[bytes, list[Edge]], Found]:
    """Sort the counting edges: old side -> edges obeyed, new side -> what it replaced; other persons' are contested."""
    replaced: dict[bytes, list[Edge]] = {}
    replaces: Found = {}
    counting: list[Edge] = []
    graph: Found = {}
    for edge in edges:
        if edits[edge.act].person == formed[edge.old].person:
            counting.append(edge)
            graph.setdefault(edge.new, []).append(edge.old)
        else:
            contested.setdefault(edge.old, []).append(edge.act)
    ring_of: dict[bytes, int] = {}
    winners: set[bytes] = set()
    for number, ring in enumerate(components(graph)):
        ring_of.update(dict.fromkeys(ring, number))
        winners.add(max(ring, key=lambda memory: (formed[memory].importance, memory)))
    for edge in counting:
        if edge.old in winners and ring_of.get(edge.old) == ring_of.get(edge.new):
            continue
        replaced.setdefault(edge.old, []).append(edge)
        if formed[edge.old].person == formed[edge.new].person:
            replaces.setdefault(edge.new, []).append(edge.old)
    return replaced, replaces


def _disputes(formed: Memories, verdicts: Mapping[bytes, Act], claims: Claims) -> list[tuple[bytes, bytes]]:
    """Return the pairs that a verdict in force calls contradictory.

    deps[0] and deps[1] are the pair; further deps that name earlier verdicts take those back.
    """
    standing = {act.id: act for act in verdicts.values() if claims.standing(act.id, act.person, act.word) != SHUT}
    taken_back = _cancelled({identity: act._replace(deps=act.deps[2:]) for identity, act in standing.items()}, verdicts)
    pairs = []
    for identity, act in standing.items():
        if act.verdict == CONTRADICTS and identity not in taken_back and len(act.deps) >= 2:
            one, other = act.deps[:2]
            if one in formed and other in formed and one != other:
                pairs.append((one, other))
    return pairs
