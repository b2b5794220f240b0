"""Two events under one number of one writer: a copied or restored device made them, and both must come everywhere."""

from __future__ import annotations

from random import Random

import msgpack

from memorize.ids import event_id
from memorize.log.codec import K_SEQ, K_WRITER, encode, new_header
from memorize.model import OBSERVED_NOTE
from memorize.sync import pack, plan
from memorize.sync.chains import Chains, Run, link_of
from memorize.sync.handshake import Role
from memorize.sync.port import Envelope
from memorize.sync.session import Session
from tests.sync.simulator.engines import Device
from tests.sync.simulator.history import settle
from tests.sync.simulator.world import Rules, World

WRITER, REPLICA = b"w" * 16, b"r" * 16


def event(seq: int, prev: bytes, text: str, lamport: int = 0) -> Envelope:
    header = new_header(b"s" * 16, REPLICA, WRITER, OBSERVED_NOTE)._replace(seq=seq, prev=prev, lamport=lamport or seq)
    made = encode(header, {"text": text}, text.encode().ljust(16)[:16])
    return Envelope(made.event.id, made.event.header.lamport, made.header, made.body)


FIRST, OTHER = event(1, b"", "one"), event(1, b"", "하나")
SECOND = event(2, OTHER.id, "two, after the other one")
THIRD = event(3, SECOND.id, "three")


def apart(holdings: tuple[list[Envelope], list[Envelope]]) -> World:
    """Return two devices with one folder that hold so much of a third one's events, and know nothing of each other."""
    seed = next(seed for seed in range(100) if folder_of_two(World(Random(seed), Rules(), lambda line: None)))
    world = World(Random(seed), Rules(), lambda line: None)
    for device, events in zip(world.devices, holdings, strict=True):
        device.replica.holding.receive(events)
        world.written.update({one.id: (one.header, one.body) for one in events})
        world.nonce_of.update({one.id: b"" for one in events})
    return world


def two(holdings: tuple[list[Envelope], list[Envelope]]) -> tuple[Device, Device]:
    """Return them after all is carried between them."""
    world = apart(holdings)
    assert settle(world) == []
    return world.devices[0], world.devices[1]


def folder_of_two(world: World) -> bool:
    return world.way == "folder" and len(world.devices) == 2


def ids(device: Device) -> set[bytes]:
    return {one for one in device.replica.holding.events if device.replica.holding.holds(one)}


def test_twins_meet_in_a_folder() -> None:
    a, b = two(([FIRST], [OTHER]))
    assert ids(a) == ids(b) == {FIRST.id, OTHER.id}


def test_a_writer_that_looks_whole_may_still_lack_a_twin() -> None:
    """One side holds 1 and 2, but 2 came after another 1: what a pack says of its runs is true of that one only."""
    a, b = two(([FIRST, SECOND, THIRD], [OTHER, SECOND, THIRD]))
    assert ids(a) == ids(b) == {FIRST.id, OTHER.id, SECOND.id, THIRD.id}


def test_a_later_event_vouches_for_no_twin_before_it() -> None:
    a, b = two(([FIRST, THIRD], [OTHER, SECOND, THIRD]))
    assert ids(a) == ids(b) == {FIRST.id, OTHER.id, SECOND.id, THIRD.id}


def converged(one: Device, other: Device) -> bool:
    roles = ((one, Role.INITIATOR), (other, Role.RESPONDER))
    sides = [Session(device.replica.holding, b"k" * 32, b"s" * 16, role) for device, role in roles]
    frames, at = sides[0].opening(), 1
    while frames:
        frames, at = sides[at].on(frames), 1 - at
    return all(side.outcome is not None and side.outcome.converged for side in sides)


def test_peers_whose_heads_are_equal_still_find_a_twin() -> None:
    a, b = apart(([FIRST, SECOND, THIRD], [OTHER, SECOND, THIRD])).devices
    assert a.replica.holding.heads() == b.replica.holding.heads()
    assert converged(a, b)
    assert ids(a) == ids(b) == {FIRST.id, OTHER.id, SECOND.id, THIRD.id}


def test_the_run_of_a_twin_begins_where_its_writer_forked() -> None:
    twin = event(3, SECOND.id, "셋")
    fourth = event(4, twin.id, "four, after the twin")
    chains = Chains({THIRD.id, twin.id, fourth.id})
    for one in (OTHER, SECOND, THIRD, twin, fourth):
        chains.add(one.id, link_of(one.header))
    for last, high in ((THIRD, 3), (twin, 3), (fourth, 4)):
        assert chains.holds(Run(WRITER, 1, high, last.id))
        assert chains.holds(Run(WRITER, 2, high, last.id))
        assert not chains.holds(Run(WRITER, 0, high, last.id))
    assert not chains.holds(Run(WRITER, 1, 4, twin.id))


def test_an_event_without_a_place_in_any_chain_travels_too() -> None:
    """A header that names no writer is no event to any fold, but its bytes verify: they are kept and passed on."""
    made = encode(new_header(b"s" * 16, REPLICA, WRITER, OBSERVED_NOTE), {"text": "떠돌이"}, b"0" * 16)
    fields = msgpack.unpackb(made.header, strict_map_key=False)
    raw = msgpack.packb({key: value for key, value in fields.items() if key not in (K_WRITER, K_SEQ)})
    stray = Envelope(event_id(raw), 1, raw, made.body)
    a, b = apart(([FIRST, stray], [FIRST])).devices
    assert converged(a, b)
    assert ids(a) == ids(b) == {FIRST.id, stray.id}
    a, b = two(([FIRST, stray], [FIRST]))
    assert ids(a) == ids(b) == {FIRST.id, stray.id}


def test_a_pack_with_the_header_alone_carries_no_event_whose_body_is_held() -> None:
    """Whoever made it had heard of an erasure that is lost: nobody else did, so the body is still wanted."""
    world = apart(([FIRST], []))
    key = world.keys.current
    made = pack.encode(
        [FIRST._replace(body=None)], 0, world.store, (key.id, key.secret), bytes(32), b"g" * 16, nonce=bytes
    )
    world.carrier.put(0, plan.directory(world.store, b"g" * 16) + made.name, made.data)
    assert settle(world) == []
    assert [ids(device) for device in world.devices] == [{FIRST.id}, {FIRST.id}]
