"""The ingester: turns spool files into events (DESIGN 4). The only way into the log.

Order of one batch: read -> normalise -> redact -> one append -> fdatasync -> index -> unlink. Whatever stops it, the
next run finds either the spool file, or the event and the spool file, and (nonce, ordinal) tells them apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from memorize.clock import Clock
from memorize.errors import Busy, CannotRead, CannotWrite
from memorize.limits import INGEST_BATCH_FILES_MAX, SEGMENT_AGE_S_MAX, SEGMENT_BYTES_MAX
from memorize.log import receive
from memorize.log.aside import set_aside
from memorize.log.chain import Chain, Link, Origin, greeting
from memorize.log.files import Files
from memorize.log.identity import (
    KNOWN_ELSEWHERE,
    Identity,
    load_or_renew,
    machine_id,
    note_progress,
    renew_replica,
    renew_writer,
)
from memorize.log.prepare import Normalise as Normalise
from memorize.log.prepare import Prepare, Read, here, prepared
from memorize.log.projection import Projection as Projection
from memorize.log.recovery import Recovered, Recovery
from memorize.log.redact import redact_value
from memorize.log.report import IngestReport as IngestReport
from memorize.log.segments import HEADER_BYTES, SEGMENTS, SegmentWriter, fresh_header
from memorize.log.spool import Unreadable, pending, sweep
from memorize.model import DEVICE_HELLO, Draft, Envelope, Event, Received, Stored
from memorize.paths import Home

BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
LOCK_WAIT_S: Final = 5.0
LISTED_MAX: Final = 16_384  # names kept from one limited run to the next, 2.5 MB


class _Item(NamedTuple):
    name: str
    origin: Origin
    drafts: Sequence[Draft]


class _Written(NamedTuple):
    stored: list[Stored]
    done: list[str]
    bad: list[str]


class _Tally:
    def __init__(self) -> None:
        self.files = self.events = self.known = self.bad = self.unread = 0


class Ingester:
    """Ingests the spool of one state directory. May live long; every run takes the lock and looks at the disk again."""

    def __init__(
        self,
        home: Home,
        files: Files,
        clock: Clock,
        identity: Identity,
        normalise: Normalise,
        projection: Projection,
        machine: Callable[[], str] = machine_id,
        prepare: Prepare = here,
    ) -> None:
        """Nothing is read or written before ``run``."""
        self._home = home
        self._root = str(home.root)
        self._new = f"{home.spool}/new"
        self._now = (0, 0)
        self._files = files
        self._clock = clock
        self._read = partial(prepared, files, self._new, normalise)
        self._prepare = prepare
        self._projection = projection
        self._machine = machine
        self._identity = identity
        self._active: SegmentWriter | None = None
        self._chain = Chain(identity, Link(0, b"", 0), redact_value)
        self._ready = False
        self._greeted = b""
        self._listed: list[str] = []  # what the last limited run left to do
        self._door = receive.Door(home, files, clock, projection)

    @property
    def identity(self) -> Identity:
        """The identity as of the last run."""
        return self._identity

    def run(self, limit: int | None = None, wait_s: float = LOCK_WAIT_S) -> IngestReport:
        """Ingest what lies in the spool, at most ``limit`` files, oldest first.

        Raises Busy when another process ingests for longer than ``wait_s``, CannotRead or CannotWrite when the disk
        fails, IndexAhead when the index must be rebuilt, and whatever the projection raises. Nothing is lost by any.
        """
        with self._alone(wait_s):
            return self._run(limit)

    def receive(self, envelopes: Iterable[Envelope], wait_s: float = LOCK_WAIT_S) -> Received:
        """Take in events that others wrote, or that this one wrote and lost; return when they are durable and indexed.

        The lock is held meanwhile, so the caller hands over what it has in hands (``receive.in_batches``). Events of
        this replica that nobody here knew give it a new name first. Raises as ``run`` does; what of the events was not
        taken in then is simply given again.
        """
        with self._alone(wait_s):
            self._recover()
            return self._door.receive(envelopes, self._identity, self._renew_replica)

    def greet(self, wait_s: float = LOCK_WAIT_S) -> None:
        """Write the greeting of a replica that has written nothing yet: other devices hear of it. Raises as ``run``."""
        with self._alone(wait_s):
            self._recover()
            self._append([], _Tally(), greet=True)

    @contextlib.contextmanager
    def _alone(self, wait_s: float) -> Iterator[None]:
        with self._files.lock(f"{self._root}/locks/ingest", wait_s):
            try:
                yield
            except BaseException:
                self.close()
                raise

    def _renew_replica(self) -> Identity:
        """Go on under another name, before anything of the old one's is written that could be met again."""
        self.close()
        try:
            self._identity = renew_replica(self._home, self._files, self._clock, self._identity, KNOWN_ELSEWHERE)
        except OSError as error:
            raise CannotWrite(path=str(self._home.identity), detail=error.strerror or str(error)) from error
        return self._identity

    def close(self) -> None:
        """Close the active segment. The next run opens it again."""
        active, self._active, self._ready, self._listed = self._active, None, False, []
        if active is not None:
            with contextlib.suppress(OSError):
                active.close()

    def _run(self, limit: int | None) -> IngestReport:
        recovered = self._recover()
        tally = _Tally()
        names = self._names(limit)
        todo = names if limit is None else names[:limit]
        self._listed = names[len(todo) : len(todo) + LISTED_MAX] if limit is not None else []
        at = 0
        with self._prepare(todo, self._read) as read:
            while at < len(todo):
                at += self._batch(todo, at, tally, read)
        sweep(self._home, self._files, self._clock)
        return IngestReport(
            tally.files,
            tally.events,
            tally.known,
            tally.bad,
            tally.unread,
            len(names) - tally.files - tally.bad,
            recovered.events,
            tuple(recovered.damages),
            tuple(recovered.unreadable),
        )

    def _recover(self) -> Recovered:
        identity = load_or_renew(self._home, self._files, self._clock, self._machine)
        kept = self._active if self._ready and identity == self._identity else None
        recovery = Recovery(self._home, self._files, self._clock, self._projection)
        found = recovery.run(identity, kept)
        if kept is None or found.active is not kept:
            self.close()
        self._identity, self._active, self._ready = found.identity, found.active, True
        link = self._chain.link if kept is not None and found.active is kept else found.link
        self._chain = Chain(found.identity, link._replace(lamport=self._projection.top()), redact_value)
        return found

    def _names(self, limit: int | None) -> list[str]:
        """Return the names in the spool, oldest first; enough for this run when the last one saw that many more.

        A large backlog would otherwise be listed and sorted again for every few files.
        """
        if limit is not None and len(self._listed) > limit:
            return self._listed
        try:
            return self._oldest_first(pending(self._home, self._files))
        except OSError as error:
            raise CannotRead(path=str(self._home.spool), detail=error.strerror or str(error)) from error

    def _oldest_first(self, names: list[str]) -> list[str]:
        """Names begin with monotonic time; one that lies in the future comes from before the last boot."""
        now = f"{self._clock.monotonic_ns():016x}~"
        later = [name for name in names if name > now]
        return later + names[: len(names) - len(later)]

    # -- one batch ------------------------------------------------------------------------------------------------

    def _batch(self, names: Sequence[str], start: int, tally: _Tally, read: Read) -> int:
        """Ingest the files from ``start`` on that make one batch; return how many names were used."""
        items: list[_Item] = []
        size = used = 0
        self._now = (self._clock.monotonic_ns(), self._clock.wall_ms())
        for name in names[start : start + INGEST_BATCH_FILES_MAX]:
            used += 1
            size += self._collect(name, items, tally, read)
            if size >= BATCH_BYTES_MAX:
                break
        unlink = self._files.unlink
        done = self._append(items, tally)
        tally.files += len(done)
        for name in done:
            try:  # noqa: SIM105 - entering a context costs as much as a third of the call
                unlink(f"{self._new}/{name}")
            except OSError:
                pass  # it will be known the next time
        return used

    def _collect(self, name: str, items: list[_Item], tally: _Tally, read: Read) -> int:
        """Prepare one spool file; return its size. What can never be read is set aside."""
        try:
            found = read(name)
        except Unreadable:
            self._set_aside(name, tally)
            return 0
        except OSError:
            tally.unread += 1
            return 0
        if found is None:
            return 0
        nonce, mono, size, drafts = found
        items.append(_Item(name, self._origin(nonce, mono, name), drafts))
        return size

    def _set_aside(self, name: str, tally: _Tally) -> None:
        try:
            set_aside(self._home, self._files, name, self._clock.wall_ms())
        except OSError:
            tally.unread += 1
        else:
            tally.bad += 1

    def _origin(self, nonce: bytes, mono: int, name: str) -> Origin:
        now, wall = self._now
        if mono <= now:
            return Origin(nonce, self._identity.boot, mono, max(0, wall - (now - mono) // 1_000_000))
        with contextlib.suppress(OSError):
            wall = min(wall, self._files.modified_ms(f"{self._new}/{name}"))
        return Origin(nonce, b"", min(mono, 2**63 - 1), max(0, wall))

    def _append(self, items: Sequence[_Item], tally: _Tally, *, greet: bool = False) -> list[str]:
        """Write the events of the items and index them; return the names of the files that are done."""
        ids: dict[bytes, dict[int, bytes]] = {}
        replica = self._identity.replica
        nonces = [item.origin.nonce for item in items] + ([] if self._greeted == replica else [replica])
        for (nonce, ordinal), identity in self._projection.known(nonces).items():
            ids.setdefault(nonce, {})[ordinal] = identity
        if replica in ids:
            self._greeted = replica
        new = any(draft.ordinal not in ids.get(item.origin.nonce, ()) for item in items for draft in item.drafts)
        if new or (greet and self._greeted != replica):
            written = self._write(items, ids)
        else:
            written = _Written([], [item.name for item in items], [])
        if written.stored and self._active is not None:
            file = f"{SEGMENTS}/{self._active.name}"
            self._projection.apply(written.stored, {file: self._active.size}, self._clock.wall_ms())
            self._greeted = self._identity.replica
        for name in written.bad:
            self._set_aside(name, tally)
        greetings = sum(stored.event.kind == DEVICE_HELLO for stored in written.stored)
        tally.events += len(written.stored)
        tally.known += sum(len(item.drafts) for item in items if item.name not in written.bad)
        tally.known -= len(written.stored) - greetings
        return written.done

    def _write(self, items: Sequence[_Item], ids: Mapping[bytes, Mapping[int, bytes]]) -> _Written:
        """Append and sync. An error costs the writer and one more attempt. Raises CannotWrite."""
        try:
            return self._write_once(items, ids)
        except OSError as error:
            self._abandon(error)
        try:
            return self._write_once(items, ids)
        except OSError as error:
            # The error has come to stay: a full or a broken disk.
            self._abandon(error)
            raise CannotWrite(path=str(self._home.segments), detail=error.strerror or str(error)) from error

    def _write_once(self, items: Sequence[_Item], ids: Mapping[bytes, Mapping[int, bytes]]) -> _Written:
        active = self._writable()
        before = self._chain.link
        hello = [] if self._greeted == self._identity.replica else [self._hello()]
        made: dict[bytes, dict[int, bytes]] = {nonce: dict(known) for nonce, known in ids.items()}
        pairs: list[tuple[Event, bytes]] = []
        done, bad = [], []
        for item in [*hello, *items]:
            known = made.setdefault(item.origin.nonce, {})
            try:
                pairs += self._chain.events(item.drafts, item.origin, known, active.marker)
            except Unreadable:
                if item.name:  # the greeting has no file
                    bad.append(item.name)
                continue
            done.append(item.name)
        done = done[len(hello) :]
        if len(pairs) == len(hello) and items:
            self._chain.link = before
            return _Written([], done, bad)
        offset = active.append(b"".join(frame for _, frame in pairs))
        active.sync()
        file = f"{SEGMENTS}/{active.name}"
        stored = []
        for event, frame in pairs:
            stored.append(Stored(event, file, offset, len(frame)))
            offset += len(frame)
        return _Written(stored, done, bad)

    def _writable(self) -> SegmentWriter:
        """Return a segment with room; a full or old one is sealed first. Raises OSError."""
        active, now = self._active, self._clock.wall_ms()
        if active is not None:
            old = now - active.header.created > SEGMENT_AGE_S_MAX * 1000 and active.size > HEADER_BYTES
            if active.size < SEGMENT_BYTES_MAX - BATCH_BYTES_MAX and not old:
                return active
            active.seal()
            self._active = None
        identity, link = self._identity, self._chain.link
        header = fresh_header(identity.store, identity.replica, identity.writer, link.seq + 1, now)
        active = self._active = SegmentWriter.create(self._files, str(self._home.segments), header)
        self._identity = identity._replace(seq=link.seq, last=link.prev, active=active.name)
        with contextlib.suppress(OSError, Busy):  # only a lower bound, by which a restored copy is recognised
            note_progress(self._home, self._files, self._identity)
        return active

    def _abandon(self, error: OSError) -> None:
        """Leave the segment in which writing failed: cut it to what is durable, seal it if possible, go on elsewhere.

        After a failed sync nobody knows which bytes arrived, so nothing of this batch may be found there later.
        """
        active, self._active = self._active, None
        if active is not None:
            with contextlib.suppress(OSError):
                active.rollback()
                active.seal()
            with contextlib.suppress(OSError):
                active.close()
        try:
            why = f"writing failed: {error.strerror or error}"
            self._identity = renew_writer(self._home, self._files, self._clock, self._identity, why)
        except OSError as again:
            raise CannotWrite(path=str(self._home.identity), detail=again.strerror or str(again)) from again
        self._chain = Chain(self._identity, Link(0, b"", self._chain.link.lamport), redact_value)

    def _hello(self) -> _Item:
        """Return the first event of a replica; its nonce is the replica's id, so it is written once."""
        replica, boot = self._identity.replica, self._identity.boot
        origin = Origin(replica, boot, self._clock.monotonic_ns(), max(0, self._clock.wall_ms()))
        return _Item("", origin, [greeting(self._identity)])
