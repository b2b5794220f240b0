"""Power cuts and kills while bodies are taken out: the old file or the new one, nothing lost, and at last nothing left.

On the disk in memory, as in ``test_crash_states``; with any one of the syncs left out a wrong state must be found.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from memorize.clock import FixedClock
from memorize.log.codec import encode, new_header
from memorize.log.frames import EVENT
from memorize.log.scrub import BESIDE, scrub
from memorize.log.segments import SUFFIX, frame_event, scan_segment
from memorize.log.verify import CLEAN, verify
from memorize.model import OBSERVED_NOTE, Envelope
from tests.counts import count
from tests.log.disk import Disk, Killed, Site
from tests.log.test_crash_states import DAY_MS, HOME, Ledger, Stage, Telling, _copied

SECRETS = ("비밀 하나", "secret two", "받은 비밀", "secret of the end")
KEPT = ("남는 것", "kept", "받은 것", "after it")
LIMIT = count("power cuts tried at one step of an erasure", quick=8, full=60)


class Moment(NamedTuple):
    """Everything as it was ahead of one change. ``gone``: it was told that the bodies are gone."""

    disk: Disk
    index: Telling
    clock: FixedClock
    gone: bool
    skipped: bool


def received(text: str, seq: int) -> Envelope:
    header = new_header(b"s" * 16, b"f" * 16, b"f" * 16, OBSERVED_NOTE)._replace(seq=seq, lamport=seq)
    found = encode(header, {"text": text}, bytes([seq]) * 16)
    return Envelope(found.event.id, seq, found.header, found.body)


class Erasure:
    """Two own files, one of them in use, and a received one; of each one event is to be erased."""

    def __init__(self, skip: Site | None = None, kill_at: int = 0) -> None:
        self.stage = Stage(Disk(), Ledger())
        self.moments: list[Moment] = []
        self.gone = False
        self.skip = skip
        self._fill()
        disk = self.stage.disk
        disk.before, disk.skip = self._look, skip
        disk.kill_at = disk.changes + kill_at if kill_at else 0
        try:
            self.erase()
        except Killed:
            disk.kill_at, disk.handles, self.stage.work = 0, {}, None
            self.stage.run()
            self.erase()
        disk.kill_at = 0
        self._look("end")
        self.stage.put(KEPT[3], strict=True)
        self.stage.run()
        self._look("later")
        disk.before = None

    def _fill(self) -> None:
        stage = self.stage
        stage.open()
        for text in (SECRETS[0], KEPT[0]):
            stage.put(text, strict=True)
        stage.run()
        stage.clock = stage.clock._replace(wall=stage.clock.wall + DAY_MS)
        stage.open()
        for text in (KEPT[1], SECRETS[1], SECRETS[3]):
            stage.put(text, strict=True)
        stage.run()
        assert stage.work is not None
        stage.work.receive([received(SECRETS[2], 1), received(KEPT[2], 2)])
        # What was done before is durable: here it is about the erasure alone.
        for folder in ("spool/new", "spool/tmp", "segments", "received"):
            stage.disk.sync_dir(f"{HOME.root}/{folder}")

    def erase(self) -> None:
        scrub(HOME, self.stage.disk, targets(self.stage.index), {})
        self.gone = True

    def _look(self, _what: str) -> None:
        stage = self.stage
        index = _copied(stage.index, Ledger())
        skipped = self.skip in stage.disk.sites
        self.moments.append(Moment(stage.disk.copy(), index, stage.clock, self.gone, skipped))


def targets(index: Telling) -> set[bytes]:
    return {
        identity
        for identity, stored in index.stored.items()
        if stored.event.payload and stored.event.payload.get("text") in SECRETS
    }


def files(disk: Disk) -> dict[str, bytes]:
    """Return the files of the log, whatever their names."""
    folders = (f"{HOME.segments}/", f"{HOME.received}/")
    return {path: data for path, data in disk.tree().items() if path.startswith(folders)}


def faults(moment: Moment, disk: Disk, index: Telling | None) -> Iterator[str]:
    stage = Stage(disk, Ledger(), index)
    stage.clock = moment.clock
    stage.run()
    if moment.gone and (found := [text for text in SECRETS for data in files(disk).values() if text.encode() in data]):
        yield f"told to be gone, but here: {found}"
    yield from lost(moment, disk, stage)
    scrub(HOME, disk, targets(moment.index), {})
    if found := [text for text in SECRETS for data in files(disk).values() if text.encode() in data]:
        yield f"still here after a second attempt: {found}"
    if [path for path in files(disk) if not path.endswith((SUFFIX, "/"))]:
        yield "something is left beside the files"
    stage.work = None
    stage.run()
    yield from lost(moment, disk, stage)


def lost(moment: Moment, disk: Disk, stage: Stage) -> Iterator[str]:
    events = {}
    for path, data in files(disk).items():
        if path.endswith(SUFFIX):
            for frame in scan_segment(data).frames:
                if frame.type == EVENT:
                    event = frame_event(frame)
                    if event.id in events:
                        yield "an event is there twice"
                    events[event.id] = event
    if moment.index.stored.keys() - events.keys():
        yield "events are lost"
    erased = targets(moment.index)
    for identity, stored in moment.index.stored.items():
        if identity in events and identity not in erased and events[identity].payload != stored.event.payload:
            yield "a body is gone that nobody erased"
    report = verify(HOME, deep=True, files=disk, offsets=stage.index.offsets())
    if report.exit != CLEAN:
        yield f"not clean: {report.damages} {report.missing} {report.ahead}"


def answers(moments: list[Moment], limit: int) -> Iterator[str | None]:
    for number, moment in enumerate(moments):
        for turn, disk in enumerate(moment.disk.cuts(limit, number)):
            index = _copied(moment.index, Ledger()) if (turn + number) % 2 else None
            try:
                fault = next(faults(moment, disk, index), None)
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            yield None if fault is None else f"step {number}: {fault}"


def test_a_power_cut_at_any_step_leaves_the_old_file_or_the_new_one() -> None:
    found = list(answers(Erasure().moments, LIMIT))
    count("disks after a power cut, erasure", len(found), len(found))
    wrong = [answer for answer in found if answer]
    assert not wrong, f"{len(wrong)} of {len(found)} states are wrong, the first: {wrong[0]}"
    assert len(found) > 30


def test_a_kill_at_any_step_and_a_power_cut_after_it_lose_nothing_and_leave_nothing() -> None:
    steps = sum(not moment.gone for moment in Erasure().moments)
    found: list[str | None] = []
    for at in range(1, steps + 1, count("every n-th step of an erasure killed", quick=3, full=1)):
        found += answers(Erasure(kill_at=at).moments, 2)
    wrong = [answer for answer in found if answer]
    count("disks after a kill and a power cut, erasure", len(found), len(found))
    assert not wrong, f"{len(wrong)} of {len(found)} states are wrong, the first: {wrong[0]}"


def sites() -> list[Site]:
    play = Erasure()
    return sorted(site for site in play.stage.disk.sites if site.function in ("_rewrite", "scrub"))


def test_without_any_one_of_the_syncs_an_erasure_loses_events_or_is_undone() -> None:
    known = sites()
    assert [(site.function, site.what) for site in known] == [
        ("_rewrite", "fsync"),
        ("scrub", "sync_dir received"),
        ("scrub", "sync_dir segments"),
    ]
    for site in known:
        affected = [moment for moment in Erasure(site).moments if moment.skipped]
        assert next(filter(None, answers(affected, 20)), None), f"nothing went wrong without {site}"


def test_writing_into_the_file_itself_instead_of_beside_it_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Disk.rename

    def over(disk: Disk, source: str, target: str) -> None:
        """Put the bytes into the old file, as a program does that opens it and writes it over."""
        if not source.endswith(SUFFIX + BESIDE):
            rename(disk, source, target)
            return
        data = disk.pread(source, 0, -1)
        disk.unlink(source)
        handle = disk.reopen(target)
        disk.truncate(handle, 0)
        disk.write(handle, data)
        disk.fsync(handle)
        disk.close(handle)

    monkeypatch.setattr(Disk, "rename", over)
    assert next(filter(None, answers(Erasure().moments, 20)), None)


def test_random_chains_of_power_cuts_end_without_the_bodies_and_with_everything_else() -> None:
    chance = random.Random(2026)
    for _ in range(count("chains of power cuts in an erasure", quick=10, full=150)):
        moments = Erasure().moments
        moment = chance.choice(moments)
        disk = chance.choice(list(moment.disk.cuts(6, chance.randrange(100))))
        disk.kill_at = disk.changes + chance.randrange(1, 12)
        try:
            assert next(faults(moment, disk, None), None) is None
        except Killed:
            disk.kill_at, disk.handles = 0, {}
            again = chance.choice(list(itertools.islice(disk.cuts(6, 1), 6)))
            assert next(faults(moment, again, None), None) is None
