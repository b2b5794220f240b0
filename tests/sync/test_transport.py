from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from memorize.errors import CannotWrite
from memorize.sync.exchange import Pace
from memorize.sync.handshake import Role
from memorize.sync.port import Envelope, Received
from memorize.sync.session import Outcome, Session
from memorize.sync.transport import Bell, SocketStream, Stream, pair, run, serve_live
from memorize.sync.wire import Frame, encode
from tests.counts import count
from tests.sync.peers import KEY, STORE, Pen, events, holding
from tests.sync.simulator.holding import MemoryHolding

PATIENCE_S = 120.0
NOISE = count("peers: random bytes as a peer", quick=40, full=2_000)


def side(place: MemoryHolding, role: Role, **options: object) -> Session:
    return Session(place, KEY, STORE, role, **options)


class Running:
    """Something that runs in a thread; ``result`` waits for it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._found: list[object] = []
        self._thread = threading.Thread(target=lambda: self._found.append(work()), daemon=True)
        self._thread.start()

    def result(self) -> object:
        self._thread.join(PATIENCE_S)
        assert self._found, "it did not come to an end"
        return self._found[0]


def test_two_replicas_converge_over_a_stream() -> None:
    everything = events(4, 400)
    one, other = holding(everything[:900]), holding(everything[700:])
    here, there = pair()
    peer = Running(lambda: run(side(other, Role.RESPONDER), there)[0])
    told: list[tuple[int, int]] = []
    outcome, link = run(side(one, Role.INITIATOR), here, progress=lambda *now: told.append(now))
    assert outcome.converged
    assert peer.result() == Outcome(True, outcome.received, outcome.sent, rounds=1)
    assert one.digest() == other.digest()
    assert link.bytes_in > 1_000 < link.bytes_out
    assert told == sorted(told)
    assert told[-1] == (outcome.sent + outcome.received,) * 2


def test_a_turn_that_fills_every_buffer_stops_nobody() -> None:
    large = [Pen().write("가" * 100_000) for _ in range(60)]
    one, other = holding(large[:30]), holding(large[30:])
    here, there = pair()
    peer = Running(lambda: run(side(other, Role.RESPONDER, capabilities=frozenset()), there)[0])
    outcome, _ = run(side(one, Role.INITIATOR, capabilities=frozenset()), here)
    assert outcome.converged
    assert peer.result().converged  # type: ignore[attr-defined]


def test_random_bytes_as_a_peer_end_the_session_and_nothing_else() -> None:
    for seed in range(NOISE):
        chance = random.Random(seed)
        here, there = socket.socketpair()
        data = chance.randbytes(chance.choice((0, 1, 5, 300, 70_000)))
        if chance.random() < 0.5:
            data = (len(data) + 1).to_bytes(4, "big") + b"\1" + data
        there.sendall(data)
        there.shutdown(socket.SHUT_WR)
        outcome, _ = run(side(holding(), chance.choice(list(Role))), SocketStream(here), idle_s=PATIENCE_S)
        assert not outcome.converged
        assert outcome.code in ("protocol", "closed")
        there.close()


@pytest.mark.parametrize("role", list(Role))
def test_a_peer_that_says_nothing_is_given_up(role: Role) -> None:
    here, there = pair()
    outcome, _ = run(side(holding(), role), here, idle_s=0.2)
    assert (outcome.converged, outcome.code) == (False, "idle")
    there.close()


def test_a_peer_that_talks_without_getting_anywhere_is_given_up_too() -> None:
    here, there = pair()
    one = side(holding(events(1, 5)), Role.INITIATOR)
    other = side(holding(), Role.RESPONDER)

    def chatter() -> None:
        answer = other.on(one_frames)
        there.write(b"".join(map(encode, answer)), PATIENCE_S)
        empty = encode(Frame(7, 1, ([],)))
        with contextlib.suppress(OSError):
            while True:
                there.write(empty, PATIENCE_S)
                time.sleep(0.01)

    one_frames = one.opening()
    one.opening = list  # type: ignore[method-assign]
    talker = Running(chatter)
    outcome, link = run(one, here, idle_s=0.5)
    assert outcome.code == "idle"
    assert link.bytes_in > 0
    talker.result()
    there.close()


def test_a_peer_that_does_not_read_is_given_up() -> None:
    here, there = pair()
    large = holding([Pen().write("가" * 300_000) for _ in range(8)])
    one = side(large, Role.INITIATOR, capabilities=frozenset())
    other = side(holding(), Role.RESPONDER, capabilities=frozenset())

    opened = one.opening()
    there.write(b"".join(map(encode, other.on(opened))), PATIENCE_S)
    one.opening = list  # type: ignore[method-assign]
    outcome, _ = run(one, here, idle_s=0.3)
    assert outcome.code == "idle"
    there.close()


def test_a_peer_that_dies_is_noticed_and_what_it_sent_stays() -> None:
    everything = events(2, 300)
    empty = holding()
    here, there = pair()
    dying = side(holding(everything), Role.RESPONDER, pace=Pace(2_000, 20_000, 10**6))

    def die(moved: int, _: int) -> None:
        if moved > 50:
            there.close()

    peer = Running(lambda: run(dying, there, progress=die)[0])
    outcome, _ = run(side(empty, Role.INITIATOR), here)
    assert not outcome.converged
    assert outcome.code == "closed"
    assert len(empty.envelopes) >= 50
    assert peer.result().code == "closed"  # type: ignore[attr-defined]


class Full(MemoryHolding):
    def receive(self, envelopes: Iterable[Envelope]) -> Received:
        raise CannotWrite(path="received", detail="no space left on device")


def test_a_problem_of_this_side_is_raised_and_the_peer_is_told() -> None:
    here, there = pair()
    peer = Running(lambda: run(side(holding(events(1, 5)), Role.RESPONDER), there)[0])
    with pytest.raises(CannotWrite):
        run(side(Full(), Role.INITIATOR), here)
    assert peer.result().code == "storage"  # type: ignore[attr-defined]


# -- connections that stay --------------------------------------------------------------------------------------------


class Locked(MemoryHolding):
    """One replica in two threads: the connection's, and the one that captures."""

    def __init__(self) -> None:
        super().__init__()
        lock = threading.RLock()
        for name in ("digest", "range_digest", "keys", "bounds", "heads", "spans", "after", "get", "receive"):
            setattr(self, name, self._alone(lock, getattr(self, name)))

    @staticmethod
    def _alone(lock: threading.RLock, method: Callable[..., object]) -> Callable[..., object]:
        def alone(*words: object) -> object:
            with lock:
                found = method(*words)
                return list(found) if isinstance(found, Iterator) else found

        return alone


class Live:
    """One end of a connection that stays."""

    def __init__(self, stream: Stream, role: Role, every_s: float, part: Iterable[Envelope]) -> None:
        self.place = Locked()
        self.place.receive(part)
        self.bell = Bell()
        self.leaving = False
        self.notes: list[Outcome] = []
        session = side(self.place, role, stays=True)
        self.running = Running(
            lambda: serve_live(
                session,
                stream,
                self.bell,
                note=self.notes.append,
                is_leaving=lambda: self.leaving,
                idle_s=PATIENCE_S,
                every_s=every_s,
            )
        )

    def captures(self, pen: Pen, *, ring: bool = True) -> Envelope:
        event = pen.write()
        self.place.receive([event])
        if ring:
            self.bell.ring()
        return event

    def waits_for(self, *wanted: Envelope) -> None:
        end = time.monotonic() + PATIENCE_S
        while not all(one.id in self.place.envelopes for one in wanted):
            assert time.monotonic() < end, "it did not arrive"
            time.sleep(0.02)


@contextlib.contextmanager
def connected(every_s: float = 3_600.0) -> Iterator[tuple[Live, Live]]:
    here, there = pair()
    ends = (Live(here, Role.INITIATOR, every_s, events(1, 5)), Live(there, Role.RESPONDER, every_s, events(2, 5)))
    yield ends
    for end in ends:
        end.leaving = True
        end.bell.ring()
    for end in ends:
        assert end.running.result().code == "closed"  # type: ignore[attr-defined]
        end.bell.close()


def test_new_events_travel_in_both_directions_while_connected() -> None:
    with connected() as ends:
        pens = (Pen(lamport=10), Pen(lamport=20))
        for number in range(6):
            writer, reader = ends[number % 2], ends[1 - number % 2]
            reader.waits_for(writer.captures(pens[number % 2]))
        assert all(note.converged for end in ends for note in end.notes)
        assert len(ends[0].notes) >= 4


def test_many_events_at_once_take_few_rounds() -> None:
    with connected() as (here, there):
        here.waits_for(there.captures(Pen(lamport=5)))
        rounds, pen = len(here.notes), Pen(lamport=40)
        written = [here.captures(pen) for _ in range(300)]
        there.waits_for(*written)
        assert len(here.notes) - rounds < 100


def test_both_may_have_news_at_the_same_moment() -> None:
    with connected() as (here, there):
        pens = (Pen(lamport=10), Pen(lamport=20))
        for _ in range(5):
            mine, theirs = here.captures(pens[0]), there.captures(pens[1])
            here.waits_for(theirs)
            there.waits_for(mine)


def test_without_any_hint_the_regular_comparison_brings_events_over() -> None:
    with connected(every_s=0.3) as (here, there):
        here.waits_for(there.captures(Pen(lamport=7), ring=False))
        there.waits_for(here.captures(Pen(lamport=8), ring=False))


def test_a_responder_that_hears_nothing_any_more_gives_up() -> None:
    here, there = pair()
    end = Live(there, Role.RESPONDER, 0.2, [])
    first = side(holding(), Role.INITIATOR, stays=True)
    link_end, bell = threading.Event(), Bell()

    def once_and_silent() -> None:
        serve_live(first, here, bell, note=lambda _: link_end.wait(PATIENCE_S), every_s=3_600.0)

    silent = Running(once_and_silent)
    assert end.running.result().code == "idle"  # type: ignore[attr-defined]
    link_end.set()
    silent.result()
    end.bell.close()
    bell.close()


def test_a_peer_that_does_not_stay_is_served_once() -> None:
    here, there = pair()
    both = events(1, 5)
    peer = Running(lambda: run(side(holding(both), Role.RESPONDER), there)[0])
    bell, notes = Bell(), []
    outcome = serve_live(side(holding(), Role.INITIATOR, stays=True), here, bell, note=notes.append)
    assert outcome.converged
    assert notes == []
    assert peer.result().converged  # type: ignore[attr-defined]
    bell.close()


def test_a_bell_can_ring_before_anybody_waits_and_any_number_of_times() -> None:
    bell = Bell()
    assert not bell.hush()
    for _ in range(100_000):
        bell.ring()
    assert bell.hush()
    while bell.hush():
        pass
    bell.ring()
    bell.close()
    bell.ring()
