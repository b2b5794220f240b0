"""Events that another replica wrote, as they travel."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from memorize.ids import commitment, event_id
from memorize.log.codec import encode_body, encode_header
from memorize.log.frames import ERASED, EVENT
from memorize.log.segments import scan_segment
from memorize.model import OBSERVED_NOTE, Envelope, Header
from memorize.paths import Home

STORE = b"s" * 16


class Other:
    """A replica with one writer; its events follow one another. The same number makes the same events."""

    def __init__(self, number: int = 1, store: bytes = STORE) -> None:
        self.seeds = random.Random(number)
        self.store = store
        self.replica, self.writer = self.seeds.randbytes(16), self.seeds.randbytes(16)
        self.seq = self.lamport = 0
        self.prev = b""

    def write(self, payload: Mapping[str, Any], kind: str = OBSERVED_NOTE, **fields: Any) -> Envelope:
        """Write one event; ``fields`` are those of its header."""
        body, _ = encode_body(payload, self.seeds.randbytes(16))
        self.seq, self.lamport = self.seq + 1, self.lamport + 1
        header = Header(
            1, self.store, self.replica, self.writer, self.seq, self.prev, self.lamport, (), kind, len(body),
            commitment(body), self.seeds.randbytes(16), 0, b"b" * 16, self.seq, 1_796_000_000_000 + self.seq,
        )._replace(**fields)  # fmt: skip
        raw = encode_header(header)
        self.prev = event_id(raw)
        return Envelope(self.prev, header.lamport, raw, body)

    def say(self, *texts: str) -> list[Envelope]:
        """Write one note for each text."""
        return [self.write({"text": text}) for text in texts]


def bare(envelopes: Iterable[Envelope]) -> list[Envelope]:
    """Return the events as they travel without their bodies."""
    return [envelope._replace(body=None) for envelope in envelopes]


def received(home: Home) -> list[Envelope]:
    """Return what lies in the received files, read with nothing but the scanner."""
    found = []
    for path in sorted(home.received.glob("*.mzs")):
        for frame in scan_segment(path.read_bytes()).frames:
            if frame.type == EVENT:
                body = None if frame.flags & ERASED else frame.body
                found.append(Envelope(event_id(frame.header), 0, frame.header, body, frame.signature))
    return found
