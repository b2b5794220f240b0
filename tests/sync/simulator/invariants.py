"""What must hold once everything was carried everywhere and nothing changes any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memorize.fold import State, digest, fold, rows
from memorize.model import Event
from memorize.sync.port import SetDigest
from tests.sync.simulator.folder import Disk
from tests.sync.simulator.replica import Replica

Fold = Callable[[Iterable[Event]], State]


class Promises(NamedTuple):
    """What was promised: events and captures that must be there, and the bytes of every event ever written."""

    ids: set[bytes]
    nonces: set[bytes]
    written: Mapping[bytes, tuple[bytes, bytes | None]]


def broken(replicas: Sequence[Replica], promises: Promises, folding: Fold = fold) -> Iterator[str]:
    """Yield a sentence for every promise about the replicas that does not hold."""
    yield from _differing({one.number: one.holding.digest() for one in replicas})
    for one in replicas:
        held = {identity for identity in one.holding.events if one.holding.holds(identity)}
        if lost := promises.ids - held:
            yield f"replica {one.number} lacks {len(lost)} acknowledged events: {_names(lost)}"
        if dropped := promises.nonces - {one.holding.events[identity].header.nonce for identity in held}:
            yield f"replica {one.number} lacks {len(dropped)} captures: {_names(dropped)}"
        if invented := held - promises.written.keys():
            yield f"replica {one.number} holds {len(invented)} events that nobody wrote: {_names(invented)}"
        yield from _changed(one, promises)
    yield from _of_states(replicas, folding)


def _differing(digests: Mapping[int, SetDigest]) -> Iterator[str]:
    if len(set(digests.values())) > 1:
        counts = ", ".join(f"{number}: {one.events} events" for number, one in digests.items())
        yield f"the set digests differ ({counts})"


def _changed(one: Replica, promises: Promises) -> Iterator[str]:
    for identity, envelope in one.holding.envelopes.items():
        header, body = promises.written.get(identity, (envelope.header, envelope.body))
        if envelope.header != header:
            yield f"replica {one.number} holds another header of {identity.hex()[:8]}"
        if envelope.body is not None and envelope.body != body:
            yield f"replica {one.number} holds another body of {identity.hex()[:8]}"


def _of_states(replicas: Sequence[Replica], folding: Fold) -> Iterator[str]:
    states = {one.number: folding(one.holding.events.values()) for one in replicas}
    digests = {number: digest(rows(state)) for number, state in states.items()}
    if len(set(digests.values())) > 1:
        yield f"the state digests differ: {', '.join(f'{n}: {d.hex()[:8]}' for n, d in digests.items())}"
    for one in replicas:
        erased = states[one.number].erased
        if erased != one.holding.erased:
            yield f"replica {one.number}: fold and holding disagree about what is erased"
        kept = [i for i in erased if one.holding.envelopes[i].body is not None]
        if kept:
            yield f"replica {one.number} still holds {len(kept)} erased bodies: {_names(kept)}"
        break  # the digests are equal, so what holds for one state holds for all
    for one in replicas[1:]:
        kept = [i for i in one.holding.erased if one.holding.envelopes[i].body is not None]
        if kept or one.holding.erased != replicas[0].holding.erased:
            yield f"replica {one.number} still holds erased bodies, or erased others: {_names(kept)}"
    first = replicas[0].holding.events.values()
    if timeless(folding(first)) != timeless(folding(_at_other_times(first))):
        yield "the state depends on what the clocks said"


def _at_other_times(events: Iterable[Event]) -> list[Event]:
    """Return the events as clocks would have dated them that run backwards."""
    return [one._replace(header=one.header._replace(wall=2**42 - one.header.wall)) for one in events]


def timeless(state: State) -> object:
    """Return what a state says beside dates."""
    memories = {one: value._replace(wall=0) for one, value in state.memories.items()}
    shown = {one: value._replace(recency=0) for one, value in state.shown.items()}
    return state._replace(memories=memories, shown=shown)


def readable(
    disks: Sequence[Disk], owners: Iterable[bytes], bodies: Callable[[bytes], set[bytes]], erased: set[bytes]
) -> Iterator[str]:
    """Yield a sentence for every erased body that a key still finds in the directory of somebody who is there."""
    directories = {one.hex() for one in owners}
    seen: dict[bytes, set[bytes]] = {}
    for number, disk in enumerate(disks):
        yield from (f"folder {number}: {fault}" for fault in disk.faults)
        for path, file in disk.files.items():
            if not directories.intersection(path.split("/")):
                continue
            if file.data not in seen:
                seen[file.data] = bodies(file.data) & erased
            if seen[file.data]:
                yield f"folder {number}: {path} still holds erased bodies: {_names(seen[file.data])}"


def _names(ids: Iterable[bytes]) -> str:
    return " ".join(sorted(one.hex()[:8] for one in ids)[:6])
