"""Packs: immutable files of events, sealed under a store key (docs/format.md). Pure: bytes in, bytes out.

A footer proves that a file is whole, so a copy that is still arriving is *pending*, never half taken in. Everything
behind the plain header is authenticated before the first event leaves this module.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import IO, Any, Final, NamedTuple, cast

import msgpack
from blake3 import blake3

from memorize.ids import ID_BYTES, RANDOM_BYTES, event_id
from memorize.limits import PACK_PLAIN_BYTES_MAX, RELAY_BODY_BYTES_MAX, RELAY_HEADER_BYTES_MAX
from memorize.log.codec import UNREADABLE
from memorize.sync.chains import Chains, Run, link_of
from memorize.sync.packfile import (
    BAD,
    OURS,
    UNKNOWN_KEY,
    BadPack,
    Opened,
    Scope,
    chacha,
    probe,
    seal,
)
from memorize.sync.port import Envelope

_SCOPE_CONTEXT: Final = "memorize 2026 scope body v1"
_SCOPE_NONCE_BYTES: Final = 12
_RECORD_BYTES_MAX: Final = RELAY_HEADER_BYTES_MAX + RELAY_BODY_BYTES_MAX + 64 * 1024
_RUN: Final = struct.Struct(f">{RANDOM_BYTES}sQQ{ID_BYTES}s")
_ITEMS_MAX: Final = 1_000
_LEVEL: Final = 3
_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
_FEED_BYTES: Final = 128 * 1024
# Keys of the first record.
_I_REPLICA: Final = 0
_I_COUNT: Final = 1
_I_RUNS: Final = 2
_I_WRAPPED: Final = 3
_I_BARE: Final = 4

# With what zstandard and struct raise.
_UNREADABLE: Final = (*UNREADABLE, MemoryError, struct.error)


class Pack(NamedTuple):
    """An opened pack: every chunk is authentic.

    ``envelopes`` may be asked once; it raises BadPack for what no writer makes. ``runs`` are what the writer of the
    pack says it holds; ``wrapped`` rows of keys for other devices. An event whose scope key is not held comes without
    its body, and the id of that key is added to ``missing``; ``scopes`` gets the ids of all. ``stripped`` events are
    there without a body; ``bare`` gets their ids.
    """

    store: bytes
    key: bytes
    replica: bytes
    events: int
    runs: tuple[Run, ...]
    wrapped: tuple[Sequence[Any], ...]
    envelopes: Iterator[Envelope]
    missing: set[bytes]
    scopes: set[bytes]
    bare: set[bytes]
    stripped: int


class Sealed(NamedTuple):
    """A finished pack: the name that its content gives it, its bytes, and what is inside."""

    name: str
    data: bytes
    events: int
    runs: tuple[Run, ...]


# -- writing ------------------------------------------------------------------------------------------------------


class Builder:
    """Collects events, compressed as they come, so that only the compressed form of a pack is ever in memory."""

    def __init__(
        self, scope_of: Callable[[Envelope], Scope | None] | None = None, watched: Collection[bytes] = ()
    ) -> None:
        """``scope_of``: id and secret of the key under which the body of an event travels, None for none.

        ``watched``: ids that ``Chains.holds`` will be asked for.
        """
        self._scope_of = scope_of
        self._stream = _compressor().compressobj()
        self._parts: deque[bytes] = deque()
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self.chains = Chains(watched)
        self.size = 0  # compressed bytes that left the compressor
        self.plain = 0
        self.count = 0
        self.bare = 0  # events without a body
        self.loose: list[bytes] = []  # ids of events that are in no chain
        self.scopes: set[bytes] = set()  # ids of the scope keys that were used

    def add(self, envelope: Envelope, nonce: Callable[[int], bytes]) -> None:
        """Add an event. ``nonce`` gives random bytes, asked for only when the body travels under a scope key."""
        scope = self._scope_of(envelope) if self._scope_of is not None and envelope.body is not None else None
        body, name = envelope.body, None
        if scope is not None and body is not None:
            name = scope[0]
            self.scopes.add(name)
            body = _seal_body(scope[1], envelope.id, body, nonce(_SCOPE_NONCE_BYTES))
        record = self._pack([envelope.header, body, envelope.signature, name])
        part = self._stream.compress(record)
        if part:
            self._parts.append(part)
            self.size += len(part)
        self.plain += len(record)
        self.count += 1
        self.bare += envelope.body is None
        link = link_of(envelope.header)
        if link is not None:
            self.chains.add(envelope.id, link)
        else:
            self.loose.append(envelope.id)

    def finish(
        self, level: int, store: bytes, key: Scope, salt: bytes, replica: bytes, wrapped: Iterable[Sequence[Any]] = ()
    ) -> Sealed:
        """Return the pack under ``key`` (id, secret). ``salt``: 32 random bytes, never used twice."""
        runs = self.chains.runs()
        index = {
            _I_REPLICA: replica,
            _I_COUNT: self.count,
            _I_RUNS: b"".join(_RUN.pack(*run) for run in runs),
            _I_WRAPPED: [list(row) for row in wrapped],
            _I_BARE: self.bare,
        }
        first = _compressor().compress(self._pack(index))
        if self.count:
            self._parts.append(self._stream.flush())
        self._parts.appendleft(first)
        data = seal(self._parts, store, key, salt, self.count)
        return Sealed(pack_name(level, data), data, self.count, runs)


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


# -- reading ------------------------------------------------------------------------------------------------------


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
    opened = Opened(data, secret)
    missing, scopes = set[bytes](), set[bytes]()
    records = _records(opened.chunks())
    try:
        index = next(records, None)
    except _UNREADABLE as error:
        raise BadPack(BAD, f"its first record: {error}") from None
    replica, count, runs, wrapped, stripped = _index(index)
    if count != found.events:
        raise BadPack(BAD, "it does not hold as many events as it says")
    bare: set[bytes] = set()
    events = _events(records, count, scope_secret or (lambda _: None), missing, scopes, bare)
    return Pack(found.store, found.key, replica, count, runs, wrapped, events, missing, scopes, bare, stripped)


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
    records: Iterator[Any],
    count: int,
    scope_secret: Callable[[bytes], bytes | None],
    missing: set[bytes],
    scopes: set[bytes],
    bare: set[bytes],
) -> Iterator[Envelope]:
    found = 0
    try:
        for record in records:
            found += 1
            envelope = _envelope(record, scope_secret, missing, scopes)
            if record[1] is None:
                bare.add(envelope.id)
            yield envelope
    except _UNREADABLE as error:
        raise BadPack(BAD, f"record {found}: {error}") from None
    if found != count:
        raise BadPack(BAD, "it does not hold as many events as it says")


def _envelope(
    record: Any, scope_secret: Callable[[bytes], bytes | None], missing: set[bytes], scopes: set[bytes]
) -> Envelope:
    header, body, signature, scope = record[:4]
    if type(header) is not bytes or type(signature) is not bytes or not (body is None or type(body) is bytes):
        raise ValueError("it is not an event")
    if body is not None and scope is not None:
        if type(scope) is not bytes:
            raise ValueError("it is not an event")
        scopes.add(scope)
        secret = scope_secret(scope)
        if secret is None:
            missing.add(scope)
            body = None
        else:
            body = _open_body(secret, event_id(header), body)
    link = link_of(header)
    lamport = link.lamport if link is not None else 0
    return Envelope(event_id(header), lamport, header, body, signature)


def _index(record: Any) -> tuple[bytes, int, tuple[Run, ...], tuple[Sequence[Any], ...], int]:
    """Return replica, count, runs, wrapped keys and count without a body of the first record. Raises BadPack."""
    try:
        replica, count = record[_I_REPLICA], record[_I_COUNT]
        runs = tuple(Run(*row) for row in _RUN.iter_unpack(record[_I_RUNS]))
        wrapped = tuple(record[_I_WRAPPED])
        stripped = record.get(_I_BARE, 0)
        sound = type(replica) is bytes and len(replica) == RANDOM_BYTES and type(count) is type(stripped) is int
        sound = sound and all(run.is_sound() for run in runs)
        sound = sound and all(type(row) is tuple for row in wrapped)
    except (*_UNREADABLE, LookupError):
        sound, replica, count, runs, wrapped, stripped = False, b"", 0, (), (), 0
    if not sound:
        raise BadPack(BAD, "its first record says nothing")
    return replica, count, runs, wrapped, stripped


# -- ciphers ------------------------------------------------------------------------------------------------------


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
    return chacha()(blake3(secret + identity, derive_key_context=_SCOPE_CONTEXT).digest())


def _compressor() -> Any:
    """Return a new one: two streams of one compressor would disturb each other."""
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL)
