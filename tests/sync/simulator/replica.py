"""One state directory: a spool, a chain of events, what it holds, and its place among its likes.

It follows the same rules as ``log``: a capture lies in the spool until its event is written; a replica is renewed when
the directory is seen to be a copy, a writer at each boot.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

import msgpack

from memorize.ids import RANDOM_BYTES, commitment, event_id
from memorize.limits import LAMPORT_LEAP_MAX
from memorize.log.codec import KNOWN_KEYS, Encoded, decode, encode, new_header, tidy
from memorize.model import DEVICE_HELLO, OBSERVED_PROMPT, Draft
from memorize.sync.port import Envelope
from tests.sync.simulator.clock import LocalClock
from tests.sync.simulator.holding import MemoryHolding

# Keys and flags that only a later version knows.
_LATER_KEY: Final = max(KNOWN_KEYS) + 7


class Incarnation(NamedTuple):
    """Who writes: what ``identity`` keeps on disk."""

    replica: bytes
    writer: bytes
    seq: int = 0
    prev: bytes = b""


class State(NamedTuple):
    """What a copy of a state directory is made of."""

    incarnation: Incarnation
    spool: Mapping[bytes, Draft]
    holding: MemoryHolding
    replicas: frozenset[bytes]


class Replica:
    """One device. ``number`` is its name in traces; what it holds outlives every renewal."""

    def __init__(self, number: int, random: Random, store: bytes, clock: LocalClock, holding: MemoryHolding) -> None:
        self.number = number
        self.random = random
        self.store = store
        self.clock = clock
        self.holding = holding
        self.spool: dict[bytes, Draft] = {}
        self.incarnation = Incarnation(random.randbytes(RANDOM_BYTES), random.randbytes(RANDOM_BYTES))
        self.greeted = b""
        # Every replica that this state directory was: their directories in a folder are its own.
        self.replicas = {self.incarnation.replica}

    # -- captures -------------------------------------------------------------------------------------------------

    def capture(self, draft: Draft) -> bytes:
        """Drop something into the spool; from now on it is kept."""
        nonce = self.random.randbytes(RANDOM_BYTES)
        self.spool[nonce] = draft
        return nonce

    def ingest(self) -> list[Envelope]:
        """Turn what lies in the spool into events, and return those as they were written."""
        made = []
        if self.spool and self.greeted != self.incarnation.replica:
            made.append(self._write(b"", Draft(DEVICE_HELLO, {"device": "기기", "name": str(self.number)})))
            self.greeted = self.incarnation.replica
        for nonce, draft in self.spool.items():
            if (nonce, draft.ordinal) not in self.holding.nonces:
                made.append(self._write(nonce, draft))
        self.spool.clear()
        return made

    def _write(self, nonce: bytes, draft: Draft) -> Envelope:
        who = self.incarnation
        header = new_header(self.store, who.replica, who.writer, draft.kind)._replace(
            seq=who.seq + 1,
            prev=who.prev,
            lamport=self.holding.top + 1,
            deps=draft.deps,
            nonce=nonce,
            ordinal=draft.ordinal,
            boot=self.clock.boot(),
            mono=self.clock.monotonic_ns(),
            wall=max(0, self.clock.wall_ms()),
        )
        payload = tidy(draft.payload)
        later = self.random.random()
        if draft.kind == OBSERVED_PROMPT and later < 0.2:
            # A body that nobody here can read, under a key that nobody here has.
            header = header._replace(scope_key=self.random.randbytes(RANDOM_BYTES))
        elif later < 0.03:
            header = header._replace(lamport=self.holding.top + LAMPORT_LEAP_MAX + self.random.randint(1, 9))
        encoded = encode(header, payload, self.random.randbytes(RANDOM_BYTES))
        if later > 0.93:
            encoded = self._of_a_later_version(encoded)
        envelope = Envelope(encoded.event.id, encoded.event.header.lamport, encoded.header, encoded.body)
        self.holding.mine.add(who.writer)
        self.holding.receive([envelope])
        self.holding.told_of.clear()
        self.incarnation = who._replace(seq=who.seq + 1, prev=envelope.id)
        return envelope

    def _of_a_later_version(self, encoded: Encoded) -> Encoded:
        """Return the event as a program would write it that knows more than this one does."""
        fields = msgpack.unpackb(encoded.header, raw=False, strict_map_key=False)
        fields[_LATER_KEY] = {"새": self.random.randint(0, 9)}
        if self.random.random() < 0.3:
            fields[18] = [_LATER_KEY]
        body = encoded.body
        if self.random.random() < 0.2:
            body += b"\x00 of another form"
            fields[9], fields[10] = len(body), commitment(body)
        raw = msgpack.packb(fields, use_bin_type=True)
        event = decode(raw, body)
        assert event.id == event_id(raw)
        return Encoded(event, raw, body)

    # -- incarnations ---------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return a copy of the state directory."""
        return State(self.incarnation, dict(self.spool), self.holding.copy(), frozenset(self.replicas))

    def become(self, state: State) -> None:
        """Go on from a copy of a state directory."""
        self.incarnation, self.spool, self.holding = state.incarnation, dict(state.spool), state.holding.copy()
        self.replicas |= state.replicas

    def forget_index(self) -> None:
        """Make the index anew from what lies in the log, in whatever order that is found."""
        held = list(self.holding.envelopes.values())
        self.random.shuffle(held)
        fresh = type(self.holding)()
        fresh.mine = set(self.holding.mine)
        fresh.receive(held)
        fresh.told_of.clear()
        assert fresh.digest() == self.holding.digest(), "an index made anew holds something else"
        self.holding = fresh

    def heed(self) -> None:
        """Become another one when something came in that this replica is said to have written and does not know."""
        if self.incarnation.replica in self.holding.told_of:
            self.renew_replica()
        self.holding.told_of.clear()

    def owns(self, path: str) -> bool:
        """Tell whether a file of a folder lies in a directory of its own."""
        return not {one.hex() for one in self.replicas}.isdisjoint(path.split("/"))

    def selves(self) -> set[bytes]:
        """Return this replica and the earlier ones that it still knows to have been."""
        events = self.holding.events.values()
        known = {event.header.replica for event in events if event.header.writer in self.holding.mine}
        return known | {self.incarnation.replica}

    def renew_writer(self) -> None:
        """Begin a new chain, as after a boot."""
        self.incarnation = Incarnation(self.incarnation.replica, self.random.randbytes(RANDOM_BYTES))

    def renew_replica(self) -> None:
        """Become another one: this directory is a copy, or others know more of it than it does."""
        self.incarnation = Incarnation(self.random.randbytes(RANDOM_BYTES), self.random.randbytes(RANDOM_BYTES))
        self.replicas.add(self.incarnation.replica)
