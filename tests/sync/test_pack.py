"""Packs as bytes: what goes in comes out, and nothing else comes out of anything."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import msgpack
import pytest
import zstandard
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from memorize.sync.chains import Chains, Run, link_of
from memorize.sync.pack import Builder, decode, encode, pack_name
from memorize.sync.packfile import (
    BAD,
    CHUNK_BYTES,
    END,
    HEADER,
    MAGIC,
    NEWER,
    OTHER,
    OURS,
    PENDING,
    UNKNOWN_KEY,
    BadPack,
    probe,
    seal,
)
from memorize.sync.port import Envelope
from memorize.sync.ring import key_id
from tests.counts import count
from tests.sync.peers import Pen

STORE, REPLICA = b"\x01" * 16, b"\x05" * 16
SECRET = bytes(range(32))
KEY = (key_id(SECRET), SECRET)
SCOPE = (b"\x0a" * 16, b"\x0b" * 32)
FIXTURE = Path(__file__).parent.parent / "data" / "packs" / "generation-1.mzp"
ROUNDS = count("bit flips in a pack", quick=200, full=4_000)


def find(identity: bytes) -> bytes | None:
    return SECRET if identity == KEY[0] else None


def dice(seed: int = 0):
    return random.Random(seed).randbytes


def sealed(events: list[Envelope], **options: object):
    options.setdefault("nonce", dice(1))
    return encode(events, 0, STORE, KEY, bytes(32), REPLICA, **options)


def opened(data: bytes, scope_secret=None) -> list[Envelope]:
    return list(decode(data, find, scope_secret).envelopes)


def state_of(data: bytes) -> str:
    """Return what a reader makes of bytes: the state of the pack, or that it is read whole."""
    try:
        return "read" if opened(data) is not None else ""
    except BadPack as error:
        return error.state


class TestRoundTrip:
    @given(
        st.lists(st.text(max_size=200), max_size=20),
        st.binary(min_size=32, max_size=32),
        st.integers(min_value=0, max_value=9),
    )
    def test_events_come_out_as_they_went_in_byte_for_byte(self, texts, salt, level):
        pen = Pen()
        events = [pen.write(text) for text in texts]
        made = encode(events, level, STORE, KEY, salt, REPLICA, nonce=dice())
        pack = decode(made.data, find)
        assert list(pack.envelopes) == events
        assert (pack.store, pack.key, pack.replica, pack.events) == (STORE, KEY[0], REPLICA, len(texts))
        whole = (Run(pen.writer, 1, len(texts), pen.prev),) if texts else ()
        assert pack.runs == made.runs == whole

    def test_an_erased_body_and_a_signature_travel_as_they_are(self):
        first, second = Pen().many(2)
        events = [first._replace(body=None), second._replace(signature=b"\x09" * 64)]
        assert opened(sealed(events).data) == events

    def test_a_header_with_unknown_keys_travels_byte_for_byte(self):
        event = Pen().write()
        header = msgpack.packb({**msgpack.unpackb(event.header, strict_map_key=False), 99: ["새로운", 1]})
        from memorize.ids import event_id

        strange = event._replace(id=event_id(header), header=header)
        assert opened(sealed([strange]).data) == [strange]

    def test_a_pack_of_many_chunks_is_read_in_order(self):
        pen = Pen()
        noise = random.Random(3)
        events = [pen.write(noise.randbytes(40_000).hex()) for _ in range(120)]
        made = sealed(events)
        assert len(made.data) > 4 * 1024 * 1024 > 8 * CHUNK_BYTES
        assert opened(made.data) == events

    def test_wrapped_keys_travel_without_events(self):
        rows = [["store", b"new", b"old", 1]]
        pack = decode(sealed([], wrapped=rows).data, find)
        assert [list(row) for row in pack.wrapped] == rows
        assert (pack.events, pack.runs, list(pack.envelopes)) == (0, (), [])

    def test_two_packs_of_the_same_events_have_different_names_and_bytes(self):
        events = Pen().many(3)
        one = encode(events, 1, STORE, KEY, b"\x01" * 32, REPLICA, nonce=dice())
        other = encode(events, 1, STORE, KEY, b"\x02" * 32, REPLICA, nonce=dice())
        assert one.name != other.name
        assert one.data[HEADER.size : -56] != other.data[HEADER.size : -56]

    def test_a_name_has_no_letter_that_any_file_system_could_change(self):
        name = pack_name(2, b"bytes")
        assert name == f"2-{blake3(b'bytes').hexdigest()[:16]}.mzp"
        assert name == name.lower()
        assert name.isascii()

    def test_nothing_of_an_event_can_be_read_in_the_file(self):
        event = Pen().write("비밀 문장 secret sentence")
        data = sealed([event]).data
        for part in (b"secret", "비밀".encode(), event.id, event.header[20:60], SECRET):
            assert part not in data


class TestScopes:
    def test_a_body_under_a_scope_key_needs_that_key(self):
        secret_event, open_event = Pen().many(2)
        made = sealed([secret_event, open_event], scope_of=lambda one: SCOPE if one is secret_event else None)
        with_key = decode(made.data, find, {SCOPE[0]: SCOPE[1]}.get)
        assert list(with_key.envelopes) == [secret_event, open_event]
        assert with_key.missing == set()
        without = decode(made.data, find)
        assert list(without.envelopes) == [secret_event._replace(body=None), open_event]
        assert without.missing == {SCOPE[0]}

    def test_a_wrong_scope_key_is_refused(self):
        made = sealed(Pen().many(1), scope_of=lambda one: SCOPE)
        with pytest.raises(BadPack) as caught:
            opened(made.data, lambda _: b"\x0c" * 32)
        assert caught.value.state == BAD

    def test_a_body_sealed_twice_differs(self):
        event = Pen().write()
        chance = dice(5)
        one, other = (sealed([event], scope_of=lambda _: SCOPE, nonce=chance) for _ in range(2))
        assert one.data != other.data


class TestWhatIsNotWhole:
    def test_a_pack_cut_at_any_length_is_pending(self):
        data = sealed(Pen().many(3)).data
        assert {state_of(data[:size]) for size in range(len(data))} == {PENDING}
        assert state_of(data) == "read"

    def test_a_file_that_was_made_at_its_full_length_first_is_pending(self):
        data = sealed(Pen().many(3)).data
        assert state_of(bytes(len(data))) == PENDING
        assert state_of(data[:100] + bytes(len(data) - 100)) == PENDING
        assert state_of(b"") == PENDING

    def test_what_is_appended_to_a_pack_makes_it_pending(self):
        assert state_of(sealed(Pen().many(3)).data + b"\0") == PENDING

    def test_no_bit_flip_gives_other_events(self):
        data = sealed(Pen().many(5)).data
        chance = random.Random(7)
        for _ in range(ROUNDS):
            at = chance.randrange(len(data) * 8)
            flipped = bytearray(data)
            flipped[at // 8] ^= 1 << at % 8
            assert state_of(bytes(flipped)) in (BAD, PENDING, OTHER, NEWER)

    def test_a_flipped_bit_with_a_digest_that_was_mended_is_refused(self):
        data = bytearray(sealed(Pen().many(5)).data)
        for at in range(HEADER.size, len(data) - 56, 7):
            forged = bytearray(data)
            forged[at] ^= 1
            forged[-40:-8] = blake3(bytes(forged[:-40])).digest()
            assert state_of(bytes(forged)) == BAD

    def test_chunks_cannot_be_left_out_or_exchanged(self):
        noise = random.Random(3)
        pen = Pen()
        data = sealed([pen.write(noise.randbytes(100_000).hex()) for _ in range(8)]).data
        size = CHUNK_BYTES + 16
        body = data[HEADER.size : -56]
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        assert len(chunks) >= 3
        for other in (chunks[1:], chunks[:-1], [chunks[1], chunks[0], *chunks[2:]]):
            inner = data[: HEADER.size] + b"".join(other)
            front = struct.pack(">QQ", len(inner) + 56, 8)
            assert state_of(inner + front + blake3(inner + front).digest() + END) == BAD


class TestWhatIsNotOurs:
    def test_a_pack_under_another_key_is_told_by_its_key(self):
        made = encode(Pen().many(1), 0, STORE, (b"\x07" * 16, b"\x08" * 32), bytes(32), REPLICA, nonce=dice())
        assert probe(made.data).state == OURS
        assert state_of(made.data) == UNKNOWN_KEY

    def test_a_pack_that_names_a_key_that_did_not_seal_it_is_bad(self):
        made = encode(Pen().many(1), 0, STORE, (KEY[0], b"\x08" * 32), bytes(32), REPLICA, nonce=dice())
        assert state_of(made.data) == BAD

    def test_a_later_generation_is_told_apart(self):
        data = bytearray(sealed(Pen().many(1)).data)
        data[len(MAGIC) + 1] = 2
        assert state_of(bytes(data)) == NEWER

    @given(st.binary(max_size=2_000))
    def test_random_bytes_raise_nothing_but_the_one_error(self, data):
        assert state_of(data) in (PENDING, OTHER, NEWER, BAD)

    @given(st.binary(max_size=500), st.integers(min_value=0, max_value=2**64 - 1))
    def test_random_bytes_in_a_pack_of_ours_raise_nothing_but_the_one_error(self, inner, events):
        """A program with our key may be wrong; it must not take this one with it."""
        from collections import deque

        for stream in (inner, zstandard.compress(inner)):
            assert state_of(seal(deque([stream]), STORE, KEY, bytes(32), events)) in (BAD, "read")

    @given(st.recursive(st.none() | st.binary(max_size=40) | st.integers(0, 2**63), st.lists, max_leaves=12))
    def test_records_of_any_form_raise_nothing_but_the_one_error(self, record):
        from collections import deque

        index = msgpack.packb({0: REPLICA, 1: 1, 2: b"", 3: []})
        stream = zstandard.compress(index) + zstandard.compress(msgpack.packb(record))
        assert state_of(seal(deque([stream]), STORE, KEY, bytes(32), 1)) in (BAD, "read")

    def test_what_unpacks_to_far_more_than_it_is_costs_little_memory(self):
        from collections import deque

        index = zstandard.compress(msgpack.packb({0: REPLICA, 1: 1, 2: b"", 3: []}))
        bomb = zstandard.compress(b"\xc6\x7f\xff\xff\xff" + bytes(400 * 1024 * 1024))
        nested = zstandard.compress(b"\xdd\x00\x00\x03\xe7" * 100_000)
        for inner in (bomb, nested):
            data = seal(deque([index, inner]), STORE, KEY, bytes(32), 1)
            tracemalloc.start()
            assert state_of(data) == BAD
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 100 * 1024 * 1024


def test_a_large_pack_is_neither_made_nor_read_with_much_memory():
    noise = random.Random(1)
    pen = Pen()
    events = (pen.write(noise.randbytes(30_000).hex()) for _ in range(800))
    tracemalloc.start()
    builder = Builder()
    for event in events:
        builder.add(event, dice())
    data = builder.finish(3, STORE, KEY, bytes(32), REPLICA).data
    made = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    size = len(data)
    assert sum(1 for _ in decode(data, find).envelopes) == 800
    read = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 20 * 1024 * 1024
    assert made < 2.5 * size
    assert read < 1.5 * size + 32 * 1024 * 1024


def test_a_pack_of_the_first_generation_is_read_for_ever():
    """The file was made once and never again; whoever cannot read it cannot read what lies in people's folders."""
    expected = [line.split(" ", 1) for line in FIXTURE.with_suffix(".txt").read_text("utf-8").splitlines()]
    pack = decode(FIXTURE.read_bytes(), find, {SCOPE[0]: SCOPE[1]}.get)
    events = list(pack.envelopes)
    assert [one.id.hex() for one in events] == [identity for identity, _ in expected]
    texts = [None if one.body is None else msgpack.unpackb(one.body[16:])["text"] for one in events]
    assert [text if text is not None else "-" for text in texts] == [text for _, text in expected]
    assert [list(row) for row in pack.wrapped] == [["keys", 1]]
    assert pack_name(1, FIXTURE.read_bytes()) == "1-" + blake3(FIXTURE.read_bytes()).hexdigest()[:16] + ".mzp"


class TestChains:
    @given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.randoms(use_true_random=False))
    def test_a_run_tells_exactly_what_was_added(self, lengths, chance):
        """Forks of one writer: each branch is a run of its own, and holds nothing of the other."""
        pen = Pen()
        branches = []
        for length in lengths:
            fork = Pen(pen.lamport, pen.writer)
            fork.seq, fork.prev = pen.seq, pen.prev
            branches.append(fork.many(length))
            if chance.random() < 0.5:
                pen = fork
        events = {one.id: one for branch in branches for one in branch}
        ordered = sorted(events.values(), key=lambda one: one.key)
        chains = Chains(set(events))
        kept = [one for one in ordered if chance.random() < 0.8]
        for one in kept:
            chains.add(one.id, link_of(one.header))
        inside = set()
        for run in chains.runs():
            at = run.last
            for number in range(run.high, run.low - 1, -1):
                link = link_of(events[at].header)
                assert link.seq == number
                inside.add(at)
                at = link.prev
            assert chains.holds(run)
        assert inside == {one.id for one in kept}

    @given(st.binary(max_size=300))
    def test_a_header_that_nobody_wrote_has_no_place(self, data):
        link = link_of(data)
        assert link is None or link.seq > 0

    def test_a_run_of_strange_values_is_not_sound(self):
        assert Run(b"w" * 16, 1, 2, b"i" * 32).is_sound()
        for run in (Run(b"w", 1, 2, b"i" * 32), Run(b"w" * 16, 3, 2, b"i" * 32), Run(b"w" * 16, 0, 2, b"i" * 32)):
            assert not run.is_sound()
