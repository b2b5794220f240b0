"""Events as an index gets them: stored somewhere, with payloads that came out of msgpack."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from memorize.index import packing, schema
from memorize.index.projector import Projector
from memorize.model import Event, Header, Stored

FILE = "segments/" + "ab" * 16 + "-00000001.mzs"
NOW = 1_796_000_000_000


def readable(event: Event) -> Event:
    """Return the event as the log would give it back: a payload that cannot be stored makes it malformed."""
    try:
        payload = None if event.payload is None else packing.unpack(packing.pack(event.payload))
    except (TypeError, ValueError, OverflowError):
        return Event(event.id, event.header, None, True)
    return event._replace(payload=payload)


def stored(events: Iterable[Event], start: int = 0) -> list[Stored]:
    return [Stored(event, FILE, (start + at) * 300, 300) for at, event in enumerate(events)]


def new_index(path: Path) -> Projector:
    schema.create(path).close()
    return Projector(path)


def event(kind: str, payload: dict[str, Any], lamport: int, seed: random.Random, **fields: Any) -> Event:
    header = Header(
        1, b"s" * 16, b"r" * 16, b"w" * 16, lamport, b"", lamport, tuple(fields.pop("deps", ())), kind, 100, b"c" * 32,
        fields.pop("nonce", None) or seed.randbytes(16), fields.pop("ordinal", 0), b"b" * 16, lamport,
        fields.pop("wall", NOW - 1_000_000 + lamport), **fields,
    )  # fmt: skip
    return Event(seed.randbytes(32), header, payload)


def groups(events: Sequence[Any], seed: random.Random, most: int) -> list[list[Any]]:
    """Cut a sequence into random groups, some of whose members come a second time later."""
    found: list[list[Any]] = []
    rest = list(events)
    while rest:
        size = seed.randint(1, most)
        found.append(rest[:size])
        rest = rest[size:]
    for _ in range(seed.randint(0, 2)):
        if events:
            found.append(seed.sample(list(events), seed.randint(1, len(events))))
    return found
