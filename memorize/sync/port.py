"""What flows between replicas, and what exchange needs of a replica. Nothing here knows what an event means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from memorize.model import Envelope as Envelope
from memorize.model import Key as Key
from memorize.model import Received as Received

ID_SPACE: Final = 2**256

# Below and above every key; bounds of a range are [low, high).
LOWEST: Final[Key] = (0, b"")
HIGHEST: Final[Key] = (2**64, b"")


class SetDigest(NamedTuple):
    """How many events, and the sum of their ids mod 2^256. Equal digests mean equal sets."""

    events: int
    total: int

    def plus(self, other: SetDigest) -> SetDigest:
        """Return the digest of two sets that share no event."""
        return SetDigest(self.events + other.events, (self.total + other.total) % ID_SPACE)


class Head(NamedTuple):
    """How far a writer's events are held without a gap or a twin: all of 1..``seq``, the last one being ``id``."""

    writer: bytes
    seq: int
    id: bytes


class Span(NamedTuple):
    """A run of one writer's events, ``low`` to ``high``, both included."""

    writer: bytes
    low: int
    high: int


class Holding(Protocol):
    """The events of one replica. Ranges and digests leave out those of which only the header is known."""

    def digest(self) -> SetDigest:
        """Return the set digest."""
        ...

    def range_digest(self, low: Key, high: Key) -> SetDigest:
        """Return the digest of the events from ``low`` up to, not including, ``high``."""
        ...

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        """Return the first ``limit`` keys of a range in ascending order."""
        ...

    def bounds(self, low: Key, high: Key, parts: int) -> list[Key]:
        """Return at most ``parts - 1`` keys that cut a range into about equally large parts, ascending."""
        ...

    def heads(self) -> list[Head]:
        """Return the head of every writer whose events are held whole, in order of the writer."""
        ...

    def spans(self) -> Mapping[bytes, tuple[bytes, list[Span]]]:
        """Return writer -> (replica, runs of events held with their body or erased), for every writer."""
        ...

    def after(self, head: Head, limit_bytes: int) -> list[Envelope]:
        """Return events of a writer after a head in order, at most about so many bytes of them.

        Empty when this replica does not hold exactly that event, or none after it. seq 0: from the beginning.
        """
        ...

    def of_spans(self, spans: Sequence[Span]) -> Iterator[Envelope]:
        """Return the events in these runs, twins included, run by run: by number, then by (lamport, id)."""
        ...

    def get(self, ids: Iterable[bytes]) -> Iterator[Envelope]:
        """Return these events as far as they are held."""
        ...

    def own(self, writers: Collection[bytes]) -> frozenset[bytes]:
        """Return those of the writers whose events this state directory wrote itself, in whatever incarnation."""
        ...

    def receive(self, envelopes: Iterable[Envelope]) -> Received:
        """Verify events, write them durably and index them. Raises Busy, CannotWrite, CannotRead."""
        ...
