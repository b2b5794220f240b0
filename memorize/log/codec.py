"""Events as bytes (docs/format.md). Nothing that was written is ever encoded again: raw bytes are kept as they came.

Header: msgpack map, small integer keys ascending, shortest integers, absent instead of empty. Body: 16 random salt
bytes, then a msgpack map with string keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgpack

from memorize.ids import ID_BYTES, RANDOM_BYTES, commitment, event_id
from memorize.limits import (
    BODY_BYTES_MAX,
    DEPS_MAX,
    FORMAT,
    HEADER_BYTES_MAX,
    KIND_CHARS_MAX,
    NESTING_MAX,
    RELAY_BODY_BYTES_MAX,
    RELAY_HEADER_BYTES_MAX,
)
from memorize.model import Event, Header, Payload

SALT_BYTES: Final = RANDOM_BYTES

# Header keys. Add, never change the meaning.
K_FORMAT: Final = 0
K_STORE: Final = 1
K_REPLICA: Final = 2
K_WRITER: Final = 3
K_SEQ: Final = 4
K_PREV: Final = 5
K_LAMPORT: Final = 6
K_DEPS: Final = 7
K_KIND: Final = 8
K_BODY_LEN: Final = 9
K_COMMITMENT: Final = 10
K_NONCE: Final = 11
K_ORDINAL: Final = 12
K_BOOT: Final = 13
K_MONO: Final = 14
K_WALL: Final = 15
K_SCOPE_KEY: Final = 16
K_PERSON: Final = 17
K_MUST: Final = 18
KNOWN_KEYS: Final = frozenset(range(19))

_INT_MAX: Final = 2**63 - 1  # what SQLite can hold; a larger number in a header is malformed
_PACK_INT_MIN: Final = -(2**63)
_PACK_INT_MAX: Final = 2**64 - 1
_CUT_CHARS: Final = (256 * 1024, 64 * 1024, 16 * 1024, 4 * 1024, 1024, 256)
_CUT_ITEMS: Final = (16 * 1024, 8 * 1024, 4 * 1024, 1024, 256, 64)
# Keys that were seen to need no change: payloads have the same few again and again.
_KEYS_MAX: Final = 4096
_keys: set[object] = set()
_TOO_DEEP: Final = "[nested too deep]"

# Everything that msgpack raises for bytes that it cannot read.
UNREADABLE: Final = (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException)

_pack: Callable[[object], bytes] = msgpack.Packer(use_bin_type=True).pack


class Bad(Exception):  # noqa: N818 - called for what it says of the bytes
    """These bytes are not an event: header unreadable, or the body is not the one that the header commits to."""


class Encoded(NamedTuple):
    """An event and its bytes."""

    event: Event
    header: bytes
    body: bytes


def encode(header: Header, payload: Payload, salt: bytes) -> Encoded:
    """Return the event with these fields; body length and commitment of ``header`` are filled in here.

    ``payload`` must have come out of ``tidy``. A body above the limit is cut. Raises ValueError when the header
    breaks a limit of producers: kind, deps, size.
    """
    body, payload = encode_body(payload, salt)
    filled = header._replace(body_len=len(body), commitment=commitment(body))
    raw = encode_header(filled)
    return Encoded(Event(event_id(raw), filled, payload), raw, body)


def encode_body(payload: Payload, salt: bytes) -> tuple[bytes, Payload]:
    """Return the stored body and the payload that it holds, which is a cut one when the given is too long."""
    body = salt + _pack(payload)
    if len(body) > BODY_BYTES_MAX:
        payload = _cut(payload, len(body))
        body = salt + _pack(payload)
    return body, payload


def encode_header(header: Header) -> bytes:
    """Return the raw header. Raises ValueError for what no producer may write."""
    if len(header.deps) > DEPS_MAX:
        raise ValueError(f"{len(header.deps)} deps, at most {DEPS_MAX} allowed")
    if not 0 < len(header.kind) <= KIND_CHARS_MAX or not header.kind.isascii():
        raise ValueError("a kind is 1 to 64 ASCII characters")
    fields: dict[int, object] = {
        K_FORMAT: header.format,
        K_STORE: header.store,
        K_REPLICA: header.replica,
        K_WRITER: header.writer,
        K_SEQ: header.seq,
    }
    if header.prev:
        fields[K_PREV] = header.prev
    fields[K_LAMPORT] = header.lamport
    if header.deps:
        fields[K_DEPS] = header.deps
    fields[K_KIND] = header.kind
    fields[K_BODY_LEN] = header.body_len
    fields[K_COMMITMENT] = header.commitment
    if header.nonce:
        fields[K_NONCE] = header.nonce
        fields[K_ORDINAL] = header.ordinal
    if header.boot:
        fields[K_BOOT] = header.boot
    fields[K_MONO] = header.mono
    fields[K_WALL] = header.wall
    if header.scope_key:
        fields[K_SCOPE_KEY] = header.scope_key
    if header.person:
        fields[K_PERSON] = header.person
    if header.must:
        fields[K_MUST] = header.must
    raw = _pack(fields)
    if len(raw) > HEADER_BYTES_MAX:
        raise ValueError(f"header of {len(raw)} bytes")
    return raw


def decode(raw_header: bytes, raw_body: bytes | None) -> Event:
    """Return the event; ``raw_body`` None stands for an erased body.

    An event verifies when its header is a map that commits to exactly this body. Whatever else is wrong with it makes
    it ``malformed``, with empty values for the fields that cannot be used. Raises Bad when it does not verify, and
    nothing else.
    """
    if len(raw_header) > RELAY_HEADER_BYTES_MAX or (raw_body is not None and len(raw_body) > RELAY_BODY_BYTES_MAX):
        raise Bad("larger than any event")
    try:
        fields = msgpack.unpackb(raw_header, raw=False, strict_map_key=False)
    except UNREADABLE as error:
        raise Bad(f"header: {error}") from None
    if type(fields) is not dict:
        raise Bad("the header is not a map")
    promised, length = fields.get(K_COMMITMENT), fields.get(K_BODY_LEN)
    if type(promised) is not bytes or len(promised) != ID_BYTES or type(length) is not int or length < 0:
        raise Bad("the header commits to no body")
    header, well = _header(fields, length, promised)
    if raw_body is None:
        return Event(event_id(raw_header), header, None, not well)
    if len(raw_body) != length or commitment(raw_body) != promised:
        raise Bad("the body is not the one that the header commits to")
    payload = None if header.scope_key else _payload(raw_body)
    return Event(event_id(raw_header), header, payload, not well or (payload is None and not header.scope_key))


def _header(fields: Mapping[Any, Any], body_len: int, promised: bytes) -> tuple[Header, bool]:
    get = fields.get
    deps = get(K_DEPS, ())
    must = get(K_MUST, ())
    header = Header(
        get(K_FORMAT, 0),
        get(K_STORE, b""),
        get(K_REPLICA, b""),
        get(K_WRITER, b""),
        get(K_SEQ, 0),
        get(K_PREV, b""),
        get(K_LAMPORT, 0),
        tuple(deps) if type(deps) is list else deps,
        get(K_KIND, ""),
        body_len,
        promised,
        get(K_NONCE, b""),
        get(K_ORDINAL, 0),
        get(K_BOOT, b""),
        get(K_MONO, 0),
        get(K_WALL, 0),
        get(K_SCOPE_KEY, b""),
        get(K_PERSON, b""),
        tuple(must) if type(must) is list else must,
    )
    if _is_sound(header):
        return header, not header.must or KNOWN_KEYS.issuperset(header.must)
    return _usable(header), False


def _is_sound(header: Header) -> bool:
    (number, store, replica, writer, seq, prev, lamport, deps, kind, length) = header[:10]
    return (
        type(store) is type(replica) is type(writer) is type(prev) is bytes
        and len(store) == len(replica) == len(writer) == RANDOM_BYTES
        and type(number) is type(seq) is type(lamport) is int
        and 0 < number <= _INT_MAX
        and 0 < seq <= _INT_MAX
        and 0 < lamport <= _INT_MAX
        and length <= _INT_MAX
        and len(prev) in (0, ID_BYTES)
        and type(kind) is str
        and 0 < len(kind) <= KIND_CHARS_MAX
        and kind.isascii()
        and (deps == () or _are_ids(deps))
        and _is_sound_hint(header)
    )


def _is_sound_hint(header: Header) -> bool:
    nonce, ordinal, boot, mono, wall, scope_key, person, must = header[11:]
    return (
        type(nonce) is type(boot) is type(scope_key) is type(person) is bytes
        and len(nonce) in (0, RANDOM_BYTES)
        and len(boot) in (0, RANDOM_BYTES)
        and type(ordinal) is type(mono) is type(wall) is int
        and 0 <= ordinal <= _INT_MAX
        and 0 <= mono <= _INT_MAX
        and 0 <= wall <= _INT_MAX
        and (must == () or (type(must) is tuple and all(_is_int(key) for key in must)))
    )


def _are_ids(deps: object) -> bool:
    return type(deps) is tuple and all(type(dep) is bytes and len(dep) == ID_BYTES for dep in deps)


def _is_int(value: object) -> bool:
    return type(value) is int and 0 <= value <= _INT_MAX


def _usable(header: Header) -> Header:
    """Return the header with an empty value for every field that no reader could use as what it should be."""

    def number(value: object) -> int:
        return value if type(value) is int and 0 <= value <= _INT_MAX else 0

    def name(value: object, size: int = RANDOM_BYTES) -> bytes:
        return value if type(value) is bytes and len(value) == size else b""

    kind = header.kind
    return Header(
        number(header.format),
        name(header.store),
        name(header.replica),
        name(header.writer),
        number(header.seq),
        name(header.prev, ID_BYTES),
        number(header.lamport),
        header.deps if _are_ids(header.deps) else (),
        kind if type(kind) is str and len(kind) <= KIND_CHARS_MAX and kind.isascii() else "",
        number(header.body_len),
        header.commitment,
        name(header.nonce),
        number(header.ordinal),
        name(header.boot),
        number(header.mono),
        number(header.wall),
        header.scope_key if type(header.scope_key) is bytes else b"",
        header.person if type(header.person) is bytes else b"",
        tuple(key for key in header.must if _is_int(key)) if type(header.must) is tuple else (),
    )


def _payload(raw_body: bytes) -> dict[str, Any] | None:
    try:
        payload = msgpack.unpackb(raw_body[SALT_BYTES:], raw=False, strict_map_key=True)
    except UNREADABLE:
        return None
    if type(payload) is not dict or not all(type(key) is str for key in payload):
        return None
    return payload


# -- values that can be stored ------------------------------------------------------------------------------------


def tidy(payload: Payload) -> dict[str, Any]:
    """Return the payload as a reader will find it: plain lists and maps, no floats, no lone surrogates, not too deep.

    Agents hand over any JSON; what the format cannot hold becomes text instead of an error.
    """
    if payload.keys() <= _keys:
        plain = dict(payload)
        for key, value in plain.items():
            kind = type(value)
            if kind is str:
                if not value.isascii():
                    plain[key] = _text(value)
            elif kind is not bool and value is not None:
                plain[key] = _plain(value, 1)
        return plain
    plain = {_text(key): _plain(value, 1) for key, value in payload.items()}
    if len(_keys) < _KEYS_MAX:
        _keys.update(key for key in plain if len(key) <= KIND_CHARS_MAX and key.isascii())
    return plain


def _plain(value: object, depth: int) -> object:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)  # type: ignore[attr-defined]
    if value is None or kind is bool or kind is bytes:
        return value
    if isinstance(value, int):
        return int(value) if _PACK_INT_MIN <= value <= _PACK_INT_MAX else str(value)
    if isinstance(value, Mapping):
        if depth >= NESTING_MAX:
            return _TOO_DEEP
        return {_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        if depth >= NESTING_MAX:
            return _TOO_DEEP
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _text(value)


def _text(value: object) -> str:
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


# -- bodies above the limit ---------------------------------------------------------------------------------------


def _cut(payload: Payload, length: int) -> dict[str, Any]:
    """Return the payload with long texts and lists shortened until it fits; ``cut`` keeps the length it had."""
    for chars, items in zip(_CUT_CHARS, _CUT_ITEMS, strict=True):
        shorter = {key: _shorten(value, chars, items) for key, value in payload.items()}
        shorter["cut"] = length
        if len(_pack(shorter)) + SALT_BYTES <= BODY_BYTES_MAX:
            return shorter
    # Thousands of nested containers: what is left of them as one text.
    whole = str({key: _shorten(value, _CUT_CHARS[-1], _CUT_ITEMS[-1]) for key, value in payload.items()})
    return {"cut": length, "text": _shorten(_text(whole), _CUT_CHARS[2], 0)}


def _shorten(value: object, chars: int, items: int) -> object:
    if isinstance(value, str):
        if len(value) <= chars:
            return value
        half = chars // 2
        return f"{value[:half]}\n[... {len(value) - 2 * half} of {len(value)} characters cut ...]\n{value[-half:]}"
    if isinstance(value, bytes):
        return value if len(value) <= chars else value[: chars // 2] + value[-(chars // 2) :]
    if isinstance(value, list):
        kept = value if len(value) <= items else value[: items // 2] + value[-(items // 2) :]
        return [_shorten(item, chars, items) for item in kept]
    if isinstance(value, dict):
        entries = list(value.items())
        kept_entries = entries if len(entries) <= items else entries[: items // 2] + entries[-(items // 2) :]
        return {key if len(key) <= chars else key[:chars]: _shorten(item, chars, items) for key, item in kept_entries}
    return value


def new_header(store: bytes, replica: bytes, writer: bytes, kind: str) -> Header:
    """Return a header with these names and nothing else, to be completed with ``_replace``."""
    return Header(FORMAT, store, replica, writer, 1, b"", 1, (), kind, 0, b"", b"", 0, b"", 0, 0)
