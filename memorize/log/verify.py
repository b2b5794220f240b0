"""Verification of the log: what can be read, what is damaged, what is missing, and what nobody looked at.

It trusts nothing but the files. Repair changes as little as possible, under the ingester's lock, and never makes the
set of verifiable events smaller: a sealed file is never touched, only the remains of a frame cut short are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from memorize.log import losses
from memorize.log.chain_check import Chains, Gap
from memorize.log.codec import Bad
from memorize.log.files import Files, RealFiles
from memorize.log.frames import EVENT, SIGNED, Frame
from memorize.log.hurt import Hurt, against_footer, between, named
from memorize.log.identity import peek
from memorize.log.repair import mend_active, put_back
from memorize.log.segments import (
    HEADER_BYTES,
    RECEIVED,
    SEGMENTS,
    SUFFIX,
    SegmentScan,
    frame_event,
    scan_segment,
)
from memorize.model import Capture, Draft, Event
from memorize.paths import Home

CLEAN: Final = 0
REPAIRED: Final = 1
DATA_MISSING: Final = 2
CANNOT_READ: Final = 3
LOCK_WAIT_S: Final = 10.0

_FILES: Final = RealFiles()


class Unread(NamedTuple):
    """A file or folder that the system would not let us read."""

    path: str
    why: str


class VerifyReport(NamedTuple):
    """What was found. ``exit`` gives the exit code: 0 clean, 1 repaired, 2 data missing, 3 cannot read.

    ``frames`` counts whole frames, ``events`` those that hold an event (with ``deep`` only verifying ones),
    ``unknown`` frames of a later format. ``torn``: bytes at the end of an unsealed own file that a crash left.
    ``ahead``: places where the index knows more than there is. ``forks``: places where a writer's chain has two
    branches (a copied state directory; kept, never refused). ``bad``: spool files that could not be read when they
    came. ``repaired``: what was done. ``unchecked``: what this run says nothing about. ``noted``: name of a damage or
    a gap that an earlier repair told and noted -> when (wall ms); these make no exit code any more.
    """

    deep: bool
    files: int
    bytes: int
    frames: int
    events: int
    sealed: int
    unknown: int
    torn: int
    pending: int
    bad: int
    damages: tuple[Hurt, ...]
    missing: tuple[Gap, ...]
    ahead: tuple[Hurt, ...]
    forks: tuple[Hurt, ...]
    unread: tuple[Unread, ...]
    repaired: tuple[str, ...]
    unchecked: tuple[str, ...]
    noted: Mapping[str, int] = {}

    @property
    def fresh(self) -> tuple[Hurt | Gap, ...]:
        """The damages and gaps that nobody has taken note of."""
        every: list[Hurt | Gap] = [*self.damages, *self.missing]
        return tuple(one for one in every if one.name not in self.noted)

    @property
    def exit(self) -> int:
        """The worst that was found, as an exit code."""
        if self.unread:
            return CANNOT_READ
        if self.fresh or self.ahead:
            return DATA_MISSING
        return REPAIRED if self.repaired else CLEAN


def verify(
    home: Home,
    deep: bool = False,
    repair: bool = False,
    files: Files = _FILES,
    offsets: Mapping[str, int] | None = None,
    normalise: Callable[[Capture], Sequence[Draft]] | None = None,
    now_ms: int = 0,
) -> VerifyReport:
    """Read every segment and tell what holds. Never raises OSError: what cannot be read is in the report.

    ``deep`` computes ids, commitments and chains of all events too. ``offsets`` are those of the index (file ->
    indexed end); without them the index is not looked at. ``repair`` waits for the ingester's lock (Busy), cuts the
    torn tail of the own active segment, seals it when it is damaged, puts files of ``spool/bad`` that can be read now
    (``normalise`` has the last word, when given) back into the spool, and notes what is lost, as told at ``now_ms``.
    """
    run = _Run(home, files, deep)
    if not repair:
        run.look(offsets)
        return run.report()
    with files.lock(f"{home.root}/locks/ingest", LOCK_WAIT_S):
        done = [*mend_active(home, files), *put_back(home, files, normalise)]
        run.look(offsets)
        report = run.report(done)
        with suppress(OSError):  # then it is told again
            losses.note(home, files, [*(one.name for one in report.fresh), *_bad(home, files)], now_ms)
    return report


class _Run:
    """One look at the disk."""

    def __init__(self, home: Home, files: Files, deep: bool) -> None:
        self._home = home
        self._files = files
        self._deep = deep
        self._chains = Chains()
        self._sizes: dict[str, int] = {}
        self._count = dict.fromkeys(("files", "bytes", "frames", "events", "sealed", "unknown", "torn", "signed"), 0)
        self._spool = {"new": 0, "bad": 0}
        self._damages: list[Hurt] = []
        self._ahead: list[Hurt] = []
        self._forks: list[Hurt] = []
        self._unread: list[Unread] = []
        self._unchecked: list[str] = []
        self._losses = losses.load(home, files)
        # Those of whom something was lost: it may have come again from another device.
        self._watched = {gap.writer for gap in self._losses.seen}

    def look(self, offsets: Mapping[str, int] | None) -> None:
        """Read everything."""
        for folder in (SEGMENTS, RECEIVED):
            directory = f"{self._home.root}/{folder}"
            try:
                found = self._files.sizes(directory)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._unread.append(Unread(directory, error.strerror or str(error)))
                continue
            self._sizes |= {f"{folder}/{name}": size for name, size in found.items() if name.endswith(SUFFIX)}
        for name in sorted(self._sizes):
            self._file(name, None if offsets is None else offsets.get(name, 0))
        self._look_at_index(offsets)
        for box in self._spool:
            try:
                self._spool[box] = len(self._files.names(f"{self._home.spool}/{box}"))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._unread.append(Unread(f"{self._home.spool}/{box}", error.strerror or str(error)))

    def report(self, repaired: Iterable[str] = ()) -> VerifyReport:
        """Return what was found."""
        count = self._count
        if not self._deep:
            self._unchecked += [
                "ids and body commitments (only with --deep)",
                "gaps in received files (only with --deep)",
            ]
        if count["signed"]:
            self._unchecked.append(f"{count['signed']} signatures")
        if count["unknown"]:
            self._unchecked.append(f"{count['unknown']} frames of a later format")
        self._unchecked.append("what other devices hold")
        return VerifyReport(
            self._deep,
            files=count["files"],
            bytes=count["bytes"],
            frames=count["frames"],
            events=count["events"],
            sealed=count["sealed"],
            unknown=count["unknown"],
            torn=count["torn"],
            pending=self._spool["new"],
            bad=self._spool["bad"],
            damages=tuple(self._damages),
            missing=self._missing(),
            ahead=tuple(self._ahead),
            forks=tuple(self._forks),
            unread=tuple(self._unread),
            repaired=tuple(repaired),
            unchecked=tuple(self._unchecked),
            noted=self._losses.noted,
        )

    def _missing(self) -> tuple[Gap, ...]:
        """Return the numbers that are nowhere, without those that a damaged place accounts for."""
        told = [hurt.lost for hurt in self._damages if hurt.lost is not None]
        found = dict.fromkeys(gap for gap in self._chains.gaps() if gap not in told)
        if self._unread:
            return tuple(found)  # what lies there may be all that is missed
        seen = list(self._losses.seen)
        with suppress(OSError):
            identity = peek(self._home, self._files)
            if identity is not None and identity.seq:
                seen.append(Gap(identity.writer, 1, identity.seq))
        for gap in seen:
            rest = gap._replace(first=max(gap.first, self._chains.last(gap.writer) + 1))
            if rest.first <= rest.last and not any(one.holds(rest) for one in (*told, *found)):
                found[rest] = None
        return tuple(found)

    def _look_at_index(self, offsets: Mapping[str, int] | None) -> None:
        if offsets is None:
            self._unchecked.append("the index")
            return
        for name, offset in sorted(offsets.items()):
            size = self._sizes.get(name, 0)
            if offset > size:
                self._ahead.append(Hurt(name, size, offset - size, "indexed, but not in the file"))

    def _file(self, name: str, indexed: int | None) -> None:
        try:
            data = self._files.pread(f"{self._home.root}/{name}", 0, -1)
        except OSError as error:
            self._unread.append(Unread(f"{self._home.root}/{name}", error.strerror or str(error)))
            return
        count = self._count
        count["files"] += 1
        count["bytes"] += len(data)
        own = name.startswith(f"{SEGMENTS}/")
        if len(data) <= HEADER_BYTES and (found := scan_segment(data)).header is None:
            count["torn"] += len(data)  # a crash in the making of the file; the ingester removes it
            return
        found = scan_segment(data)
        damages = [Hurt(name, *damage) for damage in found.damages]
        if found.torn and found.footer_at < 0 and (own or found.header is not None):
            count["torn"] += found.torn
        elif found.torn:
            damages.append(Hurt(name, len(data) - found.torn, found.torn, "cut short"))
        events = [frame for frame in found.frames if frame.type == EVENT]
        count["frames"] += len(found.frames) + (found.footer_at >= 0)
        count["unknown"] += len(found.frames) - len(events)
        count["signed"] += sum(1 for frame in events if frame.flags & SIGNED)
        count["sealed"] += found.footer_at >= 0
        held = self._events(name, events, damages) if self._deep else self._ends(name, events, damages)
        count["events"] += held
        if own:
            damages = [named(hurt, found, events) for hurt in damages]
            if found.footer_at < 0:
                damages += between(name, events, damages)
        damages += against_footer(name, found, events, sum(hurt.cost for hurt in damages))
        if indexed and indexed not in _bounds(found) and indexed <= len(data):
            self._ahead.append(Hurt(name, indexed, 0, "indexed up to a place where no frame ends"))
        self._damages += sorted(damages, key=lambda hurt: hurt.offset)

    def _events(self, name: str, frames: Sequence[Frame], damages: list[Hurt]) -> int:
        """Verify every event of a file and its link to the one before."""
        held = 0
        last: Event | None = None
        for frame in frames:
            try:
                event = frame_event(frame)
            except Bad as error:
                damages.append(Hurt(name, frame.offset, frame.length, str(error)))
                last = None
                continue
            held += 1
            header = event.header
            follows = last is not None and last.header.writer == header.writer and last.header.seq + 1 == header.seq
            # Whatever it follows, its number is there.
            linked = self._chains.add(header.writer, header.seq, header.seq, header.prev, event.id)
            if follows and last is not None and header.prev != last.id:
                # In a received file twins may lie one behind the other.
                place = damages if name.startswith(f"{SEGMENTS}/") else self._forks
                place.append(Hurt(name, frame.offset, frame.length, "does not follow the event before it"))
            elif not linked and not follows:
                self._forks.append(Hurt(name, frame.offset, frame.length, "another branch of its writer's chain"))
            last = event
        return held

    def _ends(self, name: str, frames: Sequence[Frame], damages: list[Hurt]) -> int:
        """Look at the first and the last event of a file only; an own file must hold every number between them."""
        if not name.startswith(f"{SEGMENTS}/"):
            self._watch(frames if self._watched else ())
            return len(frames)
        if not frames:
            return 0
        try:
            first, last = frame_event(frames[0]), frame_event(frames[-1])
        except Bad as error:
            damages.append(Hurt(name, frames[0].offset, frames[0].length, f"first or last event: {error}"))
            return len(frames)
        self._chains.add(first.header.writer, first.header.seq, last.header.seq, first.header.prev, last.id)
        return len(frames)

    def _watch(self, frames: Sequence[Frame]) -> None:
        """Note which numbers of watched writers were received."""
        for frame in frames:
            if not any(writer in frame.header for writer in self._watched):
                continue  # its bytes name none of them, so it needs not be decoded
            with suppress(Bad):
                event = frame_event(frame)
                header = event.header
                if header.writer in self._watched:
                    self._chains.add(header.writer, header.seq, header.seq, header.prev, event.id)


def _bad(home: Home, files: Files) -> list[str]:
    """Return the captures that were just tried again in vain."""
    with suppress(OSError):
        return files.names(f"{home.spool}/bad")
    return []


def _bounds(found: SegmentScan) -> set[int]:
    """Return where an index may have stopped: behind any frame, or behind skipped damage."""
    ends = {HEADER_BYTES, found.end}
    ends.update(frame.offset + frame.length for frame in found.frames)
    ends.update(damage.offset + damage.length for damage in found.damages)
    return ends
