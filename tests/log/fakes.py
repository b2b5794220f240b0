"""A projection in memory and a disk that fails, for the tests of the log."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from memorize.clock import Clock, FixedClock
from memorize.errors import CannotWrite
from memorize.limits import LAMPORT_LEAP_MAX
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.log.ingest import Ingester
from memorize.log.segments import scan_segment
from memorize.model import Capture, Draft, Event, Stored
from memorize.paths import Home


class QuickFiles(RealFiles):
    """The disk without waiting for it: what is durable matters to other tests."""

    def fdatasync(self, handle: int) -> None:
        pass

    def fsync(self, handle: int) -> None:
        pass

    def sync_dir(self, directory: str) -> None:
        pass


class NullProjection:
    """Remembers offsets only."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}

    def top(self) -> int:
        return 0

    def offsets(self) -> Mapping[str, int]:
        return self.ends

    def known(self, nonces: Sequence[bytes]) -> Mapping[tuple[bytes, int], bytes]:
        return {}

    def bodies(self, ids: Collection[bytes]) -> Mapping[bytes, bool]:
        return {}

    def refused(self, events: Sequence[Event]) -> Collection[bytes]:
        return ()

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        self.ends.update(offsets)


class MemoryProjection:
    """The whole port, in memory. ``failures`` makes the next calls of ``apply`` raise."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.stored: dict[bytes, Stored] = {}
        self.ids: dict[bytes, dict[int, bytes]] = {}
        self.counter = 0
        self.erased: set[bytes] = set()
        self.failures: list[Exception] = []
        self.applied: list[list[Stored]] = []

    def top(self) -> int:
        return self.counter

    def offsets(self) -> Mapping[str, int]:
        return dict(self.ends)

    def known(self, nonces: Sequence[bytes]) -> Mapping[tuple[bytes, int], bytes]:
        return {(nonce, ordinal): identity for nonce in nonces for ordinal, identity in self.ids.get(nonce, {}).items()}

    def bodies(self, ids: Collection[bytes]) -> Mapping[bytes, bool]:
        return {identity: not self.stored[identity].bare for identity in ids if identity in self.stored}

    def refused(self, events: Sequence[Event]) -> Collection[bytes]:
        return {event.id for event in events if event.id in self.erased}

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.applied.append(list(events))
        for stored in sorted(events, key=lambda stored: stored.event.order):
            header = stored.event.header
            self.stored[stored.event.id] = stored
            if header.nonce:
                self.ids.setdefault(header.nonce, {})[header.ordinal] = stored.event.id
            if header.lamport - self.counter <= LAMPORT_LEAP_MAX:
                self.counter = max(self.counter, header.lamport)
        self.ends.update(offsets)

    @property
    def events(self) -> list[Event]:
        return sorted((stored.event for stored in self.stored.values()), key=lambda event: event.order)

    def texts(self) -> list[str]:
        return [str(event.payload["text"]) for event in self.events if event.payload and "text" in event.payload]


def note(capture: Capture) -> Sequence[Draft]:
    """Normalise as simply as possible: one note a capture."""
    return [Draft("observed.note", {"text": capture.data.decode("utf-8", "replace"), "agent": capture.agent})]


def no_machine() -> str:
    return "a machine"


def ingester(
    home: Home,
    projection: MemoryProjection | NullProjection | None = None,
    files: RealFiles | None = None,
    clock: Clock | None = None,
    normalise: Callable[[Capture], Sequence[Draft]] = note,
) -> Ingester:
    files = files or QuickFiles()
    clock = FixedClock() if clock is None else clock  # a clock without fields is false
    identity = load_or_renew(home, files, clock, no_machine)
    return Ingester(home, files, clock, identity, normalise, projection or MemoryProjection(), no_machine)


def segments(home: Home) -> list[Path]:
    return sorted(home.segments.glob("*.mzs"))


def events_on_disk(paths: Iterable[Path]) -> list[Event]:
    """Read with nothing but the scanner: what any other reader would find."""
    from memorize.log.segments import frame_event

    return [frame_event(frame) for path in paths for frame in scan_segment(path.read_bytes()).frames if frame.type == 1]


class Death(BaseException):
    """The process ends here."""


class FailingFiles(QuickFiles):
    """Fails the k-th call (1 = the first) and, if ``forever``, every later one; counts all calls.

    ``error`` is an errno, ``"short"`` (a write takes half, any other call fails with ENOSPC), or Death.
    """

    def __init__(self, at: int = 0, error: int | str | type[Death] = errno.EIO, forever: bool = False) -> None:
        self.at = at
        self.error = error
        self.forever = forever
        self.calls: list[str] = []

    def _step(self, name: str) -> bool:
        """Count a call; raise when it must fail. True when a write must be short."""
        self.calls.append(name)
        now = len(self.calls)
        if not self.at or now < self.at or (now > self.at and not self.forever):
            return False
        if self.error == "short":
            if name == "write":
                return True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.error is Death:
            raise Death
        assert isinstance(self.error, int)
        raise OSError(self.error, os.strerror(self.error))

    def names(self, directory: str) -> list[str]:
        self._step("names")
        return super().names(directory)

    def sizes(self, directory: str) -> dict[str, int]:
        self._step("sizes")
        return super().sizes(directory)

    def read(self, path: str, limit: int) -> bytes:
        self._step("read")
        return super().read(path, limit)

    def pread(self, path: str, offset: int, length: int) -> bytes:
        self._step("pread")
        return super().pread(path, offset, length)

    def create(self, path: str) -> int:
        self._step("create")
        return super().create(path)

    def reopen(self, path: str) -> int:
        self._step("reopen")
        return super().reopen(path)

    def write(self, handle: int, data: bytes) -> int:
        if self._step("write"):
            return super().write(handle, data[: len(data) // 2])
        return super().write(handle, data)

    def truncate(self, handle: int, size: int) -> None:
        self._step("truncate")
        super().truncate(handle, size)

    def fdatasync(self, handle: int) -> None:
        self._step("fdatasync")
        super().fdatasync(handle)

    def fsync(self, handle: int) -> None:
        self._step("fsync")
        super().fsync(handle)

    def close(self, handle: int) -> None:
        super().close(handle)  # the descriptor is gone whatever close answers
        self._step("close")

    def sync_dir(self, directory: str) -> None:
        self._step("sync_dir")
        super().sync_dir(directory)

    def rename(self, source: str, target: str) -> None:
        self._step("rename")
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._step("unlink")
        super().unlink(path)

    def make_dir(self, path: str) -> None:
        self._step("make_dir")
        super().make_dir(path)

    def modified_ms(self, path: str) -> int:
        self._step("modified_ms")
        return super().modified_ms(path)

    def touch(self, path: str, wall_ms: int) -> None:
        self._step("touch")
        super().touch(path, wall_ms)

    def place(self, path: str) -> tuple[int, int, int]:
        self._step("place")
        return super().place(path)

    def lock(self, path: str, wait_s: float) -> AbstractContextManager[object]:
        try:
            self._step("lock")
        except OSError as error:
            raise CannotWrite(path=path, detail=str(error)) from error
        return super().lock(path, wait_s)  # type: ignore[return-value]


def frame_event_ids(path: Path) -> list[bytes]:
    return [event.id for event in events_on_disk([path])]
