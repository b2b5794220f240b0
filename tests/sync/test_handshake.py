from __future__ import annotations

from collections.abc import Iterable

import pytest

from memorize.ids import random_id
from memorize.sync import wire
from memorize.sync.handshake import DOORS_MAX, Door, Role
from memorize.sync.peer import doors, given, session
from memorize.sync.port import Envelope, Received
from memorize.sync.ring import Keyring, StoreKey, adopt, key_id, merged, offer, rotate
from memorize.sync.session import Session
from memorize.sync.wire import Frame
from tests.sync.peers import KEY, STORE, events, holding, talk
from tests.sync.simulator.holding import MemoryHolding

OTHER_KEY, OTHER_STORE = b"\x09" * 32, b"\x08" * 16


class Untouched(MemoryHolding):
    """Events that nobody may add to."""

    def receive(self, envelopes: Iterable[Envelope]) -> Received:
        raise AssertionError("something was written")


def untouched() -> Untouched:
    made = Untouched()
    vars(made).update(vars(holding(events(2, 10))))
    return made


@pytest.mark.parametrize(
    ("store", "key", "code"),
    [(STORE, OTHER_KEY, "key"), (OTHER_STORE, OTHER_KEY, "store"), (OTHER_STORE, KEY, "store")],
)
def test_another_key_or_store_is_refused_before_anything_is_written_or_sent(
    store: bytes, key: bytes, code: str
) -> None:
    for turned in (False, True):
        mine, theirs = ((STORE, KEY), (store, key))[:: -1 if turned else 1]
        first = Session(untouched(), mine[1], mine[0], Role.INITIATOR)
        second = Session(untouched(), theirs[1], theirs[0], Role.RESPONDER)
        traffic = talk(first, second)
        for side in (first, second):
            assert side.outcome is not None
            assert not side.outcome.converged
            assert side.outcome.code == code
            assert not side.trusted
        assert not {frame.kind for _, frame in traffic.frames} & {wire.EVENTS, wire.PACKED, wire.PIECE, wire.HEADS}
        assert not any(KEY in wire.encode(frame) or OTHER_KEY in wire.encode(frame) for _, frame in traffic.frames)


def greeted() -> tuple[Session, Session, list[Frame]]:
    """Return both sides, and the answer to the initiator's greeting that the initiator has not seen."""
    first = Session(untouched(), KEY, STORE, Role.INITIATOR)
    second = Session(untouched(), KEY, STORE, Role.RESPONDER)
    return first, second, second.on(first.opening())


def test_a_responder_without_the_key_cannot_prove_it() -> None:
    first, _, answer = greeted()
    hello, proof, *rest = answer
    first.on([hello, proof._replace(fields=(bytes(32),)), *rest])
    assert first.outcome is not None
    assert first.outcome.code == "key"


def test_an_initiator_without_the_key_gets_no_events_and_leaves_none() -> None:
    event = events(1, 1)[0]
    told = Frame(wire.EVENTS, 9, ([wire.record(event)],))
    for frames in ([told], [Frame(wire.PROOF, 9, (bytes(32),)), told], [Frame(wire.WANT, 9, ([event.id],))]):
        _, second, answer = greeted()
        said = second.on(frames)
        assert [frame.kind for frame in said] == [wire.ERROR]
        assert second.outcome is not None
        assert second.outcome.code == "key"
        assert wire.PROOF in {frame.kind for frame in answer}


def test_a_proof_can_be_neither_replayed_nor_reflected() -> None:
    first, second, answer = greeted()
    proof = next(frame for frame in answer if frame.kind == wire.PROOF)
    assert [frame.kind for frame in second.on([proof])] == [wire.ERROR]  # the responder's own, sent back
    later = Session(untouched(), KEY, STORE, Role.INITIATOR)
    later.opening()
    later.on(answer)
    assert later.outcome is not None
    assert later.outcome.code == "key"
    first.on(answer)
    assert first.trusted


def test_two_that_both_began_end_at_once() -> None:
    first, second = (Session(untouched(), KEY, STORE, Role.INITIATOR) for _ in range(2))
    first.on(second.opening())
    assert first.outcome is not None
    assert first.outcome.code == "key"


def test_what_the_other_side_gives_is_handed_on() -> None:
    first = Session(untouched(), KEY, STORE, Role.INITIATOR, gift="열쇠".encode())
    second = Session(holding(), KEY, STORE, Role.RESPONDER)
    talk(first, second)
    assert second.trusted
    assert second.gift.decode() == "열쇠"
    assert first.gift == b""


# -- keys that were renewed, stores that were joined ----------------------------------------------------------------


def new_ring(store: bytes = STORE, secret: bytes = KEY) -> Keyring:
    return Keyring(store, (StoreKey(key_id(secret), secret, store),))


def meet(one: Keyring, other: Keyring) -> tuple[Session, Session]:
    both = events(2, 5)
    first, second = session(holding(both), one, Role.INITIATOR), session(holding(), other, Role.RESPONDER)
    talk(first, second)
    return first, second


def test_a_device_that_has_not_heard_of_a_new_key_is_let_in_by_the_old_one_and_told_the_new_one() -> None:
    old = new_ring()
    new = rotate(rotate(old, b"\x21" * 32, b"s" * 24), b"\x22" * 32, b"t" * 24)
    for pair in ((old, new), (new, old)):
        first, second = meet(*pair)
        assert first.outcome is not None
        assert first.outcome.converged
        late = first if pair[0] is old else second
        assert adopt(old, given(late)).current == new.current


def test_after_a_rotation_by_hand_the_old_key_is_refused() -> None:
    old = new_ring()
    new = rotate(old, b"\x21" * 32, b"s" * 24, by_hand=True)
    assert doors(new) == [Door(STORE, b"\x21" * 32)]
    first, second = meet(old, new)
    assert first.outcome is not None
    assert (first.outcome.code, first.outcome.converged) == ("key", False)
    assert given(second) == ()


def test_a_device_of_a_store_that_was_joined_with_another_one_is_let_in_and_follows() -> None:
    left, chosen = new_ring(), new_ring(OTHER_STORE, OTHER_KEY)
    joined, _ = merged(left, offer(chosen), b"s" * 24)
    first, second = meet(left, joined)
    assert first.outcome is not None
    assert first.outcome.converged
    assert adopt(left, given(first)).store == OTHER_STORE
    assert adopt(joined, given(second)) == joined


def test_nothing_of_an_unproven_peer_is_taken_for_a_key() -> None:
    first = session(holding(), new_ring(), Role.INITIATOR)
    assert given(first) == ()
    first.gift, first.trusted = b"\xc1", True
    assert given(first) == ()
    first.gift = b"\x93\x01\x90\xc0"
    assert given(first) == ()


def test_many_old_keys_still_make_a_greeting() -> None:
    ring = new_ring()
    for number in range(200):
        ring = rotate(ring, number.to_bytes(32, "big"), random_id() + number.to_bytes(8, "big"))
    first, _ = meet(ring, ring)
    assert first.outcome is not None
    assert first.outcome.converged
    assert len(doors(ring)) == 201 > DOORS_MAX
