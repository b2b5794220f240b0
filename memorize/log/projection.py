"""What the log needs of the index."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from memorize.model import Event, Stored


class Projection(Protocol):
    """The index as the ingester sees it. Only the holder of the ingest lock calls it."""

    def top(self) -> int:
        """Return the largest Lamport number, 0 at first, leaving out leaps above ``limits.LAMPORT_LEAP_MAX``."""
        ...

    def offsets(self) -> Mapping[str, int]:
        """Return file name (``segments/...``, ``received/...``) -> offset up to which it is indexed."""
        ...

    def known(self, nonces: Sequence[bytes]) -> Mapping[tuple[bytes, int], bytes]:
        """Return (nonce, ordinal) -> event id of every indexed event with one of these nonces."""
        ...

    def bodies(self, ids: Collection[bytes]) -> Mapping[bytes, bool]:
        """Return id -> whether its body is held, or erased, of those of the events that are known."""
        ...

    def refused(self, events: Sequence[Event]) -> Collection[bytes]:
        """Return the ids of those of the events whose body an erasure forbids to keep."""
        ...

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        """Index the events and advance the offsets, all in one transaction."""
        ...
