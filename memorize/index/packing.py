"""How values lie in the columns of the index.

Lists are msgpack, beginnings of ids and hashes of keys are numbers, a text is one that SQLite can hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgpack
from blake3 import blake3

_CHUNK: Final = 400
_pack: Any = msgpack.Packer(unicode_errors="surrogatepass").pack


def unpack(raw: bytes) -> Any:
    """Return what ``pack`` packed."""
    return msgpack.unpackb(raw, strict_map_key=False, unicode_errors="surrogatepass")


def pack(value: object) -> bytes:
    """Return a list of ids or a payload as bytes, for a column."""
    packed: bytes = _pack(value)
    return packed


def number8(identity: bytes) -> int:
    """Return the first 7 bytes of an id or nonce as a number, which is what ``events`` is indexed by."""
    return int.from_bytes(identity[:7].ljust(7, b"\0"), "big")


def key_number(key: bytes) -> int:
    """Return the number under which a key that connects events (``fold.keys``) is stored."""
    if key[:1] == b"i" and len(key) == 33:
        return int.from_bytes(key[1:8], "big")
    return int.from_bytes(blake3(key).digest(7), "big")


def chunks(numbers: Sequence[int]) -> Iterator[str]:
    """Return SQL lists of at most so many numbers; numbers of ours, so they need no quoting."""
    for start in range(0, len(numbers), _CHUNK):
        yield ",".join(map(str, numbers[start : start + _CHUNK]))


def string(payload: Mapping[str, Any], name: str) -> str:
    """Return a text field that SQLite can hold, "" when it is absent or no text."""
    value = payload.get(name)
    if type(value) is not str:
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
