"""The events of one replica in memory: what ``log`` and ``index`` are on disk, without either.

It is written a second time, from the words of ``memorize.sync.port`` and of the fold, so that what both agree on is
more than one program's opinion.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memorize.fold import reading
from memorize.limits import LAMPORT_LEAP_MAX
from memorize.log.codec import Bad, decode
from memorize.model import ERASE_REQUESTED, INDELIBLE, Event
from memorize.sync.port import ID_SPACE, Envelope, Head, Key, Received, SetDigest, Span

# What one capture is called: events of one slot are one capture, whoever took it in.
Slot = tuple[bytes, bytes, int, str] | bytes


class MemoryHolding:
    """A ``port.Holding``. ``mine`` are the writers of this state directory, in whatever incarnation."""

    def __init__(self) -> None:
        self.envelopes: dict[bytes, Envelope] = {}
        self.events: dict[bytes, Event] = {}
        self.mine: set[bytes] = set()
        self.top = 0
        self.erased: set[bytes] = set()
        self.told_of: set[bytes] = set()  # replicas of which something new came in
        self.nonces: dict[tuple[bytes, int], bytes] = {}
        self._keys: list[Key] = []
        self._numbers: dict[bytes, dict[int, list[bytes]]] = {}
        self._slots: dict[Slot, list[bytes]] = {}
        self._doomed: set[Slot] = set()
        self._named: set[tuple[bytes, bytes]] = set()
        self._whole: SetDigest | None = None
        self._heads: list[Head] | None = None
        self._spans: dict[bytes, tuple[bytes, list[Span]]] | None = None

    def copy(self) -> MemoryHolding:
        """Return what a copy of the disk holds."""
        other = MemoryHolding()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict | set | list) else value)
        other._numbers = {
            writer: {seq: list(ids) for seq, ids in found.items()} for writer, found in self._numbers.items()
        }
        other._slots = {slot: list(ids) for slot, ids in self._slots.items()}
        other._heads = other._spans = None
        return other

    # -- what is held ---------------------------------------------------------------------------------------------

    def digest(self) -> SetDigest:
        """Return the set digest."""
        if self._whole is None:
            self._whole = self._sum(self._keys)
        return self._whole

    def range_digest(self, low: Key, high: Key) -> SetDigest:
        """Return the digest of a range."""
        return self._sum(self._between(low, high))

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        """Return the first keys of a range."""
        return self._between(low, high)[:limit]

    def bounds(self, low: Key, high: Key, parts: int) -> list[Key]:
        """Return keys that cut a range into equal parts."""
        found = self._between(low, high)
        cuts = {len(found) * part // parts for part in range(1, parts)}
        return [found[cut] for cut in sorted(cuts) if 0 < cut < len(found)]

    def heads(self) -> list[Head]:
        """Return the head of every writer without a gap, a twin or a missing body."""
        if self._heads is None:
            self._heads = []
            for writer, found in sorted(self._numbers.items()):
                last = len(found)
                whole = max(found) == last and all(len(ids) == 1 and self.holds(ids[0]) for ids in found.values())
                if whole and len(writer) and min(found) == 1:
                    self._heads.append(Head(writer, last, found[last][0]))
        return self._heads

    def spans(self) -> Mapping[bytes, tuple[bytes, list[Span]]]:
        """Return the runs of every writer."""
        if self._spans is None:
            self._spans = {}
            for writer, found in sorted(self._numbers.items()):
                runs: list[Span] = []
                replica = b""
                for seq in sorted(found):
                    counting = [one for one in found[seq] if self.holds(one)]
                    if not counting:
                        continue
                    replica = replica or self.events[counting[0]].header.replica
                    if runs and runs[-1].high == seq - 1:
                        runs[-1] = runs[-1]._replace(high=seq)
                    else:
                        runs.append(Span(writer, seq, seq))
                if runs:
                    self._spans[writer] = (replica, runs)
        return self._spans

    def after(self, head: Head, limit_bytes: int) -> list[Envelope]:
        """Return a writer's events after a head."""
        found = self._numbers.get(head.writer, {})
        if head.seq and head.id not in found.get(head.seq, ()):
            return []
        chosen: list[Envelope] = []
        for seq in sorted(found):
            if seq > head.seq:
                for one in self._in_order(found[seq]):
                    if limit_bytes <= 0:
                        return chosen
                    chosen.append(one)
                    limit_bytes -= len(one.header) + len(one.body or b"")
        return chosen

    def of_spans(self, spans: Sequence[Span]) -> Iterator[Envelope]:
        """Return the events of runs."""
        for span in spans:
            found = self._numbers.get(span.writer, {})
            for seq in sorted(found):
                if span.low <= seq <= span.high:
                    yield from self._in_order(found[seq])

    def get(self, ids: Iterable[bytes]) -> Iterator[Envelope]:
        """Return these events."""
        for one in ids:
            if one in self.envelopes and self.holds(one):
                yield self.envelopes[one]

    def own(self, writers: Collection[bytes]) -> frozenset[bytes]:
        """Return the writers of this state directory."""
        return frozenset(self.mine.intersection(writers))

    # -- what comes in --------------------------------------------------------------------------------------------

    def receive(self, envelopes: Iterable[Envelope]) -> Received:
        """Verify and keep."""
        total = Received()
        for envelope in envelopes:
            total = total.plus(self._take(envelope))
        self._whole = self._heads = self._spans = None
        return total

    def _take(self, envelope: Envelope) -> Received:
        try:
            event = decode(envelope.header, envelope.body)
        except Bad:
            return Received(bad=1)
        if event.id != envelope.id:
            return Received(bad=1)
        envelope = envelope._replace(lamport=event.header.lamport)
        held = self.envelopes.get(event.id)
        if held is None:
            self._add(event, envelope)
            return Received(new=1, stripped=int(envelope.body is not None and event.id in self.erased))
        if held.body is None and envelope.body is not None and event.id not in self.erased:
            self._put(event, envelope)
            self._note(event)
            return Received(bodies=1)
        return Received(known=1)

    def _add(self, event: Event, envelope: Envelope) -> None:
        header = event.header
        self.told_of.add(header.replica)
        self._numbers.setdefault(header.writer, {}).setdefault(header.seq, []).append(event.id)
        if header.lamport - self.top <= LAMPORT_LEAP_MAX:
            self.top = max(self.top, header.lamport)
        if header.nonce:
            self.nonces.setdefault((header.nonce, header.ordinal), event.id)
        slot = _slot(event)
        self._slots.setdefault(slot, []).append(event.id)
        self._put(event, envelope)
        if (header.person, event.id) in self._named:
            self._doom(slot)
        if slot in self._doomed:
            self._strip(event.id)
        self._note(event)

    def _put(self, event: Event, envelope: Envelope) -> None:
        self.events[event.id], self.envelopes[event.id] = event, envelope
        if self.holds(event.id):
            insort(self._keys, (event.header.lamport, event.id))

    def holds(self, identity: bytes) -> bool:
        """Tell whether an event is held with its body, or erased."""
        return self.envelopes[identity].body is not None or identity in self.erased

    def _in_order(self, ids: Iterable[bytes]) -> list[Envelope]:
        return [self.envelopes[one] for _, one in sorted((self.envelopes[i].lamport, i) for i in ids if self.holds(i))]

    def _between(self, low: Key, high: Key) -> list[Key]:
        return self._keys[bisect_left(self._keys, low) : bisect_left(self._keys, high)]

    def _sum(self, keys: Sequence[Key]) -> SetDigest:
        return SetDigest(len(keys), sum([int.from_bytes(one, "big") for _, one in keys]) % ID_SPACE)

    def drop(self, ids: Iterable[bytes]) -> None:
        """Lose events: nothing that a replica does, but something that a control may."""
        gone = set(ids)
        held = [one for identity, one in self.envelopes.items() if identity not in gone]
        mine, self.__dict__ = self.mine, {}
        self.__init__()  # type: ignore[misc]
        self.mine = mine
        self.receive(held)
        self.told_of.clear()

    # -- erasure --------------------------------------------------------------------------------------------------

    def _note(self, event: Event) -> None:
        """Let an erasure take effect, on what is held and on what is still to come."""
        if event.kind != ERASE_REQUESTED or event.malformed or event.payload is None:
            return
        for target in reading.erasure(event.payload) or ():
            self._named.add((event.header.person, target))
            held = self.events.get(target)
            if held is not None and held.header.person == event.header.person:
                self._doom(_slot(held))

    def _doom(self, slot: Slot) -> None:
        if slot not in self._doomed:
            self._doomed.add(slot)
            for one in self._slots.get(slot, ()):
                self._strip(one)

    def _strip(self, identity: bytes) -> None:
        event = self.events[identity]
        if identity in self.erased or event.kind in INDELIBLE:
            return
        counted = self.holds(identity)
        self.erased.add(identity)
        self.envelopes[identity] = self.envelopes[identity]._replace(body=None)
        self.events[identity] = decode(self.envelopes[identity].header, None)
        if not counted:
            insort(self._keys, (event.header.lamport, identity))


def _slot(event: Event) -> Slot:
    header = event.header
    return (header.person, header.nonce, header.ordinal, header.kind) if header.nonce else event.id
