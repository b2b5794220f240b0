"""Pairing: two devices of one person get to know each other by a one-time code that is read from one screen to another.

Over plain TCP: SPAKE2 makes a strong key of the code without showing it, each side proves that it has the same one, and
only then does anything follow, sealed. Whoever does not know the code learns nothing and has one guess; whoever sits
between gets no further. The secret keys go to the one side that joins.
"""

from __future__ import annotations

import hmac
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgpack
from blake3 import blake3

from memorize.errors import NotPaired
from memorize.ids import RANDOM_BYTES
from memorize.log.codec import UNREADABLE
from memorize.sync.code import Code
from memorize.sync.peers import ADDRESSES_MAX, NAME_CHARS_MAX, Address
from memorize.sync.ring import Offer
from memorize.sync.tls import is_certificate

MAGIC: Final = b"memorize-pair/1\n"
FIRST_S: Final = 10.0  # a connection that does not begin at once is no attempt
STEP_S: Final = 30.0
AGREE_S: Final = 600.0  # a person reads what will happen, and says yes
FRAME_BYTES_MAX: Final = 256 * 1024
HOST: Final = "host"  # the side that shows the code and waits
GUEST: Final = "guest"  # the side at which it is typed
_SPAKE_BYTES: Final = 33
_PROOF_BYTES: Final = 32
_CONTEXT: Final = "memorize 2026 pairing v1 "
_BROKEN: Final = (*UNREADABLE, KeyError)


class About(NamedTuple):
    """What a device tells of itself once both know the code. ``past``: how many events it has.

    ``addresses``: where its daemon is, or would be, if it ``listens``.
    """

    name: str
    device: bytes
    certificate: bytes
    store: bytes
    left: frozenset[bytes]
    past: int
    addresses: tuple[Address, ...] = ()
    listens: bool = False


class NoAttempt(Exception):  # noqa: N818 - called for what it says of a connection
    """A connection that never spoke this protocol; the code is still good."""


class Terms(NamedTuple):
    """What both sides know before anything changes: who they are, and which of them (HOST, GUEST) joins."""

    host: About
    guest: About
    joins: str


class Hands(NamedTuple):
    """What a side does when it is asked: agree (the guest), give all keys, take them."""

    agree: Callable[[Terms], bool]
    give: Callable[[], Offer]
    take: Callable[[Offer], object]


def joins(host: About, guest: About) -> str:
    """Return which side joins the other one's store. Keys go to it, and to nobody else.

    The guest does, unless only it has a past, or it has already gone on from the host's store to its own.
    """
    if host.store == guest.store:
        return GUEST
    host_behind, guest_behind = host.store in guest.left, guest.store in host.left
    if host_behind != guest_behind:
        return HOST if host_behind else GUEST
    return HOST if guest.past and not host.past else GUEST


def as_host(wire: socket.socket, code: Code, mine: About, hands: Hands) -> Terms:
    """Be the side that showed the code, on a connection that came in.

    Raises NoAttempt when the other side never began; NotPaired for all else that fails, after which the code is spent.
    """
    line = _Line(wire)
    line.patience(FIRST_S)
    try:
        if line.exactly(len(MAGIC)) != MAGIC:
            raise NoAttempt
        theirs = line.frame()
    except (OSError, NotPaired) as error:
        raise NoAttempt from error
    if len(theirs) != _SPAKE_BYTES:
        raise NoAttempt
    try:
        return _host(line, code, mine, hands, theirs)
    except OSError as error:
        raise NotPaired(detail=_lost(error)) from error


def as_guest(wire: socket.socket, code: Code, mine: About, hands: Hands) -> Terms:
    """Be the side at which the code was typed, on a connection to the other one. Raises NotPaired."""
    try:
        return _guest(_Line(wire), code, mine, hands)
    except OSError as error:
        raise NotPaired(detail=_lost(error)) from error


def _host(line: _Line, code: Code, mine: About, hands: Hands, theirs: bytes) -> Terms:
    from spake2 import SPAKE2_A  # type: ignore[import-untyped]

    line.patience(STEP_S)
    spake = SPAKE2_A(code.text.encode(), idA=b"memorize host", idB=b"memorize guest")
    ours = spake.start()
    line.send(ours)
    secret = _secret(spake, theirs, theirs + ours)
    if not hmac.compare_digest(line.frame(), _proof(secret, GUEST)):
        raise NotPaired(detail="the code was wrong")
    line.send(_proof(secret, HOST))
    line.seal(secret, HOST)
    line.tell(_told(mine))
    guest = _about(line.hear())
    terms = Terms(mine, guest, joins(mine, guest))
    line.patience(AGREE_S)
    if line.hear() != ["go", terms.joins]:
        raise NotPaired(detail="the other device did not agree")
    _exchange(line, hands, gives=terms.joins == GUEST)
    return terms


def _guest(line: _Line, code: Code, mine: About, hands: Hands) -> Terms:
    from spake2 import SPAKE2_B

    line.patience(STEP_S)
    spake = SPAKE2_B(code.text.encode(), idA=b"memorize host", idB=b"memorize guest")
    ours = spake.start()
    line.raw(MAGIC)
    line.send(ours)
    theirs = line.frame()
    secret = _secret(spake, theirs, ours + theirs)
    line.send(_proof(secret, GUEST))
    try:
        proof = line.frame()
    except OSError as error:
        raise NotPaired(detail="the code was wrong") from error
    if not hmac.compare_digest(proof, _proof(secret, HOST)):
        raise NotPaired(detail="the code was wrong, or somebody else answered")
    line.seal(secret, GUEST)
    host = _about(line.hear())
    line.tell(_told(mine))
    terms = Terms(host, mine, joins(host, mine))
    if not hands.agree(terms):
        line.tell(["stop"])
        raise NotPaired(detail="you did not agree")
    line.tell(["go", terms.joins])
    _exchange(line, hands, gives=terms.joins == HOST)
    return terms


def _exchange(line: _Line, hands: Hands, *, gives: bool) -> None:
    """Pass the keys to the side that joins. It has taken them before the other one counts it as paired."""
    from memorize.sync.keyline import pack_offer, unpack_offer

    line.patience(STEP_S)
    if gives:
        line.tell(pack_offer(hands.give()))
        if line.hear() != "taken":
            raise NotPaired(detail="the other device did not take the keys")
        return
    packed = line.hear()
    given = unpack_offer(packed) if isinstance(packed, bytes) else None
    if given is None:
        raise NotPaired(detail="the other device gave no keys that this version understands")
    hands.take(given)
    line.tell("taken")


# -- secrets ------------------------------------------------------------------------------------------------------


def _secret(spake: Any, theirs: bytes, transcript: bytes) -> bytes:
    """Return the key that both sides have when they know the same code."""
    try:
        key = spake.finish(theirs)
    except Exception as error:  # what the library raises for a message that is no point of its group is not settled
        raise NotPaired(detail="the other side does not pair as it should") from error
    return blake3(key + transcript, derive_key_context=_CONTEXT + "key").digest()


def _proof(secret: bytes, side: str) -> bytes:
    return blake3(secret, derive_key_context=f"{_CONTEXT}proof of {side}").digest()


class _Line:
    """Frames over a connection, sealed once there is a key."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire
        self._until = 0.0
        self._out: Any = None
        self._in: Any = None
        self._sent = self._heard = 0

    def patience(self, seconds: float) -> None:
        """Give the other side so long for what comes next, all of it."""
        self._until = time.monotonic() + seconds

    def raw(self, data: bytes) -> None:
        self._wire.settimeout(max(0.001, self._until - time.monotonic()))
        self._wire.sendall(data)

    def send(self, data: bytes) -> None:
        self.raw(struct.pack(">I", len(data)) + data)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._wire.settimeout(max(0.001, self._until - time.monotonic()))
            part = self._wire.recv(size - len(data))
            if not part:
                raise ConnectionResetError("the other side ended the connection")
            data += part
        return data

    def frame(self) -> bytes:
        (size,) = struct.unpack(">I", self.exactly(4))
        if size > (FRAME_BYTES_MAX if self._in is not None else _SPAKE_BYTES):
            raise NotPaired(detail="the other side does not pair as it should")
        return self.exactly(size)

    def seal(self, secret: bytes, side: str) -> None:
        """From here on everything is encrypted, each direction under its own key with a counter."""
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        keys = {
            name: ChaCha20Poly1305(blake3(secret, derive_key_context=f"{_CONTEXT}from {name}").digest())
            for name in (HOST, GUEST)
        }
        self._out = keys.pop(side)
        (self._in,) = keys.values()

    def tell(self, value: object) -> None:
        nonce = self._sent.to_bytes(12, "big")
        self._sent += 1
        self.send(self._out.encrypt(nonce, msgpack.packb(value), None))

    def hear(self) -> Any:
        from cryptography.exceptions import InvalidTag

        nonce = self._heard.to_bytes(12, "big")
        self._heard += 1
        try:
            return msgpack.unpackb(self._in.decrypt(nonce, self.frame(), None))
        except (InvalidTag, *_BROKEN) as error:
            raise NotPaired(detail="what the other side sent was changed on the way") from error


def _lost(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "the other device did not answer in time"
    return f"the connection was lost ({error.strerror or error})"


# -- what is told -------------------------------------------------------------------------------------------------


def _told(about: About) -> dict[str, Any]:
    fields = about._asdict()
    fields["left"] = sorted(about.left)
    fields["addresses"] = [list(one) for one in about.addresses]
    return fields


def _about(fields: Any) -> About:
    try:
        found = About(
            name=str(fields["name"])[:NAME_CHARS_MAX],
            device=_sized(fields["device"]),
            certificate=fields["certificate"],
            store=_sized(fields["store"]),
            left=frozenset(_sized(one) for one in fields["left"]),
            past=int(fields["past"]),
            addresses=tuple(_address(host, port) for host, port in fields["addresses"][:ADDRESSES_MAX]),
            listens=fields.get("listens") is True,
        )
    except _BROKEN as error:
        raise NotPaired(detail="the other device speaks another version") from error
    if not is_certificate(found.certificate):
        raise NotPaired(detail="the other device showed no certificate")
    return found


def _address(host: object, port: object) -> Address:
    if type(host) is not str or not 0 < len(host) <= 255 or type(port) is not int or not 0 < port < 65_536:
        raise ValueError("not an address")
    return Address(host, port)


def _sized(value: object) -> bytes:
    if type(value) is not bytes or len(value) != RANDOM_BYTES:
        raise ValueError("wrong size")
    return value
