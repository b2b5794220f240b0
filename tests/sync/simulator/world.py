"""The replicas of one person, the folder and the links between them, and what happens to them in one history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple

from memorize.fold import fold
from memorize.ids import RANDOM_BYTES
from memorize.model import Draft
from memorize.sync.packfile import probe
from memorize.sync.port import Envelope
from memorize.sync.ring import SECRET_BYTES, Keyring, StoreKey, adopt, key_id
from tests.sync.simulator import words
from tests.sync.simulator.carrier import Carrier
from tests.sync.simulator.clock import DAY_MS, LocalClock, WorldTime
from tests.sync.simulator.engines import Backup, Device, events_in, keys_in
from tests.sync.simulator.holding import MemoryHolding
from tests.sync.simulator.invariants import Fold, Promises
from tests.sync.simulator.replica import Replica

CAPTURE_MS: Final = 700


class Rules(NamedTuple):
    """How the replicas behave. Anything but the default is a negative control: it must turn the simulator red."""

    holding: Callable[[], MemoryHolding] = MemoryHolding
    device: type[Device] = Device
    fold: Fold = fold


class World:
    """Everything that exists, and what was promised about it."""

    def __init__(self, random: Random, rules: Rules, trace: Callable[[str], None]) -> None:
        self.random = random
        self.rules = rules
        self.trace = trace
        self.time = WorldTime()
        self.store = random.randbytes(RANDOM_BYTES)
        secret = random.randbytes(SECRET_BYTES)
        self.keys = Keyring(self.store, (StoreKey(key_id(secret), secret, self.store),))
        # Every key that anybody ever had: what one of them opens exists, and what exists must be clean.
        self.secrets = {self.keys.current.id: secret}
        count = random.choice((2, 2, 3, 3, 4, 6))
        self.carrier = Carrier(random, 0)
        self.devices: list[Device] = []
        self.backups: dict[int, Backup] = {}
        self.retired: set[bytes] = set()  # replicas of devices that never come back
        self.strangers: list[str] = []  # packs of others in the folder
        self._keys_then: object = None
        self._reachable: dict[bytes, bytes] = {}
        self._read: dict[bytes, tuple[set[bytes], set[bytes]]] = {}
        self.written: dict[bytes, tuple[bytes, bytes | None]] = {}
        self.nonce_of: dict[bytes, bytes] = {}
        self.ids: set[bytes] = set()
        self.nonces: set[bytes] = set()
        # How these replicas reach each other: by a folder, by links, or some so and some so.
        self.way = random.choice(("folder", "folder", "links", "both", "mixed", "mixed"))
        for number in range(count):
            self.add_device(in_folder=self.way in ("folder", "both") or (self.way == "mixed" and number % 2 == 0))

    def add_device(self, *, in_folder: bool, of: Device | None = None) -> Device:
        """Add a device: a new one, or one that begins as a copy of another."""
        number = len(self.devices)
        offset = self.random.choice((0, 0, 30 * DAY_MS, -30 * DAY_MS, 3_600_000))
        clock = LocalClock(self.time, offset, self.random.randbytes(RANDOM_BYTES))
        replica = Replica(number, self.random, self.store, clock, self.rules.holding())
        folder = (
            self.carrier.folder(self.carrier.add(), lambda path: self.may_delete(replica, path)) if in_folder else None
        )
        device = self.rules.device(replica, folder, self, of)
        self.devices.append(device)
        return device

    def may_delete(self, replica: Replica, path: str) -> bool:
        """Tell whether a replica may delete a file: its own, and those of devices that never come back."""
        return replica.owns(path) or any(one.hex() in path for one in self.retired)

    def alive(self) -> list[Device]:
        """Return the devices that have not been lost."""
        return [one for one in self.devices if not one.lost]

    def linked(self, one: Device, other: Device) -> bool:
        """Tell whether two devices talk to each other directly."""
        if self.way in ("links", "both"):
            return True
        return self.way == "mixed" and (one.folder is None or other.folder is None)

    def pairs(self) -> Iterator[tuple[Device, Device]]:
        """Yield every two devices that talk to each other."""
        alive = self.alive()
        for at, one in enumerate(alive):
            for other in alive[at + 1 :]:
                if self.linked(one, other):
                    yield one, other

    # -- captures -------------------------------------------------------------------------------------------------

    def capture(self, device: Device, draft: Draft, *, ingest: bool) -> None:
        """Have a device capture something, and promise that it is kept."""
        self.time.advance(CAPTURE_MS)
        nonce = device.replica.capture(draft)
        self.nonces.add(nonce)
        self.trace(f"{device.name} captures {draft.kind}")
        if ingest:
            self.ingest(device)

    def ingest(self, device: Device) -> None:
        """Turn what a device captured into events, and promise these too."""
        for envelope in device.replica.ingest():
            self.written[envelope.id] = (envelope.header, envelope.body)
            self.nonce_of[envelope.id] = device.replica.holding.events[envelope.id].header.nonce
            self.ids.add(envelope.id)

    def draft(self, device: Device) -> Draft:
        """Return something to capture."""
        return words.draft(self.random, device.replica.holding.events.values())

    def know(self, keys: Keyring) -> None:
        """Remember the keys that somebody has."""
        self.secrets.update({key.id: key.secret for key in keys.keys})

    # -- what exists ----------------------------------------------------------------------------------------------

    def existing(self) -> set[bytes]:
        """Return the ids and nonces that exist anywhere: in a replica, a spool or a file that a key opens."""
        found: set[bytes] = set()
        for device in self.alive():
            holding = device.replica.holding
            held = [event for event in holding.events.values() if holding.holds(event.id)]
            found.update(event.id for event in held)
            found.update(event.header.nonce for event in held)
            found.update(device.replica.spool)
        # What lies in a folder that nobody looks into any more is as good as gone.
        for data in self.carrier.copies() if any(one.folder is not None for one in self.alive()) else ():
            found |= self.inside(data)[0]
        return found

    def inside(self, data: bytes) -> tuple[set[bytes], set[bytes]]:
        """Return the ids and nonces of the events in a file that any key opens, and the ids of those with a body."""
        if probe(data).key not in self.reachable():
            return set(), set()
        if data not in self._read:
            events = [one for one in events_in(data, self.secrets.get) if self.is_true(one)]
            names = {one.id for one in events} | {self.nonce_of[one.id] for one in events}
            self._read[data] = (names, {one.id for one in events if one.body is not None})
        return self._read[data]

    def reachable(self) -> dict[bytes, bytes]:
        """Return the keys that somebody holds, or can take out of what lies in a folder."""
        alive = self.alive()
        now = (tuple(one.keys for one in alive), tuple(self.carrier.truth))
        if self._keys_then != now:
            keys = {key.id: key for one in alive for key in one.keys.keys}
            ring = adopt(Keyring(self.store, tuple(keys.values())), [row for one in alive for row in one.keys.wrapped])
            packs = [data for data in self.carrier.truth.values() if probe(data).key]
            while (after := adopt(ring, [row for data in packs for row in keys_in(data, ring.find)])) != ring:
                ring = after
            self._keys_then, self._reachable = now, {key.id: key.secret for key in ring.keys}
        return self._reachable

    def is_true(self, envelope: Envelope) -> bool:
        """Tell whether somebody wrote exactly this event."""
        header, body = self.written.get(envelope.id, (b"", b""))
        return envelope.header == header and envelope.body in (None, body)

    def losing(self, act: Callable[[], str]) -> str:
        """Do something that destroys the only copy of what exists nowhere else, and promise no more than is left."""
        before = self.existing()
        done = act()
        gone = before - self.existing()
        self.ids -= gone
        self.nonces -= gone
        return f"{done}; {len(gone)} things that existed nowhere else are gone" if gone else done

    def promises(self) -> Promises:
        """Return what must be there in the end."""
        return Promises(self.ids, self.nonces, self.written)

    def bodies(self, data: bytes) -> set[bytes]:
        """Return the ids of the events whose body can be read from a file."""
        return self.inside(data)[1]
