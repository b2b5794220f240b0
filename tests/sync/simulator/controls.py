"""Faults that are built in on purpose: each must turn the simulator red, or it would not see the like of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memorize.fold import State, fold
from memorize.log.codec import decode
from memorize.model import Event
from memorize.sync.folder import Entry, Listing
from memorize.sync.port import Envelope, Received
from tests.sync.simulator.engines import Device, events_in
from tests.sync.simulator.folder import MemoryFolder
from tests.sync.simulator.holding import MemoryHolding
from tests.sync.simulator.world import Rules


class BySequence(MemoryHolding):
    """Takes (writer, number) for the name of an event: the second one of a pair is ignored."""

    def _take(self, envelope: Envelope) -> Received:
        header = decode(envelope.header, None).header
        there = self._numbers.get(header.writer, {}).get(header.seq, [])
        if there and envelope.id not in there:
            return Received(known=1)
        return super()._take(envelope)


class Forgetful(MemoryHolding):
    """Erases what is there, and takes it back when it comes again."""

    def _take(self, envelope: Envelope) -> Received:
        if envelope.id in self.erased and envelope.body is not None:
            self.erased.discard(envelope.id)
            self.envelopes[envelope.id] = envelope
        return super()._take(envelope)


class Absent(Device):
    """Takes a pack that is not there any more for one whose events were deleted."""

    def folder_round(self, *, by_hand: bool = False) -> str:
        assert self.folder is not None
        before, files = getattr(self, "brought", {}), self.folder.files()
        gone = [one for path, ids in before.items() if path not in files for one in ids]
        self.replica.holding.drop(gone)
        said = super().folder_round(by_hand=by_hand)
        files = self.folder.files()
        self.brought = {path: {one.id for one in events_in(file.data, self.keys.find)} for path, file in files.items()}
        return said


class Newer(Device):
    """Looks only at files that are newer than its last look."""

    def folder_round(self, *, by_hand: bool = False) -> str:
        assert self.folder is not None
        seen, whole = getattr(self, "seen", -1), self.folder
        self.folder = NewerFiles(whole, seen)
        said = super().folder_round(by_hand=by_hand)
        self.folder, self.seen = whole, self.world.time.ms // 1000
        return said


class NewerFiles(MemoryFolder):
    """Lists no file older than a moment."""

    def __init__(self, whole: MemoryFolder, since: int) -> None:
        self.__dict__.update(vars(whole))
        self.since = since

    def listing(self) -> Listing:
        """Return the newer files."""
        listed = super().listing()
        return Listing([one for one in listed.entries if self._is_newer(one)], listed.hidden)

    def _is_newer(self, entry: Entry) -> bool:
        return self.files()[entry.path].mtime > self.since or self._owns(entry.path)


def by_the_clock(events: Iterable[Event]) -> State:
    """Fold as if the later date won."""
    known = list(events)
    numbers = {one.id: one.header.lamport for one in known}
    state = fold([one._replace(header=one.header._replace(lamport=one.header.wall)) for one in known])
    memories = {key: one._replace(lamport=numbers[one.id]) for key, one in state.memories.items()}
    shown = {key: one._replace(lamport=numbers[one.id]) for key, one in state.shown.items()}
    return state._replace(memories=memories, shown=shown)


CONTROLS: Final[dict[str, Rules]] = {
    "writer and number name an event": Rules(holding=BySequence),
    "absence is deletion": Rules(device=Absent),
    "only newer files are read": Rules(device=Newer),
    "the clock decides": Rules(fold=by_the_clock),
    "what was erased comes back": Rules(holding=Forgetful),
}
