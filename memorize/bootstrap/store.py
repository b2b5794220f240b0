"""The way into the log and out of the index: one state directory and the parts that work on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

from memorize.bootstrap.resting import is_at_rest, spool_is_empty
from memorize.clock import Clock
from memorize.config import Config
from memorize.errors import (
    Busy,
    CannotRead,
    CannotWrite,
    Deferred,
    IndexBusy,
    IndexDamaged,
    NotWritten,
    Problem,
    SyncedHome,
)
from memorize.index.damage import BUSY_S, is_damage
from memorize.index.place import Place, Places
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.limits import BACKLOG_FILES_MIN
from memorize.log.files import RealFiles
from memorize.log.identity import Identity, load_or_renew, peek
from memorize.log.lock import Lock
from memorize.log.prepare import Read, here
from memorize.log.spool import put_batch
from memorize.model import Draft, Envelope, Received
from memorize.paths import Home

# What writes is loaded when there is something to write: most verbs find the log and the index at rest.
if TYPE_CHECKING:
    from memorize.bootstrap.intake import Intake
    from memorize.index.projector import Projector
    from memorize.log.ingest import Ingester, IngestReport
    from memorize.sync.holding import StoreHolding

_TRIES: Final = 3
# So long a reader waits for whoever ingests; it is at work on what the reader wants to see.
_DRAIN_S: Final = 1.0
# What just failed is not tried again for every question of one verb.
_PAUSE_NS: Final = 5_000_000_000
_HINDRANCES: Final = (Busy, CannotWrite, CannotRead, IndexDamaged)

_Answer = TypeVar("_Answer")


class Store:
    """Puts drafts into the log and gives views of the index. Cheap to make; parts are opened when they are needed."""

    def __init__(self, home: Home, config: Config, clock: Clock, patience_s: float | None = None) -> None:
        """Put the parts together; nothing is read or written yet.

        ``patience_s``: how long a person waits for a locked index. None is for a program that lives long.
        """
        self.home = home
        self.config = config
        self.clock = clock
        self.files = RealFiles()
        self.git_settings: tuple[str, ...] = ()  # the person's own, where aliases may stand
        self.between: Callable[[], None] = lambda: None  # called before each capture: the daemon gives way there
        self.note: Callable[[Exception], None] = lambda _: None  # told what went wrong beside an answer
        self.after_ingest: Callable[[], None] = lambda: None  # called whenever events may have been taken in
        self.after_sync: Callable[[], None] = lambda: None  # called behind a round
        self.packs_clean: Callable[[], bool] = lambda: True  # whether no own pack holds a body that is erased
        self._busy_s = BUSY_S if patience_s is None else patience_s
        self._as_it_lies = patience_s is not None
        self._readers: list[Reader] = []
        self._pause_until = 0
        self._hindrance: Problem | None = None

    # -- what writes ----------------------------------------------------------------------------------------------

    @cached_property
    def intake(self) -> Intake:
        """What makes drafts of captures."""
        from memorize.bootstrap.intake import Intake

        return Intake(self.place, self.device, lambda: self.reader(drain=False), lambda: self.between())

    @cached_property
    def projector(self) -> Projector:
        """The write side of the index."""
        from memorize.index.projector import Projector

        return Projector(self.home.index, self._busy_s)

    @cached_property
    def _ingester(self) -> Ingester:
        from memorize.log.ingest import Ingester

        return Ingester(
            self.home,
            self.files,
            self.clock,
            self.identity,
            self.intake.normalise,
            self.projector,
            prepare=self._prepare,
        )

    def _prepare(self, names: Sequence[str], read: Read) -> AbstractContextManager[Read]:
        """Prepare spool files for the ingester: a large backlog with the help of a second process."""
        if len(names) < BACKLOG_FILES_MIN:
            return here(names, read)
        from memorize.bootstrap.ahead import ahead

        return ahead(self.home, self.device(), self.git_settings, self.intake, names, read)

    # -- identity and place ---------------------------------------------------------------------------------------

    @cached_property
    def identity(self) -> Identity:
        """Store, device and replica of this state directory; made at the first use. Raises SyncedHome."""
        if not self.home.identity.exists():
            from memorize.log.syncfolders import syncing_tool  # asked once in the life of a state directory

            if (tool := syncing_tool(self.home.root)) is not None:
                raise SyncedHome(path=self.home.root, tool=tool)
        return load_or_renew(self.home, self.files, self.clock)

    def renamed(self, identity: Identity) -> None:
        """Take over an identity that was changed on disk by this process."""
        self.__dict__["identity"] = identity  # what ``cached_property`` looks at

    @cached_property
    def _device(self) -> str:
        try:
            return self.identity.device.hex()
        except CannotWrite:
            # It is to be renewed, and the disk is full. The next one that can will do so; a renewal keeps the device.
            with contextlib.suppress(OSError):
                if (found := peek(self.home, self.files)) is not None:
                    return found.device.hex()
            raise

    def device(self) -> str:
        """Return the id of this device in hex. Raises as ``identity`` does."""
        return self._device

    def release(self) -> None:
        """Close the segment that is open for writing, which is about to be written anew; it opens again by itself."""
        self._ingester.close()

    def place(self, directory: str) -> Place:
        """Return the project of a directory. Relative paths are taken from the process's own directory."""
        return self._places(directory)

    @cached_property
    def _places(self) -> Places:
        return Places(self.device(), self.home.exclude, self.clock, self.git_settings)

    def known_as(self, place: Place, view: Reader) -> str:
        """Return the key under which the memories of this place are found: the old one until both are linked."""
        return view.former_key(self.device(), place) or place.project

    def here(self, directory: str) -> Place:
        """Return the project of a directory, and link it when it was known there by another key. To be asked last.

        What hinders that hinders no answer: the next one that can will do it.
        """
        place = self.place(directory)
        with contextlib.suppress(*_HINDRANCES, Deferred, NotWritten):
            if not place.capture_off and self.reader(drain=False).former_key(self.device(), place):
                self.append(self.intake.projects(place))
        return place

    # -- the way in -----------------------------------------------------------------------------------------------

    def ingest(self, limit: int | None = None, wait_s: float = 5.0) -> IngestReport:
        """Ingest the spool; builds the index first when it is missing, damaged or ahead of the log.

        Raises Busy, CannotRead, CannotWrite.
        """
        report = self._mending(lambda: self._run(limit, wait_s), wait_s)
        self.after_ingest()
        return report

    def _mending(self, work: Callable[[], _Answer], wait_s: float) -> _Answer:
        """Do a work of the ingester; an index that is missing, damaged or ahead of the log is built before."""
        try:
            for _ in range(_TRIES):
                try:
                    return work()
                except Exception as error:
                    from memorize.log.recovery import IndexAhead

                    if not isinstance(error, IndexAhead) and not is_damage(error):
                        raise
                    self.rebuild(wait_s)
            return work()
        finally:
            if "_ingester" in self.__dict__:
                self.__dict__["identity"] = self._ingester.identity  # it may have been renewed

    def _run(self, limit: int | None, wait_s: float) -> IngestReport:
        self.intake.begin()
        return self._ingester.run(limit, wait_s)

    def greet(self, wait_s: float = 5.0) -> None:
        """Have this device be known by other ones although it has nothing to tell yet. Raises as ``ingest``."""
        self._mending(partial(self._ingester.greet, wait_s), wait_s)

    def receive(self, envelopes: Iterable[Envelope], wait_s: float = 30.0) -> Received:
        """Take in events of other replicas, in batches; return when all of them are durable and indexed.

        Nobody is kept from writing while the next batch is waited for. Raises Busy, CannotRead, CannotWrite; what was
        taken in by then stays, and all of it may be given again.
        """
        from memorize.log.receive import in_batches

        total = Received()
        for batch in in_batches(envelopes):
            total = total.plus(self._mending(partial(self._ingester.receive, batch, wait_s), wait_s))
        self.after_ingest()
        return total

    @cached_property
    def holding(self) -> StoreHolding:
        """The events of this state directory as exchange sees them, as far as they are indexed."""
        from memorize.sync.holding import StoreHolding  # only exchange asks for it

        return StoreHolding(self.home, self.files, lambda: self.reader(drain=False).connection, self.receive)

    def put(self, drafts: Sequence[Draft], *, strict: bool = False) -> bytes:
        """Put drafts into the spool as one batch and return its nonce. From then on they are kept.

        Raises NotKept, BadHome.
        """
        return put_batch(self.home, drafts, self.clock, strict)

    def settle(self, nonces: Sequence[bytes]) -> Mapping[tuple[bytes, int], bytes]:
        """Take in what was put; return (nonce, ordinal) -> id of these batches' events. Raises Deferred."""
        if self._hindrance is not None and self.clock.monotonic_ns() < self._pause_until:
            raise Deferred(self._hindrance)
        try:
            self.ingest()
            return self.projector.known(nonces)
        except _HINDRANCES as problem:
            self._pause(problem)
            raise Deferred(problem) from problem

    def append(self, drafts: Sequence[Draft], *, strict: bool = False, place: Place | None = None) -> list[bytes]:
        """Write drafts as one batch and return their ids in order of ordinal; makes ``place`` known, too.

        Raises NotKept, Deferred, NotWritten.
        """
        nonce = self.put(drafts, strict=strict)
        known = self.settle([nonce])
        if place is not None and (told := self.intake.projects(place)):
            with contextlib.suppress(*_HINDRANCES):
                self.put(told)
                self.ingest()
        wanted = [(nonce, draft.ordinal) for draft in sorted(drafts, key=lambda draft: draft.ordinal)]
        if any(name not in known for name in wanted):
            raise NotWritten(path=self.home.spool)
        return [known[name] for name in wanted]

    def rebuild(self, wait_s: float = 5.0, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew from the log and swap it in; return the number of events."""
        with Lock(self.home.locks / "rebuild", wait_s):
            from memorize.index.rebuild import rebuild

            self.close()
            return rebuild(self.home, self.clock, progress)

    def indexed(self) -> Mapping[str, int]:
        """Return file name -> offset up to which the index covers it; empty when the index cannot tell."""
        with contextlib.suppress(*_HINDRANCES):
            return self.reader(drain=False).offsets()
        return {}

    def close(self) -> None:
        """Close what is open. Everything opens again when it is needed."""
        if "projector" in self.__dict__:
            self.projector.close()
        while self._readers:
            self._readers.pop().close()

    # -- the way out ----------------------------------------------------------------------------------------------

    def reader(self, *, drain: bool = True) -> Reader:
        """Return the read side of the index, up to date: what lies in the spool is ingested first.

        When that cannot be done now, the index is read as it is. Raises IndexDamaged, Busy, CannotWrite.
        """
        if drain and not self._at_rest():
            self._drain()
        if not self._readers:
            self._readers.append(Reader.open(self.home, self._busy_s, as_it_lies=self._as_it_lies))
        return self._readers[0]

    def _at_rest(self) -> bool:
        """Tell whether an ingester would find nothing to do; what hinders the look is left to it."""
        kept = len(self._readers)
        try:
            if spool_is_empty(self.home, self.files):
                view = self.reader(drain=False)
                if is_at_rest(self.home, self.files, view, self.identity.replica):
                    return True
        except (Problem, OSError):
            pass
        while len(self._readers) > kept:  # it may have been opened so that it does not see what is written now
            self._readers.pop().close()
        return False

    def _drain(self) -> None:
        if self.clock.monotonic_ns() < self._pause_until:
            return
        try:
            self.ingest(wait_s=_DRAIN_S)
        except _HINDRANCES as problem:
            self._pause(problem)
            # Another process that ingests is at work on just that, and nothing to speak of.
            if isinstance(problem, IndexBusy) or not isinstance(problem, Busy):
                self.note(problem)  # the index is read as it is

    def _pause(self, hindrance: Problem) -> None:
        """Look for nothing new for a while. Only behind another ingester, who may be done at once, writing goes on."""
        self._hindrance = None if isinstance(hindrance, Busy) and not isinstance(hindrance, IndexBusy) else hindrance
        self._pause_until = self.clock.monotonic_ns() + _PAUSE_NS

    def query(self) -> Query:
        """Return the questions that recall asks, up to date."""
        reader = self.reader()
        return Query(reader.connection, reader.observation_text)
