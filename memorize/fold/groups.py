"""Memory states and text groups: what is shown, and as what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from memorize.fold.intake import Act, Intake
from memorize.fold.memories import Found, Marks
from memorize.fold.reading import cut
from memorize.fold.state import ERASED, LIVE, RETRACTED, SHADOWED, SUPERSEDED, MemoryState, Shown


def memory_states(taken: Intake, marks: Marks) -> dict[bytes, MemoryState]:
    """Return the state of every memory: those that something touches get their status and what caused it."""
    found = taken.formed
    touched = {*taken.erased, *marks.retracted, *marks.contested, *marks.shadowed, *marks.replaced}
    changed = {identity: _touched(taken, marks, found[identity]) for identity in touched if identity in found}
    return {**found, **changed} if changed else found


def _touched(taken: Intake, marks: Marks, memory: MemoryState) -> MemoryState:
    identity = memory.id
    erased, retracted = taken.erased.get(identity, ()), marks.retracted.get(identity, ())
    shadowed, edges = marks.shadowed.get(identity), marks.replaced.get(identity, ())
    status = memory.status
    if status != ERASED:
        if retracted:
            status = RETRACTED
        elif shadowed is not None:
            status = SHADOWED
        elif edges:
            status = SUPERSEDED
    return memory._replace(
        status=status,
        by=tuple(sorted({*erased, *retracted, *(shadowed or ()), *(edge.act for edge in edges)})),
        heirs=tuple(sorted({edge.new for edge in edges})),
        contested=tuple(sorted(set(marks.contested.get(identity, ())))),
    )


def shown_groups(memories: Mapping[bytes, MemoryState], marks: Marks) -> dict[bytes, Shown]:
    """Return one shown memory for every text group with a live member."""
    first: dict[bytes, MemoryState] = {}
    larger: dict[bytes, list[MemoryState]] = {}
    for memory in memories.values():
        if memory.group:
            held = first.setdefault(memory.group, memory)
            if held is not memory:
                larger.setdefault(memory.group, [held]).append(memory)
    followed = {*marks.pins, *marks.confirmed, *marks.replaces}
    shown: dict[bytes, Shown] = {}
    for key, memory in first.items():
        members = larger.get(key)
        if members is None and memory.id not in followed:
            if memory.status == LIVE:
                alone = (memory.id,)
                shown[key] = _shown(memory, memory.sources, alone, alone, memory.wall, False, 0, memory.contested, ())
            continue
        members = members or [memory]
        live = sorted((one for one in members if one.status == LIVE), key=lambda one: (one.lamport, one.id))
        if live:
            shown[key] = _united(marks, members, live)
    _put_disputes(memories, marks, shown)
    return shown


def _shown(
    memory: MemoryState,
    sources: tuple[bytes, ...],
    members: tuple[bytes, ...],
    live: tuple[bytes, ...],
    recency: int,
    pinned: bool,
    confirmations: int,
    contested: tuple[bytes, ...],
    supersedes: tuple[bytes, ...],
) -> Shown:
    """Put the fields of the member that speaks for the group together with what the group has in common."""
    own = memory[9:26]  # kind .. expires_at
    head = (memory.group, memory.id, memory.person, memory.lamport)
    return tuple.__new__(
        Shown, (*head, *own, sources, members, live, recency, pinned, confirmations, (), contested, supersedes)
    )


def _united(marks: Marks, members: list[MemoryState], live: list[MemoryState]) -> Shown:
    """Unite a group: what counts is its live members and everything these replaced."""
    ids = sorted(member.id for member in members)
    living = sorted(member.id for member in live)
    followed = {*living, *_replaced(marks.replaces, living)}
    confirmed: dict[bytes, Act] = {}
    for memory in followed:
        confirmed.update((act.id, act) for act in marks.confirmed.get(memory, ()))
    recency = max([member.wall for member in live] + [cut(act.wall) for act in confirmed.values()])
    speaker = live[-1]
    others = (source for member in live for source in member.sources)
    return _shown(
        speaker,
        tuple(dict.fromkeys((*speaker.sources, *others))),
        tuple(ids),
        tuple(living),
        recency,
        any(memory in marks.pins for memory in followed),
        len(confirmed),
        tuple(sorted({act for member in live for act in member.contested})),
        tuple(sorted(_replaced(marks.replaces, ids).difference(ids))),
    )


def _replaced(replaces: Found, start: Iterable[bytes]) -> set[bytes]:
    """Return everything that these memories replaced, directly or through others."""
    found: set[bytes] = set()
    waiting = list(start)
    while waiting:
        for old in replaces.get(waiting.pop(), ()):
            if old not in found:
                found.add(old)
                waiting.append(old)
    return found


def _put_disputes(memories: Mapping[bytes, MemoryState], marks: Marks, shown: dict[bytes, Shown]) -> None:
    """Note on both sides of a contradiction what it contradicts, while both are live and shown apart."""
    found: dict[bytes, set[bytes]] = {}
    for one, other in _live_pairs(memories, marks):
        if one.group != other.group:
            found.setdefault(one.group, set()).add(shown[other.group].id)
            found.setdefault(other.group, set()).add(shown[one.group].id)
    for key, ids in found.items():
        shown[key] = shown[key]._replace(disputed=tuple(sorted(ids)))


def _live_pairs(memories: Mapping[bytes, MemoryState], marks: Marks) -> Iterator[tuple[MemoryState, MemoryState]]:
    for one, other in marks.disputes:
        if memories[one].status == LIVE and memories[other].status == LIVE:
            yield memories[one], memories[other]
