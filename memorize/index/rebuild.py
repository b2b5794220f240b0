"""Build the index anew from the log, beside the old one, and swap it in.

Captures go on meanwhile: they only need the spool. Most of the work is done without any lock, on files that only grow;
the rest under the lock of the ingester, so that nothing is appended between the last look and the swap. Readers that
have the old file open keep it until they look again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from memorize.clock import Clock
from memorize.errors import CannotRead, CannotWrite, IndexDamaged, Problem
from memorize.ids import RANDOM_BYTES
from memorize.index import cited, closure, schema, sums
from memorize.index.packing import number8
from memorize.index.projector import add, put_files
from memorize.index.settle import settle_closed
from memorize.log import losses
from memorize.log.chain_check import Gap
from memorize.log.codec import Bad
from memorize.log.files import Files, RealFiles
from memorize.log.frames import ERASED, EVENT
from memorize.log.segments import RECEIVED, SEGMENTS, SUFFIX, frame_event, read_segment
from memorize.model import Event, Stored
from memorize.paths import Home

# One transaction; larger ones gain nothing but memory.
_BATCH: Final = 20_000
# Events of connected parts that are folded at once.
_FOLDED: Final = 20_000
_CACHE_KIB: Final = 256 * 1024
# The ticks of a kernel are up to 10 ms long, times in FAT are even.
_FILE_TIMES_BEHIND_MS: Final = 2_000

Progress = Callable[[int, int], None]


def rebuild(
    home: Home,
    clock: Clock,
    progress: Progress | None = None,
    *,
    files: Files | None = None,
    wait_s: float = 60.0,
) -> int:
    """Replace the index by one made from the segments alone, and return how many events it holds.

    ``progress`` is told how many bytes of the log of how many are done. Two rebuilds at once are one too many: the
    caller holds a lock against that. Raises Busy when an ingester stays at work for ``wait_s`` at the end, CannotRead
    for an own segment that gives an input error (the old index then stays), CannotWrite, IndexDamaged.
    """
    disk = files or RealFiles()
    target = home.index.with_name("index.new")
    _remove(target)
    with schema.guard(target), closing(schema.create(target)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute(f"pragma cache_size = -{_CACHE_KIB}")
        builder = _Builder(home, clock, disk, connection, progress or (lambda _done, _total: None))
        builder.read()
        builder.fold()
        with disk.lock(str(home.locks / "ingest"), wait_s):
            # What came in the meantime is little, and goes the way of every batch.
            builder.read(settle_now=True)
            events = builder.check(target)
            builder.note_losses(home.index)
            connection.execute("pragma wal_checkpoint(truncate)")
            connection.close()
            _swap(target, home.index)
    return events


class _Builder:
    def __init__(
        self, home: Home, clock: Clock, files: Files, connection: sqlite3.Connection, progress: Progress
    ) -> None:
        self._home = home
        self._clock = clock
        self._files = files
        self._connection = connection
        self._progress = progress
        self._done = 0

    def read(self, *, settle_now: bool = False) -> None:
        """Index what the segments hold beyond the indexed offsets."""
        offsets = dict(self._connection.execute("select name, offset from files"))
        sizes = {name: size for name, size in self._sizes().items() if size > offsets.get(name, 0)}
        total = self._done + sum(size - offsets.get(name, 0) for name, size in sizes.items())
        batch: list[Stored] = []
        ends: dict[str, int] = {}
        # In order of their last writing, so that the parts of one session come in their own order.
        order = sorted((self._modified(name), name) for name in sizes)
        for modified, name in order:
            before = self._done
            for stored, end in self._events(name, offsets.get(name, 0)):
                if stored is not None:
                    batch.append(stored)
                ends[name] = max(end, ends.get(name, 0))
                self._done = before + end - offsets.get(name, 0)
                if len(batch) >= _BATCH:
                    self._put(batch, ends, modified, settle_now)
                    self._progress(self._done, total)
                    batch, ends = [], {}
            self._put(batch, ends, modified, settle_now)
            self._progress(self._done, total)
            batch, ends = [], {}

    def _put(self, batch: list[Stored], ends: Mapping[str, int], received: int, settle_now: bool) -> None:
        with schema.transaction(self._connection):
            numbers = put_files(self._connection, ends, batch)
            if batch:
                add(self._connection, batch, numbers, received, settle_now=settle_now)

    def _events(self, name: str, start: int) -> Iterator[tuple[Stored | None, int]]:
        """Return the events of a file with the offset behind each; at last the end of what could be read."""
        try:
            found = read_segment(self._files, str(self._home.root / name), start)
        except OSError as error:
            # An input error is no end of a file. Without a received file the index is poorer, and says so: its
            # offset stays behind, and the ingester reads it when it can.
            if name.startswith(SEGMENTS):
                raise CannotRead(path=self._home.root / name, detail=error.strerror or error) from error
            return
        for frame in found.frames:
            end = frame.offset + frame.length
            if frame.type == EVENT:
                with suppress(Bad):  # ``verify`` counts and names them
                    yield Stored(frame_event(frame), name, frame.offset, frame.length, bool(frame.flags & ERASED)), end
        yield None, found.end

    def fold(self) -> None:
        """Fold everything, in bundles of connected events, so that no more than a bundle is in memory at once."""
        drawn = self._drawn_in()
        done: set[int] = set()
        bundle: dict[int, Event] = {}
        for number in sorted({*drawn, *closure.all_numbers(self._connection)}):
            if number in done or number in bundle:
                continue
            bundle[number] = closure.load(self._connection, [number])[number]
            if len(bundle) >= _FOLDED // 4:
                done |= self._fold_bundle(bundle)
                bundle = {}
        self._fold_bundle(bundle)
        with schema.transaction(self._connection):
            cited.mark(self._connection)

    def _fold_bundle(self, bundle: Mapping[int, Event]) -> set[int]:
        events = closure.connected(self._connection, bundle)
        with schema.transaction(self._connection):
            settle_closed(self._connection, events, {})
        return set(events)

    def _drawn_in(self) -> set[int]:
        """Return the events that the fold reads only because they are aliases, or because an erasure names them."""
        found: set[int] = set()
        twins = """select e.n from events e join events o on o.nonce8 = e.nonce8 and o.nonce = e.nonce
            and o.ordinal = e.ordinal and o.kind = e.kind and o.person = e.person and o.n <> e.n
            where e.nonce8 is not null"""
        found.update(n for (n,) in self._connection.execute(twins))
        for (identity,) in self._connection.execute("select id from named_by_erasures").fetchall():
            sql = "select n from events where id8 = ? and id = ?"
            found.update(n for (n,) in self._connection.execute(sql, (number8(identity), identity)))
        return found

    def check(self, path: Path) -> int:
        """Hold the new index against itself before it is trusted; return the number of its events."""
        connection = self._connection
        flaw = sums.flaw(connection)
        if flaw:
            raise IndexDamaged(path=path, detail=flaw)
        verdict = connection.execute("pragma quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise IndexDamaged(path=path, detail=verdict)
        events: int = connection.execute("select count(*) from events").fetchone()[0]
        return events

    def note_losses(self, before: Path) -> None:
        """Write down what the old index knew of each writer's end and the log does not hold any more.

        Otherwise nobody could tell afterwards that the end of the log, or its last file, is gone. An index that is
        damaged itself tells nothing: both of its tables must agree.
        """
        held = dict(self._connection.execute("select writer, last_seq from writers"))
        gone: list[Gap] = []
        with suppress(sqlite3.Error, Problem, ValueError, TypeError), closing(schema.open_read(before, 0.0)) as old:
            for writer, last in old.execute("select writer, last_seq from writers").fetchall():
                if type(last) is not int or len(writer) != RANDOM_BYTES or last <= held.get(writer, 0):
                    continue
                if old.execute("select 1 from events where writer = ? and seq = ?", (writer, last)).fetchone():
                    gone.append(Gap(writer, held.get(writer, 0) + 1, last))
        if gone:
            with suppress(OSError):
                losses.see(self._home, self._files, gone)

    def _sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for folder in (SEGMENTS, RECEIVED):
            try:
                sizes = self._files.sizes(str(self._home.root / folder))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise CannotRead(path=self._home.root / folder, detail=error.strerror or error) from error
            found |= {f"{folder}/{name}": size for name, size in sizes.items() if name.endswith(SUFFIX)}
        return found

    def _modified(self, name: str) -> int:
        """Return when a file was last written, which is about when its events were received; never in the future.

        File systems note that by a coarse clock, which is behind the one that events are dated by.
        """
        now = self._clock.wall_ms()
        try:
            return min(now, self._files.modified_ms(str(self._home.root / name)) + _FILE_TIMES_BEHIND_MS)
        except OSError:
            return now


def _swap(new: Path, old: Path) -> None:
    """Put the new index in the old one's place. The caller keeps every writer away.

    The old one's log must go first: SQLite would play it into the new file.
    """
    try:
        handle = os.open(new, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        for suffix in ("-wal", "-shm", "-journal"):
            old.with_name(old.name + suffix).unlink(missing_ok=True)
        new.replace(old)
        with suppress(OSError):  # not every system can; the index can be made again
            folder = os.open(old.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise CannotWrite(path=old, detail=error.strerror or error) from error


def _remove(path: Path) -> None:
    try:
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(path=path, detail=error.strerror or error) from error
