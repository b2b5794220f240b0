"""What the tests of peers share: events of several writers, and two sessions that talk without a byte of I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from memorize.ids import random_id
from memorize.log import codec
from memorize.log.codec import encode
from memorize.model import Header
from memorize.sync.handshake import Role
from memorize.sync.port import Envelope, Holding
from memorize.sync.session import Outcome, Session
from memorize.sync.wire import PEER_FRAME_BYTES_MAX, Decoder, Frame
from memorize.sync.wire import encode as to_bytes
from tests.sync.simulator.holding import MemoryHolding

STORE = b"\x01" * 16
KEY = b"\x02" * 32


class Pen:
    """Writes the events of one writer, one after the other."""

    def __init__(self, lamport: int = 0, writer: bytes | None = None) -> None:
        self.writer = writer or random_id()
        self.lamport, self.seq, self.prev = lamport, 0, b""

    def write(self, text: str = "", kind: str = "observed.note", **payload: object) -> Envelope:
        self.lamport, self.seq = self.lamport + 1, self.seq + 1
        fields = (1, STORE, b"\x05" * 16, self.writer, self.seq, self.prev, self.lamport, (), kind, 0, b"")
        header = Header(*fields, b"", 0, b"", 1, 1_796_000_000_000)
        content = {"text": text or f"기억 {self.seq} é", **payload}
        made = encode(header, codec.tidy(content), random_id())
        self.prev = made.event.id
        return Envelope(made.event.id, self.lamport, made.header, made.body)

    def many(self, count: int) -> list[Envelope]:
        return [self.write() for _ in range(count)]


def events(writers: int, each: int) -> list[Envelope]:
    """Return events of several writers that worked side by side."""
    pens = [Pen() for _ in range(writers)]
    return [pen.write() for _ in range(each) for pen in pens]


def holding(*parts: Iterable[Envelope]) -> MemoryHolding:
    """Return a replica that holds these events."""
    made = MemoryHolding()
    for part in parts:
        made.receive(part)
    return made


class Traffic(NamedTuple):
    """What went over the wire: turns of both sides, and bytes with those of events counted apart."""

    turns: int
    frames: list[tuple[str, Frame]]
    bytes: int


def sessions(one: Holding, other: Holding, **options: object) -> tuple[Session, Session]:
    """Return both sides; options as those of ``Session``."""
    return (
        Session(one, KEY, STORE, Role.INITIATOR, **options),
        Session(other, KEY, STORE, Role.RESPONDER, **options),
    )


def talk(
    one: Session,
    other: Session,
    each: Callable[[int, Frame], bool] = lambda *_: True,
) -> Traffic:
    """Carry frames as bytes from one to the other until nobody says anything; ``each`` may cut the link by False."""
    count, seen, size, turns = 0, [], 0, 0
    sides = {"one": one, "other": other}
    speaker, frames = "one", one.opening()
    while frames:
        turns += 1
        hearer = "other" if speaker == "one" else "one"
        answer: list[Frame] = []
        for frame in frames:
            if not each(count, frame):
                return Traffic(turns, seen, size)
            count += 1
            seen.append((speaker, frame))
            data = to_bytes(frame)
            size += len(data)
            answer += sides[hearer].on(received(data, sides[hearer].frame_bytes_max))
        speaker, frames = hearer, answer
    return Traffic(turns, seen, size)


def received(data: bytes, limit: int = PEER_FRAME_BYTES_MAX) -> Iterator[Frame]:
    decoder = Decoder(limit)
    decoder.feed(data)
    return decoder.frames()


def sync(one: Holding, other: Holding, **options: object) -> tuple[Outcome | None, Outcome | None, Traffic]:
    """Hold a whole session and return how it ended on both sides."""
    first, second = sessions(one, other, **options)
    traffic = talk(first, second)
    return first.outcome, second.outcome, traffic
