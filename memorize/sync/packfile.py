"""The outer form of a pack: a plain header, sealed chunks, and a footer that proves that the file is whole. Pure."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from blake3 import blake3

from memorize.limits import PACK_BYTES_MAX

MAGIC: Final = b"MZPCK\r\n\x1a"
END: Final = b"MZEND\r\n\x1a"
FORMAT: Final = 1
SALT_BYTES: Final = 32
KEY_ID_BYTES: Final = 16
CHUNK_BYTES: Final = 256 * 1024
HEADER: Final = struct.Struct(f">8sHHI16s{KEY_ID_BYTES}s{SALT_BYTES}s")
FOOTER: Final = struct.Struct(">QQ32s8s")
_SEALED_BYTES: Final = CHUNK_BYTES + 16
_KEY_CONTEXT: Final = "memorize 2026 pack key v1"
# Opened chunks of a file up to this size are kept between checking them all and reading them.
_KEPT_BYTES_MAX: Final = 4 * 1024 * 1024

PENDING: Final = "pending"  # not whole yet, or not a pack for ever
OURS: Final = "ours"  # a whole pack of this format; whether its key is held is another question
NEWER: Final = "newer"  # a newer program wrote it
OTHER: Final = "other"  # not a pack
UNKNOWN_KEY: Final = "unknown key"
BAD: Final = "bad"  # whole, and not what was sealed

Scope = tuple[bytes, bytes]  # id and secret of a key


class BadPack(Exception):  # noqa: N818 - called for what it says of the bytes
    """These bytes are no pack that can be read: ``state`` is one of PENDING, OTHER, NEWER, UNKNOWN_KEY, BAD."""

    def __init__(self, state: str, why: str) -> None:
        """Keep the state apart from the words."""
        super().__init__(why)
        self.state = state


class Probe(NamedTuple):
    """What a file is, judged without a key. ``key`` and ``store`` are empty unless the state is OURS."""

    state: str
    store: bytes = b""
    key: bytes = b""
    events: int = 0
    why: str = ""


def seal(parts: deque[bytes], store: bytes, key: Scope, salt: bytes, count: int) -> bytes:
    """Cut a stream into chunks, seal each, and put header and footer around them. Uses the parts up."""
    header = HEADER.pack(MAGIC, FORMAT, HEADER.size, 0, store, key[0], salt)
    cipher = _cipher(key[1], salt)
    made = [header]
    buffer = bytearray()
    number = 0
    while parts:
        buffer += parts.popleft()
        # The last chunk says that it is the last, so one is always kept back.
        while len(buffer) > CHUNK_BYTES:
            made.append(cipher.encrypt(_nonce(number, last=False), bytes(buffer[:CHUNK_BYTES]), header))
            del buffer[:CHUNK_BYTES]
            number += 1
    made.append(cipher.encrypt(_nonce(number, last=True), bytes(buffer), header))
    size = sum(map(len, made)) + FOOTER.size
    digest = blake3()
    for part in made:
        digest.update(part)
    front = struct.pack(">QQ", size, count)
    digest.update(front)
    made.append(front + digest.digest() + END)
    return b"".join(made)


def probe(data: bytes) -> Probe:
    """Tell what a file is, without a key. Total: any bytes have an answer."""
    start = data[: len(MAGIC)]
    if not MAGIC.startswith(start):
        # A tool may make a file at its full length first and fill it later.
        blank = not start.strip(b"\0") and not data[:4096].strip(b"\0")
        return Probe(PENDING, why="it holds nothing yet") if blank else Probe(OTHER, why="it is not a pack")
    if len(data) < len(MAGIC) + 2:
        return Probe(PENDING, why="it is not whole")
    if int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "big") != FORMAT:
        return Probe(NEWER, why="a newer version of memorize wrote it")
    if len(data) < HEADER.size + FOOTER.size:
        return Probe(PENDING, why="it is not whole")
    _, _, length, _, store, key, _ = HEADER.unpack_from(data)
    size, count, digest, end = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    if end != END or size != len(data):
        return Probe(PENDING, why="it is not whole")
    if length != HEADER.size or len(data) > PACK_BYTES_MAX or digest != _digest(data):
        return Probe(BAD, why="its content is not what its end says")
    return Probe(OURS, store, key, count)


class Opened:
    """The chunks of a pack. Small packs are opened once, large ones twice: to check all of them, and to read."""

    def __init__(self, data: bytes, secret: bytes) -> None:
        self._data = memoryview(data)
        self._header = data[: HEADER.size]
        self._cipher = _cipher(secret, data[HEADER.size - SALT_BYTES : HEADER.size])
        keep = len(data) <= _KEPT_BYTES_MAX
        self._kept: list[bytes] | None = [] if keep else None
        for chunk in self._open():
            if self._kept is not None:
                self._kept.append(chunk)

    def chunks(self) -> Iterator[bytes]:
        """Return the compressed stream in pieces."""
        return iter(self._kept) if self._kept is not None else self._open()

    def _open(self) -> Iterator[bytes]:
        from cryptography.exceptions import InvalidTag

        end = len(self._data) - FOOTER.size
        for number, start in enumerate(range(HEADER.size, end, _SEALED_BYTES)):
            stop = min(start + _SEALED_BYTES, end)
            try:
                yield self._cipher.decrypt(_nonce(number, last=stop == end), self._data[start:stop], self._header)
            except (InvalidTag, ValueError):
                raise BadPack(BAD, "it was not sealed under the key that it names") from None


def _digest(data: bytes) -> bytes:
    return blake3(memoryview(data)[: -(32 + len(END))]).digest()


def _cipher(secret: bytes, salt: bytes) -> Any:
    """Return the cipher of one pack: its key is made of the store's and of random salt, so nonces may simply count."""
    return chacha()(blake3(secret + salt, derive_key_context=_KEY_CONTEXT).digest())


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


@cache
def chacha() -> Any:
    """Return the class of the cipher."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # 20 ms that most verbs need not pay

    return ChaCha20Poly1305
