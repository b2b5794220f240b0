"""A device: a replica, its keys and its catalog, and the parts of the program that carry events for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from memorize.ids import RANDOM_BYTES
from memorize.log.codec import encode, new_header
from memorize.model import OBSERVED_NOTE
from memorize.sync import handshake, pack, peer, plan, wire
from memorize.sync.catalog import Catalog
from memorize.sync.exchange import Pace
from memorize.sync.folder_sync import FolderReport, Keys, sync_folder
from memorize.sync.handshake import Door, Role
from memorize.sync.packfile import BadPack
from memorize.sync.port import Envelope
from memorize.sync.ring import SALT_BYTES, SECRET_BYTES, Keyring, Wrapped, adopt, rotate, wrapped_from
from memorize.sync.session import Session
from tests.sync.simulator.folder import MemoryFolder
from tests.sync.simulator.replica import Replica, State

if TYPE_CHECKING:
    from tests.sync.simulator.world import World

HOUR_MS: Final = 3600 * 1000
# A folder that goes through in hours what a real one goes through in years.
PACE: Final = plan.Pace(
    fan=(3, 3, 3), fresh=(3_000, 9_000), superseded=5 * HOUR_MS, kept=6, relay=3 * HOUR_MS, again_max=HOUR_MS
)
Secrets = Callable[[bytes], bytes | None]


class Backup(NamedTuple):
    """A copy of a state directory with its keys and its catalog."""

    state: State
    keys: Keyring
    catalog: Catalog


class Device:
    """One machine. ``folder`` is None for one that only talks to others directly."""

    def __init__(self, replica: Replica, folder: MemoryFolder | None, world: World, of: Device | None) -> None:
        self.replica = replica
        self.folder = folder
        self.world = world
        self.lost = False
        self.keys = world.keys
        self.catalog = Catalog()
        self.paused = ""  # what the last round with the folder says that a person should see to
        if of is not None:
            self.become(of.state())

    @property
    def name(self) -> str:
        """What the trace calls it."""
        return f"device {self.replica.number}"

    # -- the state directory --------------------------------------------------------------------------------------

    def state(self) -> Backup:
        """Return a copy of the state directory."""
        return Backup(self.replica.state(), self.keys, copied(self.catalog))

    def become(self, backup: Backup) -> None:
        """Go on from a copy of a state directory."""
        self.replica.become(backup.state)
        self.keys, self.catalog = backup.keys, copied(backup.catalog)

    def known(self) -> object:
        """Return what two devices that have nothing to tell each other have in common."""
        return self.replica.holding.digest(), sorted(key.id for key in self.keys.keys)

    def forget_derived(self) -> None:
        """Lose what can be made anew: index and catalog."""
        self.replica.forget_index()
        self.catalog = Catalog()

    def rotate(self) -> None:
        """Make a new store key, which the others learn of by themselves."""
        self.keys = rotate(self.keys, os.urandom(SECRET_BYTES), os.urandom(SALT_BYTES))
        self.world.know(self.keys)

    # -- the folder -----------------------------------------------------------------------------------------------

    def folder_round(self, *, by_hand: bool = False) -> str:
        """Do one round with the folder; return how it went. ``by_hand``: a person asks for it."""
        assert self.folder is not None
        keys = Keys(self.keys)
        report = sync_folder(
            self.replica.holding,
            keys,
            self.folder,
            self.catalog,
            self.replica.clock,
            self.replica.incarnation.replica,
            erased=self.replica.holding.erased,
            retired=self.world.retired,
            by_hand=by_hand,
            pace=PACE,
            random=os.urandom,
        )
        self.keys, self.paused = keys.ring, report.paused
        self.replica.heed()
        return told(report)

    # -- others ---------------------------------------------------------------------------------------------------

    def session(self, role: Role, pace: Pace) -> Session:
        """Return this device's side of a conversation."""
        current, *older = peer.doors(self.keys)
        gift = peer._gift(self.keys)
        return Session(self.replica.holding, current.secret, current.store, role, older=older, pace=pace, gift=gift)

    def hung_up(self, side: Session) -> None:
        """Do what is to be done behind a conversation."""
        self.keys = adopt(self.keys, peer.given(side))
        self.replica.heed()

    def hear_noise(self) -> str:
        """Listen to somebody who is no peer: nothing may come of it."""
        random, before = self.world.random, self.replica.holding.digest()
        side = self.session(random.choice(list(Role)), Pace())
        side.opening()
        for _ in range(random.randint(1, 6)):
            side.on([_noise(random.random() < 0.5, random.randbytes, random.randrange)])
        assert self.replica.holding.digest() == before, "noise became an event"
        return side.outcome.reason if side.outcome is not None else "nothing"


def copied(catalog: Catalog) -> Catalog:
    """Return a copy of a catalog that lives in memory."""
    other = Catalog()
    other.rows, other.facts, other.erased = dict(catalog.rows), catalog.facts, set(catalog.erased)
    return other


def told(report: FolderReport) -> str:
    """Return what a round did, for the trace."""
    states = {state: count for state, count in report.states.items() if count}
    said = [f"{report.imported} packs taken in", f"{report.received.new} new events"]
    said += [f"{name} {value}" for name, value in report.published._asdict().items() if value]
    said += [f"{count} {state}" for state, count in states.items()]
    said += [report.paused] if report.paused else []
    return ", ".join(said + (["others know more of it"] if report.ahead else []))


def _noise(formed: bool, randbytes: Callable[[int], bytes], randrange: Callable[[int], int]) -> wire.Frame:
    """Return a frame that is none, or one at the wrong time."""
    if formed:
        return wire.Frame(wire.EVENTS, randrange(9), ([[randbytes(30), randbytes(20), b""]],))
    raw = handshake.greeting([Door(randbytes(RANDOM_BYTES), randbytes(SECRET_BYTES))], frozenset(), randbytes(32)).raw
    return wire.Frame(wire.HELLO, 1, (raw if randrange(2) else randbytes(50),))


def strange_pack(events: list[Envelope], keys: Keyring, randbytes: Callable[[int], bytes]) -> tuple[str, bytes]:
    """Return path and bytes of a pack that somebody sealed with a key of his own."""
    secret = randbytes(SECRET_BYTES)
    key = (randbytes(16), secret) if randbytes(1)[0] % 2 else (keys.current.id, secret)
    replica = randbytes(RANDOM_BYTES)
    made = pack.encode(events, 0, keys.store, key, randbytes(32), replica, nonce=randbytes)
    return plan.directory(keys.store, replica) + made.name, made.data


def forged_pack(events: list[Envelope], keys: Keyring, randbytes: Callable[[int], bytes]) -> tuple[str, bytes]:
    """Return path and bytes of a pack under the right key whose events, known or not, are not what headers promise."""
    store, replica, writer = (randbytes(RANDOM_BYTES) for _ in range(3))
    forged = [one._replace(body=one.body + b"!") for one in events if one.body is not None and randbytes(1)[0] % 2]
    for number in range(1, 1 + len(events)):
        header = new_header(store, replica, writer, OBSERVED_NOTE)._replace(seq=number)
        made = encode(header, {"text": "가짜"}, randbytes(RANDOM_BYTES))
        forged.append(Envelope(made.event.id, 1, made.header, made.body + b"!"))
    key = (keys.current.id, keys.current.secret)
    sealed = pack.encode(forged, 0, keys.store, key, randbytes(32), replica, nonce=randbytes)
    return plan.directory(keys.store, replica) + sealed.name, sealed.data


def events_in(data: bytes, secret_of: Secrets) -> list[Envelope]:
    """Return what a file holds that one of the keys opens."""
    try:
        return list(pack.decode(data, secret_of).envelopes)
    except BadPack:
        return []


def keys_in(data: bytes, secret_of: Secrets) -> list[Wrapped]:
    """Return the keys that a file holds for those who have one of these."""
    try:
        rows = pack.decode(data, secret_of).wrapped
    except BadPack:
        return []
    return [one for one in map(wrapped_from, rows) if one is not None]
