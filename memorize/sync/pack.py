"""Packs: immutable files of events, sealed under a store key (docs/format.md). Pure: bytes in, bytes out.

A footer proves that a file is whole, so a copy that is still arriving is *pending*, never half taken in. Everything
behind the plain header is authenticated before the first event leaves this module.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import IO, Any, Final, NamedTuple, cast

import msgpack
from blake3 import blake3

from memorize.ids import ID_BYTES, RANDOM_BYTES, event_id
from memorize.limits import PACK_BYTES_MAX, PACK_PLAIN_BYTES_MAX, RELAY_BODY_BYTES_MAX, RELAY_HEADER_BYTES_MAX
from memorize.sync.chains import Link, Run, link_of, runs_of
from memorize.sync.port import Envelope

MAGIC: Final = b"MZPCK\r\n\x1a"
END: Final = b"MZEND\r\n\x1a"
FORMAT: Final = 1
SALT_BYTES: Final = 32
KEY_ID_BYTES: Final = 16
CHUNK_BYTES: Final = 256 * 1024
_HEADER: Final = struct.Struct(f">8sHHI16s{KEY_ID_BYTES}s{SALT_BYTES}s")
_FOOTER: Final = struct.Struct(">QQ32s8s")
_RUN: Final = struct.Struct(f">{RANDOM_BYTES}sQQ{ID_BYTES}s")
_TAG_BYTES: Final = 16
_SEALED_BYTES: Final = CHUNK_BYTES + _TAG_BYTES
_LEAST: Final = _HEADER.size + _FOOTER.size
_KEY_CONTEXT: Final = "memorize 2026 pack key v1"
_SCOPE_CONTEXT: Final = "memorize 2026 scope body v1"
_SCOPE_NONCE_BYTES: Final = 12
_RECORD_BYTES_MAX: Final = RELAY_HEADER_BYTES_MAX + RELAY_BODY_BYTES_MAX + 64 * 1024
_ITEMS_MAX: Final = 1_000
_LEVEL: Final = 3
_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
_FEED_BYTES: Final = 128 * 1024
# Opened chunks of a file up to this size are kept between checking them all and reading them.
_KEPT_BYTES_MAX: Final = 4 * 1024 * 1024
# Keys of the first record.
_I_REPLICA: Final = 0
_I_COUNT: Final = 1
_I_RUNS: Final = 2
_I_WRAPPED: Final = 3

PENDING: Final = "pending"  # not whole yet, or not a pack for ever
OURS: Final = "ours"  # a whole pack of this format; whether its key is held is another question
NEWER: Final = "newer"  # a newer program wrote it
OTHER: Final = "other"  # not a pack
UNKNOWN_KEY: Final = "unknown key"
BAD: Final = "bad"  # whole, and not what was sealed

# Everything that msgpack, zstandard and struct raise for bytes that they cannot read.
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
    MemoryError,
    struct.error,
    msgpack.UnpackException,
)

Scope = tuple[bytes, bytes]  # id and secret of a scope key


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


class Pack(NamedTuple):
    """An opened pack: every chunk is authentic.

    ``envelopes`` may be asked once; it raises BadPack for what no writer makes. ``runs`` are what the writer of the
    pack says it holds; ``wrapped`` rows of keys for other devices. An event whose scope key is not held comes without
    its body, and the id of that key is added to ``missing``.
    """

    store: bytes
    key: bytes
    replica: bytes
    events: int
    runs: tuple[Run, ...]
    wrapped: tuple[Sequence[Any], ...]
    envelopes: Iterator[Envelope]
    missing: set[bytes]


class Sealed(NamedTuple):
    """A finished pack: the name that its content gives it, its bytes, and what is inside."""

    name: str
    data: bytes
    events: int
    runs: tuple[Run, ...]
    links: dict[bytes, Link]


# -- writing ------------------------------------------------------------------------------------------------------


class Builder:
    """Collects events, compressed as they come, so that only the compressed form of a pack is ever in memory."""

    def __init__(self, scope_of: Callable[[Envelope], Scope | None] | None = None) -> None:
        """``scope_of``: id and secret of the key under which the body of an event travels, None for none."""
        self._scope_of = scope_of
        self._stream = _compressor().compressobj()
        self._parts: deque[bytes] = deque()
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self._links: dict[bytes, Link] = {}
        self.size = 0  # compressed bytes that left the compressor
        self.plain = 0
        self.count = 0

    def add(self, envelope: Envelope, nonce: Callable[[int], bytes]) -> None:
        """Add an event. ``nonce`` gives random bytes, asked for only when the body travels under a scope key."""
        scope = self._scope_of(envelope) if self._scope_of is not None and envelope.body is not None else None
        body, name = envelope.body, None
        if scope is not None and body is not None:
            name = scope[0]
            body = _seal_body(scope[1], envelope.id, body, nonce(_SCOPE_NONCE_BYTES))
        record = self._pack([envelope.header, body, envelope.signature, name])
        part = self._stream.compress(record)
        if part:
            self._parts.append(part)
            self.size += len(part)
        self.plain += len(record)
        self.count += 1
        link = link_of(envelope.header)
        if link is not None:
            self._links[envelope.id] = link

    def finish(
        self, level: int, store: bytes, key: Scope, salt: bytes, replica: bytes, wrapped: Iterable[Sequence[Any]] = ()
    ) -> Sealed:
        """Return the pack under ``key`` (id, secret). ``salt``: 32 random bytes, never used twice."""
        runs = runs_of(self._links)
        index = {
            _I_REPLICA: replica,
            _I_COUNT: self.count,
            _I_RUNS: b"".join(_RUN.pack(*run) for run in runs),
            _I_WRAPPED: [list(row) for row in wrapped],
        }
        first = _compressor().compress(self._pack(index))
        if self.count:
            self._parts.append(self._stream.flush())
        self._parts.appendleft(first)
        data = _sealed(self._parts, store, key, salt, self.count)
        return Sealed(pack_name(level, data), data, self.count, runs, self._links)


def encode(
    events: Iterable[Envelope],
    level: int,
    store: bytes,
    key: Scope,
    salt: bytes,
    replica: bytes,
    *,
    nonce: Callable[[int], bytes],
    scope_of: Callable[[Envelope], Scope | None] | None = None,
    wrapped: Iterable[Sequence[Any]] = (),
) -> Sealed:
    """Return these events as one pack (see ``Builder``)."""
    builder = Builder(scope_of)
    for event in events:
        builder.add(event, nonce)
    return builder.finish(level, store, key, salt, replica, wrapped)


def pack_name(level: int, data: bytes) -> str:
    """Return the file name of a pack: lower-case ASCII, and its own for every pack, for each has its own salt."""
    return f"{level}-{blake3(data).hexdigest()[:16]}.mzp"


def _sealed(parts: deque[bytes], store: bytes, key: Scope, salt: bytes, count: int) -> bytes:
    """Cut a stream into chunks, seal each, and put header and footer around them. Uses the parts up."""
    header = _HEADER.pack(MAGIC, FORMAT, _HEADER.size, 0, store, key[0], salt)
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
    size = sum(map(len, made)) + _FOOTER.size
    digest = blake3()
    for part in made:
        digest.update(part)
    front = struct.pack(">QQ", size, count)
    digest.update(front)
    made.append(front + digest.digest() + END)
    return b"".join(made)


# -- reading ------------------------------------------------------------------------------------------------------


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
    if len(data) < _LEAST:
        return Probe(PENDING, why="it is not whole")
    _, _, length, _, store, key, _ = _HEADER.unpack_from(data)
    size, count, digest, end = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if end != END or size != len(data):
        return Probe(PENDING, why="it is not whole")
    if length != _HEADER.size or len(data) > PACK_BYTES_MAX or digest != _digest(data):
        return Probe(BAD, why="its content is not what its end says")
    return Probe(OURS, store, key, count)


def decode(
    data: bytes,
    secret_of: Callable[[bytes], bytes | None],
    scope_secret: Callable[[bytes], bytes | None] | None = None,
) -> Pack:
    """Open a pack and check all of it against its key. Raises BadPack and nothing else.

    ``secret_of`` and ``scope_secret`` give the secret of a store key and a scope key by its id, None for one that is
    not held.
    """
    found = probe(data)
    if found.state != OURS:
        raise BadPack(found.state, found.why)
    secret = secret_of(found.key)
    if secret is None:
        raise BadPack(UNKNOWN_KEY, "it is sealed under a key that is not held here")
    opened = _Opened(data, secret)
    missing: set[bytes] = set()
    records = _records(opened.chunks())
    try:
        index = next(records, None)
    except _UNREADABLE as error:
        raise BadPack(BAD, f"its first record: {error}") from None
    replica, count, runs, wrapped = _index(index)
    if count != found.events:
        raise BadPack(BAD, "it does not hold as many events as it says")
    events = _events(records, count, scope_secret or (lambda _: None), missing)
    return Pack(found.store, found.key, replica, count, runs, wrapped, events, missing)


class _Opened:
    """The chunks of a pack. Small packs are opened once, large ones twice: to check all of them, and to read."""

    def __init__(self, data: bytes, secret: bytes) -> None:
        self._data = memoryview(data)
        self._header = data[: _HEADER.size]
        self._cipher = _cipher(secret, data[_HEADER.size - SALT_BYTES : _HEADER.size])
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

        end = len(self._data) - _FOOTER.size
        for number, start in enumerate(range(_HEADER.size, end, _SEALED_BYTES)):
            stop = min(start + _SEALED_BYTES, end)
            try:
                yield self._cipher.decrypt(_nonce(number, last=stop == end), self._data[start:stop], self._header)
            except (InvalidTag, ValueError):
                raise BadPack(BAD, "it was not sealed under the key that it names") from None


def _records(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Return the msgpack values of a compressed stream, one after the other in bounded memory.

    Raises one of _UNREADABLE.
    """
    import zstandard

    unpacker = msgpack.Unpacker(
        raw=False,
        strict_map_key=False,
        use_list=False,
        unicode_errors="replace",
        max_buffer_size=_RECORD_BYTES_MAX,
        # Room is made for as many items as an array says it has, and arrays can be nested.
        max_array_len=_ITEMS_MAX,
        max_map_len=_ITEMS_MAX,
    )
    plain = 0
    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES_MAX).stream_reader(
        cast("IO[bytes]", _Source(chunks)), read_across_frames=True
    )
    while True:
        try:
            part = reader.read(_FEED_BYTES)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if not part:
            break
        plain += len(part)
        if plain > PACK_PLAIN_BYTES_MAX:
            raise ValueError("it unpacks to more than any pack")
        unpacker.feed(part)
        yield from unpacker
    if unpacker.tell() != plain:
        raise ValueError("it ends within a record")


class _Source:
    """Pieces of a stream as the file that the decompressor wants to read from."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes, none at the end."""
        if not self._rest:
            self._rest = next(self._chunks, b"")
        part, self._rest = self._rest[:size], self._rest[size:]
        return part


def _events(
    records: Iterator[Any], count: int, scope_secret: Callable[[bytes], bytes | None], missing: set[bytes]
) -> Iterator[Envelope]:
    found = 0
    try:
        for record in records:
            found += 1
            yield _envelope(record, scope_secret, missing)
    except _UNREADABLE as error:
        raise BadPack(BAD, f"record {found}: {error}") from None
    if found != count:
        raise BadPack(BAD, "it does not hold as many events as it says")


def _envelope(record: Any, scope_secret: Callable[[bytes], bytes | None], missing: set[bytes]) -> Envelope:
    header, body, signature, scope = record[:4]
    if type(header) is not bytes or type(signature) is not bytes or not (body is None or type(body) is bytes):
        raise ValueError("it is not an event")
    if body is not None and scope is not None:
        if type(scope) is not bytes:
            raise ValueError("it is not an event")
        secret = scope_secret(scope)
        if secret is None:
            missing.add(scope)
            body = None
        else:
            body = _open_body(secret, event_id(header), body)
    link = link_of(header)
    lamport = link.lamport if link is not None else 0
    return Envelope(event_id(header), lamport, header, body, signature)


def _index(record: Any) -> tuple[bytes, int, tuple[Run, ...], tuple[Sequence[Any], ...]]:
    """Return replica, count, runs and wrapped keys of the first record. Raises BadPack."""
    try:
        replica, count = record[_I_REPLICA], record[_I_COUNT]
        runs = tuple(Run(*row) for row in _RUN.iter_unpack(record[_I_RUNS]))
        wrapped = tuple(record[_I_WRAPPED])
        sound = type(replica) is bytes and len(replica) == RANDOM_BYTES and type(count) is int
        sound = sound and all(run.is_sound() for run in runs)
        sound = sound and all(type(row) is tuple for row in wrapped)
    except (*_UNREADABLE, LookupError):
        sound, replica, count, runs, wrapped = False, b"", 0, (), ()
    if not sound:
        raise BadPack(BAD, "its first record says nothing")
    return replica, count, runs, wrapped


def _digest(data: bytes) -> bytes:
    return blake3(memoryview(data)[: -(32 + len(END))]).digest()


# -- ciphers ------------------------------------------------------------------------------------------------------


def _cipher(secret: bytes, salt: bytes) -> Any:
    """Return the cipher of one pack: its key is made of the store's and of random salt, so nonces may simply count."""
    return _chacha()(blake3(secret + salt, derive_key_context=_KEY_CONTEXT).digest())


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


def _seal_body(secret: bytes, identity: bytes, body: bytes, nonce: bytes) -> bytes:
    """Return a body under a scope key and bound to its event. One random nonce in 96 bits, a key for each event."""
    sealed: bytes = nonce + _body_cipher(secret, identity).encrypt(nonce, body, identity)
    return sealed


def _open_body(secret: bytes, identity: bytes, sealed: bytes) -> bytes:
    """Raises ValueError when this is not the body that was sealed under the key."""
    from cryptography.exceptions import InvalidTag

    nonce, rest = sealed[:_SCOPE_NONCE_BYTES], sealed[_SCOPE_NONCE_BYTES:]
    try:
        body: bytes = _body_cipher(secret, identity).decrypt(nonce, rest, identity)
    except InvalidTag:
        raise ValueError("a body was not sealed under the scope key that it names") from None
    return body


def _body_cipher(secret: bytes, identity: bytes) -> Any:
    return _chacha()(blake3(secret + identity, derive_key_context=_SCOPE_CONTEXT).digest())


@cache
def _chacha() -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # 20 ms that most verbs need not pay

    return ChaCha20Poly1305


def _compressor() -> Any:
    """Return a new one: two streams of one compressor would disturb each other."""
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL)
