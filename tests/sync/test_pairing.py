"""Pairing by a one-time code: over real sockets on loopback, with whoever may be at the other end."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorize.errors import NotPaired
from memorize.log.files import RealFiles
from memorize.paths import Home
from memorize.sync import lan, pairing, tls
from memorize.sync.code import PLATES, WORDS, Code, new_code, parse_code
from memorize.sync.keys import Keyring, Offer, StoreKey, key_id, offer
from memorize.sync.pairing import GUEST, HOST, MAGIC, About, Hands, NoAttempt, Terms, joins
from memorize.sync.peers import Address, address
from tests.counts import count

PATIENCE_S = 120.0
CODE = Code(7, "7-cedar-orbit-42")
WRONG = Code(7, "7-cedar-orbit-43")


def _ring(number: int) -> Keyring:
    store, secret = bytes([number]) * 16, bytes([number]) * 32
    return Keyring(store, (StoreKey(key_id(secret), secret, store),))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    home = Home(tmp_path_factory.mktemp("certificates"))
    home.keys.mkdir()
    return [tls.own_certificate(home, RealFiles(), bytes([number]) * 16).der for number in (1, 2)]


class Side:
    """A device in a pairing: what it was asked and given."""

    def __init__(self, number: int, name: str, certificate: bytes, past: int = 0, agrees: bool = True) -> None:
        self.ring = _ring(number)
        place = (Address("192.0.2.1", 29_117),)
        self.about = About(name, bytes([number]) * 16, certificate, self.ring.store, frozenset(), past, place)
        self.agrees = agrees
        self.asked: list[Terms] = []
        self.taken: list[Offer] = []
        self.gave = 0

    @property
    def hands(self) -> Hands:
        return Hands(self._agree, self._give, self.taken.append)

    def _agree(self, terms: Terms) -> bool:
        self.asked.append(terms)
        return self.agrees

    def _give(self) -> Offer:
        self.gave += 1
        return offer(self.ring)


@pytest.fixture
def sides(certificates: list[bytes]) -> tuple[Side, Side]:
    return Side(1, "책상 desktop", certificates[0], past=3), Side(2, "노트북", certificates[1], past=5)


Meet = Callable[..., tuple[Future[Terms], Future[Terms]]]


@pytest.fixture
def meet() -> Iterator[Meet]:
    """Let a host and a guest talk over a connection; ``between`` may sit in it."""
    pool = ThreadPoolExecutor(4)
    wires: list[socket.socket] = []

    def run(
        host: Side,
        guest: Side,
        typed: Code = CODE,
        between: Callable[[socket.socket, socket.socket], None] | None = None,
    ) -> tuple[Future[Terms], Future[Terms]]:
        one, other = socket.socketpair()
        wires.extend((one, other))
        if between is not None:
            third, other_end = socket.socketpair()
            wires.extend((third, other_end))
            pool.submit(between, other, third)
            other = other_end

        def play(wire: socket.socket, of: Callable[..., Terms], code: Code, side: Side) -> Terms:
            with wire:
                return of(wire, code, side.about, side.hands)

        found = (
            pool.submit(play, one, pairing.as_host, CODE, host),
            pool.submit(play, other, pairing.as_guest, typed, guest),
        )
        return found

    yield run
    for wire in wires:
        wire.close()
    pool.shutdown()


def test_both_sides_know_each_other_and_the_guest_gets_the_keys(sides: tuple[Side, Side], meet: Meet) -> None:
    host, guest = sides
    told, heard = (one.result(PATIENCE_S) for one in meet(host, guest))
    assert told == heard
    assert (told.host, told.guest, told.joins) == (host.about, guest.about, GUEST)
    assert guest.taken == [offer(host.ring)]
    assert host.taken == []
    assert guest.gave == 0, "keys go to the side that joins only"


def test_a_guest_with_a_past_is_joined_by_a_host_without_one(certificates: list[bytes], meet: Meet) -> None:
    host, guest = Side(1, "새 기기", certificates[0], past=0), Side(2, "노트북", certificates[1], past=5)
    told, _ = (one.result(PATIENCE_S) for one in meet(host, guest))
    assert told.joins == HOST
    assert host.taken == [offer(guest.ring)]
    assert guest.taken == []


def test_a_wrong_code_ends_the_attempt_on_both_sides_and_nothing_is_told(sides: tuple[Side, Side], meet: Meet) -> None:
    host, guest = sides
    for one in meet(host, guest, WRONG):
        with pytest.raises(NotPaired, match="the code was wrong"):
            one.result(PATIENCE_S)
    assert not host.gave
    assert not guest.taken
    assert not guest.asked


def test_a_guest_that_does_not_agree_changes_nothing(sides: tuple[Side, Side], meet: Meet) -> None:
    host, guest = sides
    guest.agrees = False
    told, heard = meet(host, guest)
    with pytest.raises(NotPaired, match="you did not agree"):
        heard.result(PATIENCE_S)
    with pytest.raises(NotPaired, match="did not agree"):
        told.result(PATIENCE_S)
    assert guest.asked[0].host == host.about, "it is said before what will happen"
    assert not host.gave


def test_whoever_sits_between_without_the_code_learns_nothing(sides: tuple[Side, Side], meet: Meet) -> None:
    host, guest = sides
    between = sides[1]

    def man(to_host: socket.socket, to_guest: socket.socket) -> None:
        """Answer the guest as a host with a guessed code; it does not know the right one."""
        with to_host, to_guest:
            pairing.as_host(to_guest, WRONG, between.about, between.hands)

    _, heard = meet(host, guest, CODE, man)
    with pytest.raises(NotPaired):
        heard.result(PATIENCE_S)
    assert not guest.taken


@pytest.mark.parametrize("at", [40, 90, 140, 200, 400])
@pytest.mark.parametrize("direction", [HOST, GUEST])
def test_whoever_changes_a_byte_on_the_way_ends_the_attempt(
    sides: tuple[Side, Side], meet: Meet, at: int, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, guest = sides
    monkeypatch.setattr(pairing, "STEP_S", 3.0)  # a changed length has a side wait for what never comes
    monkeypatch.setattr(pairing, "AGREE_S", 3.0)

    def man(to_host: socket.socket, to_guest: socket.socket) -> None:
        def carry(source: socket.socket, target: socket.socket, change: bool) -> None:
            seen = 0
            while data := _heard(source):
                if change and seen <= at < seen + len(data):
                    spot = at - seen
                    data = data[:spot] + bytes([data[spot] ^ 1]) + data[spot + 1 :]
                seen += len(data)
                with contextlib.suppress(OSError):
                    target.sendall(data)
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

        back = threading.Thread(target=carry, args=(to_host, to_guest, direction == HOST), daemon=True)
        back.start()
        carry(to_guest, to_host, direction == GUEST)
        back.join(PATIENCE_S)

    results = []
    for one in meet(host, guest, CODE, man):
        try:
            results.append(one.result(PATIENCE_S))
        except (NotPaired, NoAttempt) as error:
            results.append(error)
    assert any(isinstance(one, NotPaired | NoAttempt) for one in results), results


def _heard(wire: socket.socket) -> bytes:
    try:
        return wire.recv(4096)
    except OSError:
        return b""


@given(st.binary(max_size=300))
def test_random_bytes_are_no_attempt_and_leave_the_code_good(data: bytes) -> None:
    one, other = socket.socketpair()
    side = Side(1, "책상", b"")
    with one, other:
        other.sendall(data)
        other.shutdown(socket.SHUT_WR)
        with pytest.raises((NoAttempt, NotPaired) if data.startswith(MAGIC) else NoAttempt):
            pairing.as_host(one, CODE, side.about, side.hands)


def test_a_silent_connection_is_no_attempt(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "FIRST_S", 0.05)
    one, other = socket.socketpair()
    with one, other, pytest.raises(NoAttempt):
        pairing.as_host(one, CODE, sides[0].about, sides[0].hands)


@settings(max_examples=count("first messages of a pairing", quick=20, full=100))
@given(st.binary(min_size=33, max_size=33))
def test_a_first_message_that_is_no_point_uses_the_code_up(point: bytes) -> None:
    one, other = socket.socketpair()
    side = Side(1, "책상", b"")
    with one, other:
        other.sendall(MAGIC + struct.pack(">I", len(point)) + point + struct.pack(">I", 32) + bytes(32))
        other.shutdown(socket.SHUT_WR)
        with pytest.raises(NotPaired):
            pairing.as_host(one, CODE, side.about, side.hands)


def test_a_guest_that_meets_something_else_says_so(sides: tuple[Side, Side]) -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + os.urandom(100))
        with pytest.raises(NotPaired):
            pairing.as_guest(one, CODE, sides[1].about, sides[1].hands)


# -- who joins ----------------------------------------------------------------------------------------------------


def _about(store: int, past: int, left: tuple[int, ...] = ()) -> About:
    return About("이름", bytes(16), b"", bytes([store]) * 16, frozenset(bytes([one]) * 16 for one in left), past)


@pytest.mark.parametrize(
    ("host", "guest", "who"),
    [
        (_about(1, 5), _about(2, 5), GUEST),
        (_about(1, 5), _about(2, 0), GUEST),
        (_about(1, 0), _about(2, 0), GUEST),
        (_about(1, 0), _about(2, 5), HOST),
        (_about(1, 5), _about(1, 5), GUEST),
        (_about(1, 5), _about(2, 5, left=(1,)), HOST),
        (_about(1, 5, left=(2,)), _about(2, 5), GUEST),
        (_about(1, 0, left=(2,)), _about(2, 5), GUEST),
    ],
    ids=["both", "host only", "neither", "guest only", "one store", "guest went on", "host went on", "went on, empty"],
)
def test_the_guest_joins_unless_only_it_has_a_past_or_went_on_already(host: About, guest: About, who: str) -> None:
    assert joins(host, guest) == who


# -- codes and addresses ------------------------------------------------------------------------------------------


def test_a_code_is_read_as_it_is_shown_or_nearly_so() -> None:
    for _ in range(50):
        made = new_code()
        assert parse_code(made.text) == made
        assert parse_code(f" {made.text.upper().replace('-', ' ')} ") == made
        assert 1 <= made.plate <= PLATES


def test_words_are_told_apart_by_their_first_three_letters_mostly() -> None:
    assert len(set(WORDS)) == 128
    assert all(word.isascii() and word.isalpha() and word.islower() for word in WORDS)


@pytest.mark.parametrize(
    "text", ["", "7", "7-cedar-orbit", "7-cedar-궤도-42", "0-cedar-orbit-42", "7-cedar-orbit-4", "x-y-z-w"]
)
def test_anything_else_is_no_code(text: str) -> None:
    assert parse_code(text) is None


@given(st.text(max_size=40))
def test_no_text_makes_reading_a_code_fail(text: str) -> None:
    parse_code(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("host:1", Address("host", 1)),
        ("192.0.2.1", Address("192.0.2.1", 9)),
        ("[2001:db8::1]:77", Address("2001:db8::1", 77)),
        ("[2001:db8::1]", Address("2001:db8::1", 9)),
        ("2001:db8::1", Address("2001:db8::1", 9)),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, found: Address) -> None:
    assert address(text, 9) == found
    assert address(str(found), 9) == found


@pytest.mark.parametrize("text", ["", ":1", "host:0", "host:70000", "host:x", "a b:1", "[::1", "[::1]x"])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        address(text, 9)


def test_a_device_is_found_by_its_plate_on_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zeroconf")
    only: Any = ["127.0.0.1"]
    try:
        with lan.announced(7, 40_123, ["127.0.0.1"], only):
            assert lan.find(8, 0.5, only) == []
            assert lan.find(7, PATIENCE_S, only) == [[Address("127.0.0.1", 40_123)]]
    except OSError as error:
        pytest.skip(f"no multicast on loopback: {error}")
