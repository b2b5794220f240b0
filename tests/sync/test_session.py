from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memorize.errors import CannotWrite
from memorize.limits import PEER_ROUNDS_MAX
from memorize.sync import wire
from memorize.sync.exchange import Pace
from memorize.sync.port import Envelope, Head, Received
from memorize.sync.session import Outcome
from tests.counts import count
from tests.sync.peers import Pen, Traffic, events, holding, sessions, sync, talk
from tests.sync.simulator.holding import MemoryHolding

CUTS = count("peers: sessions cut and resumed", quick=15, full=150)
APPENDS = count("peers: sessions with appends at random moments", quick=60, full=1_000)
STATES_STEP = 30 // count("peers: states in which something else is said", quick=6, full=30)
TRIOS = count("peers: three at once", quick=12, full=80)


def union(*parts: Iterable[Envelope]) -> set[bytes]:
    return {one.id for part in parts for one in part}


def converge(one: MemoryHolding, other: MemoryHolding, **options: object) -> Traffic:
    mine, theirs, traffic = sync(one, other, **options)
    assert mine is not None
    assert theirs is not None
    assert mine.converged, mine
    assert theirs.converged, theirs
    assert one.digest() == other.digest()
    return traffic


def test_equal_replicas_need_one_round_trip() -> None:
    both = events(3, 40)
    traffic = converge(holding(both), holding(both))
    assert traffic.turns == 3  # asked, answered; the third only says goodbye
    assert [frame.kind for who, frame in traffic.frames if who == "other"][-1] == wire.TURN
    assert traffic.bytes < 6_000
    assert converge(holding(), holding()).turns == 3


def test_an_empty_device_gets_everything() -> None:
    all_of_them = events(4, 100)
    full = holding(all_of_them)
    for one, other in ((full, holding()), (holding(), full)):
        converge(one, other)
        assert one.digest() == full.digest()


def a_pace(chance: random.Random) -> Pace:
    frame, turn = chance.choice((300, 2_000, 512 * 1024)), chance.choice((1, 3_000, 10**6))
    return Pace(frame, turn, chance.choice((200, 1_500, 10**6)))


def two_parts(chance: random.Random, writers: int = 4, each: int = 40) -> tuple[list[Envelope], list[Envelope]]:
    """Return two sets that share something: whole writers, beginnings of writers, or any events."""
    everything = events(chance.randint(1, writers), chance.randint(1, each))
    everything += Pen(lamport=chance.choice((0, 5, 10**6))).many(chance.randint(0, each))
    parts = []
    for _ in range(2):
        way, share = chance.random(), chance.choice((0.0, 0.3, 0.95, 1.0))
        if way < 0.3:
            parts.append(everything[: int(len(everything) * share)])
        else:
            parts.append([one for one in everything if chance.random() < share])
    return parts[0], parts[1]


@settings(max_examples=count("peers: pairs of sets", quick=60, full=400))
@given(st.integers(0, 2**32))
@example(5246)  # every event comes twice, one in a turn
def test_any_two_sets_become_their_union(seed: int) -> None:
    chance = random.Random(seed)
    mine, theirs = two_parts(chance)
    one, other = holding(mine), holding(theirs)
    converge(one, other, pace=a_pace(chance))
    assert set(one.envelopes) == set(other.envelopes) == union(mine, theirs)


def test_a_session_cut_after_any_frame_leaves_what_it_brought_and_the_next_one_goes_on() -> None:
    for seed in range(CUTS):
        chance = random.Random(seed)
        mine, theirs = two_parts(chance)
        one, other = holding(mine), holding(theirs)
        pace = Pace(chance.choice((400, 1_200)), chance.choice((800, 3_000)), 1_000)
        before = (set(one.envelopes), set(other.envelopes))
        for cut in range(chance.randint(0, 3), 60, chance.randint(1, 7)):
            talk(*sessions(one, other, pace=pace), each=lambda number, _, cut=cut: number < cut)
            after = (set(one.envelopes), set(other.envelopes))
            assert after[0] >= before[0], seed
            assert after[1] >= before[1], seed
            before = after
        converge(one, other)
        assert set(one.envelopes) == union(mine, theirs), seed


def test_what_came_before_the_cut_is_not_sent_again() -> None:
    everything = events(2, 200)
    full, empty = holding(everything), holding()
    pace = Pace(4_000, 8_000, 10**6)
    talk(*sessions(empty, full, pace=pace), each=lambda number, _: number < 20)
    got = len(empty.envelopes)
    assert 0 < got < len(everything)
    mine, theirs, _ = sync(empty, full, pace=pace)
    assert mine is not None
    assert mine.received == len(everything) - got
    assert theirs is not None
    assert theirs.sent == len(everything) - got


def test_events_that_are_appended_meanwhile_arrive_too() -> None:
    for seed in range(APPENDS):
        chance = random.Random(seed)
        base = Pen()
        one, other = holding(base.many(20)), holding()
        pens = [(one, base), (other, Pen(lamport=20)), (one, Pen(lamport=3))]
        written: list[Envelope] = []

        def append(number: int, _: wire.Frame, chance=chance, pens=pens, written=written) -> bool:
            if number < 60 and chance.random() < 0.3:
                place, pen = chance.choice(pens)
                written.append(pen.write())
                place.receive(written[-1:])
            return True

        first, second = sessions(one, other, pace=Pace(1_000, 2_000, 1_000))
        talk(first, second, each=append)
        assert first.outcome is not None
        assert first.outcome.converged, (seed, first.outcome)
        converge(one, other)
        assert set(one.envelopes) >= union(written)


def test_three_that_speak_at_once_become_equal() -> None:
    for seed in range(TRIOS):
        chance = random.Random(seed)
        parts = [events(2, chance.randint(0, 25)) for _ in range(3)]
        places = [holding(part, parts[0][:5]) for part in parts]
        for _ in range(2):
            pairs = [sessions(places[a], places[b], pace=a_pace(chance)) for a, b in ((0, 1), (1, 2), (2, 0))]
            flights = [(pair, 1, pair[0].opening()) for pair in pairs]
            while flights:  # the frames of three conversations, in any mixture
                at = chance.randrange(len(flights))
                pair, hearer, frames = flights.pop(at)
                answer = pair[hearer].on(frames[:1])
                rest = frames[1:]
                if rest:
                    assert not answer or pair[hearer].outcome is not None
                    flights.append((pair, hearer, rest))
                elif answer:
                    flights.append((pair, 1 - hearer, answer))
        assert {place.digest() for place in places} == {holding(*parts).digest()}, seed


def test_a_peer_that_lost_everything_gets_it_again_from_one_that_remembers_nothing_of_it() -> None:
    everything = events(3, 30)
    one, other = holding(everything[:60]), holding(everything[30:])
    converge(one, other)
    wiped = holding()
    for first, second in ((one, wiped), (wiped, other)):
        converge(first, second)
    assert wiped.digest() == one.digest() == other.digest() == holding(everything).digest()
    full = holding(everything)
    converge(full, holding())
    assert full.digest() == holding(everything).digest()  # nothing was taken away by the empty one


# -- identity -------------------------------------------------------------------------------------------------------


def test_twins_are_kept_on_both_sides() -> None:
    writer = b"\x07" * 16
    ours, theirs = Pen(writer=writer), Pen(writer=writer)
    shared = [ours.write("공통")]
    theirs.seq, theirs.lamport, theirs.prev = 1, 1, shared[0].id
    mine, others = ours.many(5), theirs.many(8)
    one, other = holding(shared, mine), holding(shared, others)
    converge(one, other)
    assert set(one.envelopes) == union(shared, mine, others)
    assert converge(one, other).turns == 3


def test_a_peer_that_knows_more_of_ones_own_writer_is_noticed() -> None:
    pen = Pen()
    written = pen.many(10)
    restored, peer = holding(written[:6]), holding(written)
    restored.mine.add(pen.writer)
    mine, theirs, _ = sync(restored, peer)
    assert mine is not None
    assert theirs is not None
    assert (mine.ahead, theirs.ahead) == ({pen.writer}, frozenset())
    again, _, _ = sync(restored, peer)
    assert again is not None
    assert again.ahead == frozenset()


def test_two_events_with_the_same_words_at_the_same_time_are_two() -> None:
    one, other = holding([Pen().write("같은 말")]), holding([Pen().write("같은 말")])
    converge(one, other)
    assert one.digest().events == 2


# -- bodies ---------------------------------------------------------------------------------------------------------


def test_a_body_that_is_missing_is_fetched_and_two_that_both_lack_it_are_equal() -> None:
    everything = events(2, 20)
    bare = [everything[7]._replace(body=None)]
    one, other = holding(everything[:7], bare, everything[8:]), holding(everything[:7], everything[8:], bare)
    converge(one, other)
    assert not one.holds(everything[7].id)
    third = holding(everything)
    for place in (one, other):
        mine, _, _ = sync(place, third)
        assert mine is not None
        assert mine.converged
        assert mine.received == 1
        assert place.holds(everything[7].id)


def test_an_erased_body_never_comes_back() -> None:
    pen = Pen()
    told, kept = pen.write("비밀 secret"), pen.write("anything else")
    erasure = pen.write(kind="erase.requested", ids=[told.id], reason="")
    clean, late, new = holding([told, kept, erasure]), holding([told, kept]), holding()
    assert clean.envelopes[told.id].body is None
    converge(late, clean)
    converge(new, clean)
    for place in (late, new):
        assert place.envelopes[told.id].body is None
        assert place.envelopes[kept.id].body is not None
    offline = holding([told])
    converge(offline, late)
    assert offline.digest() == clean.digest()
    assert offline.envelopes[told.id].body is None


def test_an_event_that_is_larger_than_a_frame_goes_in_pieces() -> None:
    pen = Pen()
    large = [pen.write("큰 것 " * 100_000), pen.write(), pen.write("나" * 340_000)]
    assert max(len(one.body or b"") for one in large) > 1_000_000
    for options in ({}, {"capabilities": frozenset()}, {"pace": Pace(2_000, 10_000, 1_000)}):
        one, other = holding(large), holding()
        traffic = converge(one, other, **options)
        assert other.digest() == one.digest()
        assert max(len(wire.encode(frame)) for _, frame in traffic.frames) <= 1024 * 1024


# -- what is not as it should be ------------------------------------------------------------------------------------


class Liar(MemoryHolding):
    """Gives one event with another body than it had."""

    def __init__(self, poisoned: bytes) -> None:
        super().__init__()
        self.poisoned = poisoned

    def _spoil(self, found: Iterable[Envelope]) -> list[Envelope]:
        return [one._replace(body=b"x" * 40) if one.id == self.poisoned else one for one in found]

    def get(self, ids: Iterable[bytes]) -> list[Envelope]:  # type: ignore[override]
        return self._spoil(super().get(ids))

    def after(self, head: Head, limit_bytes: int) -> list[Envelope]:
        return self._spoil(super().after(head, limit_bytes))


def test_one_poisoned_event_is_counted_and_all_others_arrive() -> None:
    everything = events(3, 40)
    liar, honest = Liar(everything[50].id), holding()
    liar.receive(everything)
    mine, theirs, traffic = sync(honest, liar)
    assert mine is not None
    assert not mine.converged
    assert mine.bad >= 1
    assert "not what they claim to be" in mine.reason
    assert theirs is not None
    assert not theirs.converged
    assert set(honest.envelopes) == union(everything) - {everything[50].id}
    assert mine.rounds <= PEER_ROUNDS_MAX + 2
    assert traffic.turns < 100
    # It is not passed on either, and an honest peer mends it.
    converge(honest, holding())
    converge(honest, holding(everything))


class Full(MemoryHolding):
    """A disk that is full after a while."""

    def receive(self, envelopes: Iterable[Envelope]) -> Received:
        if len(self.envelopes) > 10:
            raise CannotWrite(path="received", detail="no space left on device")
        return super().receive(envelopes)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_full_disk_ends_the_session_on_both_sides_and_keeps_what_was_written(is_first: bool) -> None:
    everything = events(1, 60)
    full, other = Full(), holding(everything)
    first, second = sessions(*((full, other) if is_first else (other, full)), pace=Pace(2_000, 10**6, 10**6))
    talk(first, second)
    side, peer = (first, second) if is_first else (second, first)
    assert isinstance(side.problem, CannotWrite)
    assert side.outcome is not None
    assert side.outcome.code == "storage"
    assert "no space left" in side.outcome.reason
    assert peer.outcome is not None
    assert peer.problem is None
    assert peer.outcome.code == "storage"
    assert len(full.envelopes) > 10


def outcome_when(at: int, sent: wire.Frame, *, by_responder: bool) -> tuple[Outcome | None, int]:
    """Return how one side ends when the other one says ``sent`` as its ``at``-th frame, and after how many turns."""
    everything = events(3, 30)
    first, second = sessions(holding(everything[:50]), holding(everything[20:]), pace=Pace(1_000, 3_000, 1_000))
    victim = first if by_responder else second
    said = 0
    sides, hearer, frames, turns = (first, second), 1, first.opening(), 0
    while frames and turns < 300:
        turns += 1
        answer: list[wire.Frame] = []
        for frame in frames:
            if sides[hearer] is victim:
                said += 1
            replaced = sent if sides[hearer] is victim and said == at else frame
            answer += sides[hearer].on([replaced])
        if victim.outcome is not None:
            break
        hearer, frames = 1 - hearer, answer
    return victim.outcome, turns


@pytest.mark.parametrize("by_responder", [True, False])
@pytest.mark.parametrize(
    "sent",
    [
        wire.Frame(wire.ERROR, 1, (1, "unsupported", "그런 것은 모릅니다")),
        wire.Frame(99, 1),
        wire.Frame(wire.HELLO, 1, (b"\xc1",)),
        wire.Frame(wire.PROOF, 1, (b"p" * 32,)),
        wire.Frame(wire.PACKED, 1, (b"not zstd",)),
        wire.Frame(wire.PIECE, 1, (b"\xc1", False)),
        wire.Frame(wire.RANGES, 1, (5, b"", [[0, b"", b"f" * 16]])),
    ],
    ids=["error", "unknown", "greeting", "proof", "packed", "piece", "ranges"],
)
def test_whatever_is_said_in_any_state_ends_the_session_in_bounded_time(sent: wire.Frame, by_responder: bool) -> None:
    for at in range(1, 30, STATES_STEP):
        outcome, turns = outcome_when(at, sent, by_responder=by_responder)
        assert turns < 100
        if outcome is None:
            assert sent.kind == wire.PROOF
            continue
        if not outcome.converged:
            assert outcome.reason
            assert outcome.code


def test_an_error_names_the_frame_that_it_answers() -> None:
    first, second = sessions(holding(), holding())
    hello, *_ = first.opening()
    (error,) = second.on([hello, wire.Frame(99, 17)])
    assert error.kind == wire.ERROR
    assert error.fields[0] == 17
    assert first.on([error]) == []
    assert first.outcome is not None
    assert "the other side says" in first.outcome.reason


def test_a_peer_that_always_finds_other_differences_is_given_up() -> None:
    first, second = sessions(holding(events(2, 100)), holding(events(2, 100)))
    frames, turns, chance = first.opening(), 0, random.Random(1)
    while frames and first.outcome is None:
        turns += 1
        assert turns < 500
        answer = second.on(frames)
        lies = [
            frame._replace(fields=(*frame.fields[:2], [[step, key, chance.randbytes(16)] for step, key, _ in items]))
            if frame.kind == wire.RANGES and (items := frame.fields[2])
            else frame
            for frame in answer
            if frame.kind not in (wire.EVENTS, wire.PACKED)
        ]
        frames = first.on(lies)
    assert first.outcome is not None
    assert not first.outcome.converged


def test_more_than_anybody_needs_in_one_turn_is_refused() -> None:
    first, second = sessions(holding(events(1, 3)), holding())
    first.on(second.on(first.opening()))
    assert first.trusted
    want = wire.Frame(wire.WANT, 9, ([b"i" * 32] * 30_000,))
    for _ in range(20):
        first.on([want])
    assert first.outcome is not None
    assert first.outcome.code == "protocol"


# -- programs of other versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", [0, 1])
def test_a_program_with_fewer_capabilities_is_spoken_to_without_them(older: int) -> None:
    everything = events(3, 30)
    one, other = holding(everything[:50]), holding(everything[30:])
    first, second = sessions(one, other)
    fewer = sessions(one, other, capabilities=frozenset())
    pair = (fewer[0], second) if older == 0 else (first, fewer[1])
    traffic = talk(*pair)
    assert pair[0].outcome is not None
    assert pair[0].outcome.converged
    assert wire.PACKED not in {frame.kind for _, frame in traffic.frames}


def test_a_program_with_more_capabilities_is_understood() -> None:
    one, other = holding(events(2, 10)), holding(events(2, 10))
    converge(one, other, capabilities=frozenset({"zstd", "live", "a later one"}))
