from __future__ import annotations

import contextlib
import random
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.ids import commitment, event_id
from memorize.limits import BODY_BYTES_MAX, DEPS_MAX, HEADER_BYTES_MAX, NESTING_MAX, RELAY_BODY_BYTES_MAX
from memorize.log.codec import (
    K_COMMITMENT,
    K_DEPS,
    K_KIND,
    K_LAMPORT,
    K_MUST,
    K_PREV,
    K_SEQ,
    K_STORE,
    Bad,
    decode,
    encode,
    encode_body,
    encode_header,
    new_header,
    tidy,
)
from memorize.model import Header
from tests.counts import count

SALT = bytes(range(16))
IDS = st.binary(min_size=32, max_size=32)
RANDOMS = st.binary(min_size=16, max_size=16)
NUMBERS = st.integers(min_value=0, max_value=2**63 - 1)

headers = st.builds(
    Header,
    format=st.integers(1, 2**16),
    store=RANDOMS,
    replica=RANDOMS,
    writer=RANDOMS,
    seq=st.integers(1, 2**63 - 1),
    prev=st.one_of(st.just(b""), IDS),
    lamport=st.integers(1, 2**63 - 1),
    deps=st.lists(IDS, max_size=5).map(tuple),
    kind=st.text(st.characters(codec="ascii"), min_size=1, max_size=64),
    body_len=st.just(0),
    commitment=st.just(b""),
    nonce=RANDOMS,
    ordinal=NUMBERS,
    boot=st.one_of(st.just(b""), RANDOMS),
    mono=NUMBERS,
    wall=NUMBERS,
    scope_key=st.just(b""),
    person=st.one_of(st.just(b""), IDS),
    must=st.lists(st.integers(0, 18), max_size=3).map(tuple),
)
# Everything that JSON, and a careless normaliser, can hand over.
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters()),
        st.sampled_from(["한국어 문장", "조사를 바꾼", "\ud800", "日本語", "é"]),
        st.binary(),
    ),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(st.characters()), inner)),
    max_leaves=20,
)
payloads = st.dictionaries(st.one_of(st.text(st.characters()), st.sampled_from(["text", "본문"])), values, max_size=6)


def a_header(**fields: Any) -> Header:
    return new_header(b"s" * 16, b"r" * 16, b"w" * 16, "observed.note")._replace(**fields)


def floats(value: object) -> list[float]:
    if isinstance(value, float):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in inner for found in floats(item)]


@given(headers, payloads, RANDOMS)
def test_what_is_encoded_decodes_to_the_same_event_and_the_same_bytes(header, payload, salt):
    made = encode(header, tidy(payload), salt)
    event = decode(made.header, made.body)
    assert event == made.event
    assert not event.malformed
    assert floats(event.payload) == []
    again = encode(event.header, event.payload, salt)
    assert (again.header, again.body, again.event.id) == (made.header, made.body, made.event.id)
    assert event.id == event_id(made.header)
    assert event.header.commitment == commitment(made.body)
    assert made.body[:16] == salt


@given(headers, payloads)
def test_an_erased_body_leaves_the_header_verifiable(header, payload):
    made = encode(header, tidy(payload), SALT)
    event = decode(made.header, None)
    assert event == made.event._replace(payload=None)


@given(st.binary(max_size=400), st.one_of(st.none(), st.binary(max_size=400)))
def test_random_bytes_raise_nothing_but_bad(raw_header, raw_body):
    with contextlib.suppress(Bad):
        decode(raw_header, raw_body)


header_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.binary(max_size=40)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=4,
)


@given(st.dictionaries(st.integers(0, 22), header_values), st.binary(max_size=64))
def test_any_map_that_commits_to_its_body_becomes_an_event_that_every_reader_can_hold(fields, raw_body):
    fields |= {9: len(raw_body), 10: commitment(raw_body)}
    event = decode(msgpack.packb(fields), raw_body)
    header = event.header
    for name in ("format", "seq", "lamport", "body_len", "ordinal", "mono", "wall"):
        assert 0 <= getattr(header, name) < 2**63
    for name, sizes in {"store": (0, 16), "writer": (0, 16), "prev": (0, 32), "nonce": (0, 16)}.items():
        assert len(getattr(header, name)) in sizes
    assert all(len(dep) == 32 for dep in header.deps)
    assert isinstance(header.kind, str)
    hash(event.header)


@given(headers, payloads, st.data())
def test_a_flipped_bit_in_header_or_body_never_gives_the_same_event(header, payload, data):
    made = encode(header, tidy(payload), SALT)
    whole = bytearray(made.header + made.body)
    at = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[at // 8] ^= 1 << at % 8
    raw = bytes(whole)
    try:
        event = decode(raw[: len(made.header)], raw[len(made.header) :])
    except Bad:
        return
    assert event.id != made.event.id


def test_a_header_uses_ascending_small_keys_and_the_shortest_integers():
    made = encode(a_header(seq=127, lamport=128, deps=(b"d" * 32,), nonce=b"n" * 16, mono=65_536), {}, SALT)
    fields = msgpack.unpackb(made.header, strict_map_key=False)
    assert list(fields) == sorted(fields)
    assert K_PREV not in fields
    assert b"\x04\x7f" in made.header  # seq 127 in one byte
    assert b"\x06\xcc\x80" in made.header  # lamport 128 in two
    assert b"\x0e\xce\x00\x01\x00\x00" in made.header


def test_unknown_header_keys_are_kept_byte_for_byte_and_change_nothing_else():
    made = encode(a_header(), {"text": "안녕"}, SALT)
    fields = msgpack.unpackb(made.header, strict_map_key=False) | {40: "later", 41: [1, 2]}
    raw = msgpack.packb(fields)
    event = decode(raw, made.body)
    assert event.header == made.event.header
    assert not event.malformed
    assert event.id == event_id(raw) != made.event.id


def test_a_key_that_must_be_understood_and_is_not_quarantines_the_event():
    made = encode(a_header(), {"text": "x"}, SALT)
    fields = msgpack.unpackb(made.header, strict_map_key=False) | {K_MUST: [40], 40: "later"}
    event = decode(msgpack.packb(fields), made.body)
    assert event.malformed
    assert event.payload == {"text": "x"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (K_STORE, b"short"),
        (K_SEQ, 0),
        (K_SEQ, True),
        (K_SEQ, 2**63),
        (K_LAMPORT, 1.5),
        (K_LAMPORT, 2**64 - 1),
        (K_DEPS, [b"short"]),
        (K_DEPS, "text"),
        (K_KIND, "관찰"),
        (K_KIND, "k" * 65),
        (K_PREV, b"p"),
    ],
)
def test_a_field_of_the_wrong_shape_makes_an_event_malformed_and_not_bad(key, value):
    made = encode(a_header(), {"text": "x"}, SALT)
    fields = msgpack.unpackb(made.header, strict_map_key=False) | {key: value}
    event = decode(msgpack.packb(fields), made.body)
    assert event.malformed
    assert event.header.commitment == made.event.header.commitment


@pytest.mark.parametrize(
    "body", [b"", b"\xc0", b"\x81\x01\x02", b"\x81\xa1\xff\x01", b"\x93\x01", b"\xc1", b"\x80\x80"]
)
def test_a_body_that_is_no_map_of_strings_is_malformed(body):
    body = SALT + body
    raw = encode_header(a_header(body_len=len(body), commitment=commitment(body)))
    event = decode(raw, body)
    assert event.malformed
    assert event.payload is None


def test_a_body_under_a_scope_key_is_no_payload_but_not_malformed():
    body = b"ciphertext that nobody here can read"
    raw = encode_header(a_header(body_len=len(body), commitment=commitment(body), scope_key=b"k" * 16))
    event = decode(raw, body)
    assert (event.payload, event.malformed) == (None, False)


def test_headers_and_bodies_above_the_relay_limits_are_bad():
    made = encode(a_header(), {}, SALT)
    with pytest.raises(Bad):
        decode(made.header + bytes(64 * 1024), made.body)
    with pytest.raises(Bad):
        decode(made.header, bytes(RELAY_BODY_BYTES_MAX + 1))


@pytest.mark.parametrize("kind", ["", "k" * 65, "관찰"])
def test_a_producer_cannot_write_a_kind_that_breaks_the_limits(kind):
    with pytest.raises(ValueError):
        encode(a_header(kind=kind), {}, SALT)


def test_two_hundred_deps_fit_and_more_are_refused():
    made = encode(a_header(deps=tuple(bytes([n]) * 32 for n in range(DEPS_MAX))), {}, SALT)
    assert len(made.header) <= HEADER_BYTES_MAX
    with pytest.raises(ValueError):
        encode(a_header(deps=(b"d" * 32,) * (DEPS_MAX + 1)), {}, SALT)


@pytest.mark.parametrize("letter", ["x", "각", "😀", "\n"])
def test_a_long_text_is_cut_with_its_head_its_tail_and_its_length(letter):
    text = "처음" + letter * (2 * 1024 * 1024) + "끝"
    body, stored = encode_body(tidy({"text": text, "path": "src/파일.py"}), SALT)
    assert len(body) <= BODY_BYTES_MAX
    assert stored["text"].startswith("처음" + letter)
    assert stored["text"].endswith(letter + "끝")
    assert f"of {len(text)} characters cut" in stored["text"]
    assert stored["path"] == "src/파일.py"
    assert stored["cut"] > BODY_BYTES_MAX


@pytest.mark.parametrize(
    "payload",
    [
        {"items": list(range(900_000))},
        {"items": {f"이름 {n}": n for n in range(200_000)}},
        {"items": [["가" * 100] * 100] * 100},
        {"raw": b"\0" * 3_000_000},
        {f"key {n}": "값" * 50 for n in range(20_000)},
        {"k" * 2_000_000: 1},
    ],
)
def test_every_payload_above_the_limit_is_brought_below_it(payload):
    body, stored = encode_body(tidy(payload), SALT)
    assert len(body) <= BODY_BYTES_MAX
    assert stored["cut"] > BODY_BYTES_MAX
    raw = encode_header(a_header(body_len=len(body), commitment=commitment(body)))
    assert decode(raw, body).payload == stored


def test_what_is_nested_too_deep_becomes_a_short_text():
    value: Any = "bottom"
    for _ in range(5_000):
        value = [value]
    body, _ = encode_body(tidy({"value": value}), SALT)
    assert b"nested too deep" in body
    depth, inner = 1, tidy({"value": value})["value"]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    assert depth == NESTING_MAX


def test_values_that_the_format_cannot_hold_become_text():
    payload = tidy({"number": 1.5, "none": None, "big": 2**70, "surrogate": "a\ud800b", 7: "key", "set": {1}})
    assert payload == {
        "number": "1.5",
        "none": None,
        "big": str(2**70),
        "surrogate": "a\ufffd\ufffd\ufffdb",
        "7": "key",
        "set": [1],
    }


def test_headers_from_random_bytes_of_a_real_one_never_raise_anything_but_bad():
    made = encode(a_header(deps=(b"d" * 32,), nonce=b"n" * 16), {"text": "한국어"}, SALT)
    seeds = random.Random(5)
    for _ in range(count("mangled headers", quick=2_000, full=50_000)):
        raw = bytearray(made.header)
        for _ in range(seeds.randint(1, 4)):
            raw[seeds.randrange(len(raw))] = seeds.randrange(256)
        try:
            decode(bytes(raw), None if seeds.random() < 0.5 else made.body)
        except Bad:
            continue


def test_the_commitment_is_what_makes_a_header_verifiable():
    made = encode(a_header(), {}, SALT)
    fields = msgpack.unpackb(made.header, strict_map_key=False)
    for broken in ({**fields, K_COMMITMENT: b"x"}, {k: v for k, v in fields.items() if k != K_COMMITMENT}, [1]):
        with pytest.raises(Bad):
            decode(msgpack.packb(broken), made.body)
