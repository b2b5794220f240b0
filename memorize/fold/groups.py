"""Memory states and text groups: what is shown, and as what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from memorize.fold.intake import Act, Intake
from memorize.fold.memories import Found, Marks
from memorize.fold.state import ERASED, LIVE, MS_MAX, RETRACTED, SHADOWED, SUPERSEDED, MemoryState, Shown


def memory_states(taken: Intake, marks: Marks) -> dict[bytes, MemoryState]:
    """Return the state of every memory."""
    touched = set(taken.erased)
    touched.update(marks.retracted, marks.contested, marks.shadowed, marks.replaced)
    found: dict[bytes, MemoryState] = {}
    make = MemoryState._make
    for identity, (header, content) in taken.formed.items():
        wall = header.wall
        head = (identity, header.person, header.lamport, wall if 0 <= wall <= MS_MAX else _cut(wall))
        if identity in touched or not content.kind:
            found[identity] = make((*head, *_fate(taken, marks, identity), *content))
        else:
            found[identity] = make((*head, LIVE, (), (), (), *content))
    return found


def _cut(wall: int) -> int:
    return max(0, min(wall, MS_MAX))


def _fate(
    taken: Intake, marks: Marks, identity: bytes
) -> tuple[str, tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]:
    """Return status, by, heirs and contested of a memory that something touches."""
    erased, retracted = taken.erased.get(identity, ()), marks.retracted.get(identity, ())
    shadowed, edges = marks.shadowed.get(identity), marks.replaced.get(identity, ())
    if not taken.formed[identity].content.kind:
        status = ERASED
    elif retracted:
        status = RETRACTED
    elif shadowed is not None:
        status = SHADOWED
    else:
        status = SUPERSEDED if edges else LIVE
    by = {*erased, *retracted, *(shadowed or ()), *(edge.act for edge in edges)}
    heirs = {edge.new for edge in edges}
    return status, tuple(sorted(by)), tuple(sorted(heirs)), tuple(sorted(set(marks.contested.get(identity, ()))))


def shown_groups(memories: Mapping[bytes, MemoryState], marks: Marks) -> dict[bytes, Shown]:
    """Return one shown memory for every text group with a live member."""
    groups: dict[bytes, list[MemoryState]] = {}
    for memory in memories.values():
        if memory.group:
            groups.setdefault(memory.group, []).append(memory)
    quiet = not (marks.pins or marks.confirmed or marks.replaces)
    shown: dict[bytes, Shown] = {}
    for key, members in groups.items():
        if len(members) == 1 and quiet:
            memory = members[0]
            if memory.status == LIVE:
                alone = (memory.id,)
                shown[key] = _shown(memory, memory.sources, alone, alone, memory.wall, False, 0, memory.contested, ())
        else:
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
    head = (memory.group, memory.id, memory.person, memory.lamport)
    own = memory[9:26]  # kind .. expires_at
    return Shown._make((*head, *own, sources, members, live, recency, pinned, confirmations, (), contested, supersedes))


def _united(marks: Marks, members: list[MemoryState], live: list[MemoryState]) -> Shown:
    """Unite a group: what counts is its live members and everything these replaced."""
    ids = sorted(member.id for member in members)
    living = sorted(member.id for member in live)
    followed = {*living, *_replaced(marks.replaces, living)}
    confirmed: dict[bytes, Act] = {}
    for memory in followed:
        confirmed.update((act.id, act) for act in marks.confirmed.get(memory, ()))
    recency = max([member.wall for member in live] + [_cut(act.wall) for act in confirmed.values()])
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
