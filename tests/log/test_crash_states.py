"""Power cuts and kills at every step: nothing that was acknowledged is ever lost, nothing is there twice.

Small scripts run on a disk in memory. Ahead of each of their changes every state that a power cut could leave is made,
and the program is started on it. Then the other way round: with any one of the syncs left out, a losing state must be
found; so every sync of the program is there for a reason, and these tests would notice if it went.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from memorize.clock import FixedClock
from memorize.log import receive
from memorize.log.codec import Bad
from memorize.log.frames import EVENT
from memorize.log.identity import load_or_renew
from memorize.log.ingest import Ingester
from memorize.log.recovery import IndexAhead
from memorize.log.segments import HEADER_BYTES, SUFFIX, frame_event, scan_segment
from memorize.log.spool import put_batch, put_capture
from memorize.log.verify import CLEAN, verify
from memorize.model import DEVICE_HELLO, OBSERVED_NOTE, Draft, Envelope, Event, Stored
from memorize.paths import Home
from tests.counts import count
from tests.log.disk import PARENT, Disk, Killed, Site
from tests.log.fakes import MemoryProjection, no_machine, note
from tests.log.others import Other, bare

HOME = Home(Path(f"{PARENT}/memorize"))
LIMIT = count("power cuts tried at one step", quick=2, full=40)
AFTER_KILL_LIMIT = count("power cuts tried at one step of a recovery", quick=1, full=2)
CONTROL_LIMIT = 10
DAY_MS = 25 * 3600 * 1000


class Ledger:
    """What was ever put in, and what the outside was told: ``strict`` nonces, indexed ids and their replicas.

    ``offered`` are ids that others gave; ``bodies`` those of them of which it was said that all of it is there now.
    """

    def __init__(self) -> None:
        self.captured: dict[bytes, set[int]] = {}
        self.strict: set[bytes] = set()
        self.ids: set[bytes] = set()
        self.replicas: set[tuple[bytes, bytes]] = set()
        self.offered: set[bytes] = set()
        self.bodies: set[bytes] = set()

    def copy(self) -> Ledger:
        made = Ledger()
        made.captured, made.strict, made.ids = dict(self.captured), set(self.strict), set(self.ids)
        made.replicas, made.offered, made.bodies = set(self.replicas), set(self.offered), set(self.bodies)
        return made


class Telling(MemoryProjection):
    """An index that tells the ledger what readers can see from now on."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        super().apply(events, offsets, received_ms)
        self.ledger.ids |= {stored.event.id for stored in events}
        own = [stored.event.header for stored in events if stored.event.id not in self.ledger.offered]
        self.ledger.replicas |= {(header.store, header.replica) for header in own}


class Stage:
    """One machine: a disk, an index, a clock, and what the outside knows."""

    def __init__(self, disk: Disk, ledger: Ledger, index: Telling | None = None) -> None:
        self.disk, self.ledger = disk, ledger
        self.index = index or Telling(ledger)
        self.clock = FixedClock()
        self.work: Ingester | None = None

    def open(self) -> None:
        identity = load_or_renew(HOME, self.disk, self.clock, no_machine)
        self.work = Ingester(HOME, self.disk, self.clock, identity, note, self.index, no_machine)

    def put(self, text: str, strict: bool = False) -> None:
        nonce = zlib.crc32(text.encode()).to_bytes(4, "big") * 4
        self.ledger.captured[nonce] = {0}
        put_capture(HOME, "claude", "Stop", text.encode(), self.clock, strict, self.disk, nonce)
        self.ledger.strict |= {nonce} if strict else set()

    def batch(self, *texts: str) -> None:
        nonce = zlib.crc32("".join(texts).encode()).to_bytes(4, "big") * 4
        self.ledger.captured[nonce] = set(range(len(texts)))
        drafts = [
            Draft(OBSERVED_NOTE, {"text": text}, number, tuple(range(number))) for number, text in enumerate(texts)
        ]
        put_batch(HOME, drafts, self.clock, True, self.disk, nonce)
        self.ledger.strict.add(nonce)

    def run(self) -> int:
        """Ingest as a program does: an index that knows more than the log is made anew."""
        if self.work is None:
            self.open()
        assert self.work is not None
        try:
            return self._total()
        except IndexAhead:
            self.index = Telling(self.ledger)
            self.open()
            return self._total()

    def receive(self, *envelopes: Envelope) -> None:
        """Take in events of others. Files are full after two events, so that they are sealed, too."""
        self.ledger.offered |= {envelope.id for envelope in envelopes}
        if self.work is None:
            self.open()
        assert self.work is not None
        with patch.object(receive, "SEGMENT_BYTES_MAX", receive.BATCH_BYTES_MAX + 500):
            assert self.work.receive(envelopes).bad == 0
        self.ledger.bodies |= {envelope.id for envelope in envelopes if envelope.body is not None}

    def _total(self) -> int:
        assert self.work is not None
        report = self.work.run()
        assert not report.unread
        return report.events + report.recovered


def _strict_and_relaxed(stage: Stage) -> None:
    stage.open()
    stage.put("하나", strict=True)
    stage.put("둘")
    stage.run()
    stage.put("셋", strict=True)
    stage.run()


def _first_of_all(stage: Stage) -> None:
    stage.put("before there is an identity", strict=True)
    stage.run()


def _seal_and_go_on(stage: Stage) -> None:
    stage.open()
    stage.put("first", strict=True)
    stage.run()
    stage.clock = stage.clock._replace(wall=stage.clock.wall + DAY_MS)
    stage.open()
    stage.put("second")
    stage.run()
    stage.put("third", strict=True)
    stage.run()


def _batches(stage: Stage) -> None:
    stage.open()
    stage.batch("a", "b", "c")
    stage.put("among them")
    stage.batch("d", "e")
    stage.run()


def _restart(stage: Stage) -> None:
    stage.open()
    stage.put("first", strict=True)
    stage.run()
    stage.clock = FixedClock(boot_id=b"\x02" * 16)
    stage.work = None
    stage.put("second", strict=True)
    stage.run()


def _receiving_only(stage: Stage) -> None:
    one = Other(1).say("첫째", "둘째", "셋째")
    stage.open()
    stage.receive(*one[:2])
    stage.receive(one[2])


def _receiving(stage: Stage) -> None:
    one, other = Other(1).say("다른 기기에서", "second", "third"), Other(2).say("kept back", "nicht")
    stage.open()
    stage.receive(*one[:2], *bare(other[:1]))
    stage.put("mine", strict=True)
    stage.run()
    stage.work = None
    stage.receive(*other, one[2])
    stage.receive(*one)


SCRIPTS: dict[str, Callable[[Stage], None]] = {
    script.__name__.strip("_"): script
    for script in (_strict_and_relaxed, _first_of_all, _seal_and_go_on, _batches, _restart, _receiving_only, _receiving)
}


class Moment(NamedTuple):
    """Everything as it was ahead of one change; ``skipped``: whether a sync was left out before."""

    disk: Disk
    ledger: Ledger
    known: Telling
    clock: FixedClock
    skipped: bool


def _moments(play: Callable[[Stage], None], stage: Stage, skip: Site | None = None) -> tuple[list[Moment], set[Site]]:
    """Run a script and return what was there ahead of each of its changes, and at its end."""
    found: list[Moment] = []

    def look(what: str) -> None:
        ledger = stage.ledger.copy()
        index = _copied(stage.index, ledger)
        found.append(Moment(stage.disk.copy(), ledger, index, stage.clock, skip in stage.disk.sites))

    stage.disk.before, stage.disk.skip = look, skip
    play(stage)
    look("end")
    stage.disk.before = None
    return found, stage.disk.sites


def _segments(disk: Disk, folder: Path = HOME.segments) -> dict[str, bytes]:
    prefix = f"{folder}/"
    return {path: data for path, data in sorted(disk.tree().items()) if path.startswith(prefix) and SUFFIX in path}


def _events(files: Mapping[str, bytes]) -> list[Event]:
    found = []
    for data in files.values():
        for frame in scan_segment(data).frames:
            if frame.type == EVENT:
                try:
                    found.append(frame_event(frame))
                except Bad:
                    continue
    return found


def _faults(disk: Disk, ledger: Ledger, stage: Stage) -> Iterator[str]:
    """Yield what is wrong with a disk after recovery."""
    events, others = _events(_segments(disk)), _events(_segments(disk, HOME.received))
    ids = [event.id for event in (*events, *others)]
    slots = [(event.header.nonce, event.header.ordinal) for event in events]
    if ledger.ids - set(ids):
        yield f"{len(ledger.ids - set(ids))} indexed events are lost"
    for nonce in ledger.strict:
        if {ordinal for other, ordinal in slots if other == nonce} != ledger.captured[nonce]:
            yield "a capture that was reported as safe is lost"
    if len(set(slots)) != len(slots):
        yield "an event is there twice"
    for event in events:
        if event.kind != DEVICE_HELLO and event.header.ordinal not in ledger.captured.get(event.header.nonce, ()):
            yield "an event was never captured"
    if {event.id for event in others} - ledger.offered:
        yield "an event was never given"
    if ledger.bodies - {event.id for event in others if event.payload}:
        yield "an event that was reported as received is lost, or its body"
    yield from _other_faults(disk, ledger, stage)
    if set(ids) != set(stage.index.stored):
        yield "the index and the log differ"


def _other_faults(disk: Disk, ledger: Ledger, stage: Stage) -> Iterator[str]:
    if disk.names(f"{HOME.spool}/new"):
        yield "the spool is not empty"
    if list(_unsealed(_segments(disk)))[:-1] or list(_unsealed(_segments(disk, HOME.received)))[:-1]:
        yield "an old segment stays open"
    assert stage.work is not None
    known = stage.work.identity
    if ledger.replicas and ledger.replicas != {(known.store, known.replica)}:
        yield "the identity was lost"
    if len(disk.tree().get(f"{HOME.keys}/{known.store.hex()}.key", b"")) != 32:
        yield "the key of the store is lost"
    report = verify(HOME, deep=True, files=disk, offsets=stage.index.offsets())
    if report.exit != CLEAN:
        yield f"not clean: {[hurt.what for hurt in report.damages]} {report.missing} {report.ahead}"


def _unsealed(files: Mapping[str, bytes]) -> Iterator[str]:
    for path, data in files.items():
        if scan_segment(data).footer_at < 0 and len(data) > HEADER_BYTES:
            yield path


def _recover(moment: Moment, disk: Disk, index: Telling | None, boot: bytes) -> Iterator[str]:
    """Start the program on a disk, twice, and yield what is wrong."""
    ledger = moment.ledger.copy()
    stage = Stage(disk, ledger, None if index is None else _copied(index, ledger))
    stage.clock = moment.clock._replace(boot_id=boot)
    stage.run()
    yield from _faults(disk, moment.ledger, stage)
    before = disk.tree()
    if stage.run() or disk.tree() != before:
        yield "a second recovery changes something"
    stage.work = None
    if stage.run() or disk.tree() != before:
        yield "a third recovery by another process changes something"


def _losing(moments: list[Moment], limit: int) -> Iterator[str | None]:
    """Yield one answer for every disk that a power cut may leave: None, or what is wrong with it.

    The index is a file of its own, as it was or gone; the boot is another one, or (in a container) the same.
    """
    for number, moment in enumerate(moments):
        ways = itertools.product((None, moment.known), (b"\x09" * 16, moment.clock.boot_id))
        turns = itertools.cycle(ways)
        for turn, disk in enumerate(moment.disk.cuts(limit, number)):
            for index, boot in itertools.islice(turns, 4 if turn < 2 else 1):
                try:
                    fault = next(_recover(moment, disk.copy(), index, boot), None)
                except Exception as error:
                    fault = f"{type(error).__name__}: {error}"
                yield None if fault is None else f"step {number}: {fault}; {sorted(disk.tree())}"


def _killed(script: str, at: int) -> Callable[[Stage], None]:
    """Return a script that is killed ahead of its change ``at``, after which the program starts again."""

    def play(stage: Stage) -> None:
        before, stage.disk.before, stage.disk.kill_at = stage.disk.before, None, stage.disk.changes + at
        with contextlib.suppress(Killed):
            SCRIPTS[script](stage)
        stage.disk.before, stage.disk.kill_at, stage.disk.handles, stage.work = before, 0, {}, None
        stage.run()

    return play


def _recovery(stage: Stage) -> None:
    stage.run()


def _length(script: str) -> int:
    return len(_moments(SCRIPTS[script], Stage(Disk(), Ledger()))[0])


def _copied(index: Telling, ledger: Ledger) -> Telling:
    made = Telling(ledger)
    made.ends, made.stored, made.counter = dict(index.ends), dict(index.stored), index.counter
    made.ids = {nonce: dict(ids) for nonce, ids in index.ids.items()}
    return made


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_power_cut_loses_or_doubles_anything(script: str) -> None:
    moments, _ = _moments(SCRIPTS[script], Stage(Disk(), Ledger()))
    answers = list(_losing(moments, LIMIT))
    count(f"disks after a power cut, {script}", len(answers), len(answers))
    wrong = [answer for answer in answers if answer]
    assert not wrong, f"{len(wrong)} of {len(answers)} states are wrong, the first: {wrong[0]}"
    assert len(answers) > 4 * len(moments)


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_kill_and_no_power_cut_during_the_recovery_after_it_loses_anything(script: str) -> None:
    answers = []
    for at in range(1, _length(script), count("every n-th step killed", quick=17, full=2)):
        moments, _ = _moments(_killed(script, at), Stage(Disk(), Ledger()))
        answers += [(at, answer) for answer in _losing(moments[-1:] + moments[:-1], AFTER_KILL_LIMIT)]
    count(f"disks after a kill and a power cut, {script}", len(answers), len(answers))
    wrong = [answer for answer in answers if answer[1]]
    assert not wrong, f"{len(wrong)} of {len(answers)} states are wrong, the first: {wrong[0]}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_second_power_cut_during_the_recovery_loses_anything(script: str) -> None:
    moments, _ = _moments(SCRIPTS[script], Stage(Disk(), Ledger()))
    chance = random.Random(2026)
    answers = []
    for turn in range(count("second power cuts, recoveries", quick=2, full=20)):
        moment = chance.choice(moments)
        disk = chance.choice(list(moment.disk.cuts(8, turn)))
        ledger = moment.ledger.copy()
        stage = Stage(disk, ledger, _copied(moment.known, ledger) if turn % 2 else None)
        stage.clock = moment.clock._replace(boot_id=bytes([turn]) * 16)
        again, _ = _moments(_recovery, stage)
        answers += list(_losing(again, AFTER_KILL_LIMIT))
    count(f"disks after a second power cut, {script}", len(answers), len(answers))
    wrong = [answer for answer in answers if answer]
    assert not wrong, f"{len(wrong)} of {len(answers)} states are wrong, the first: {wrong[0]}"


def _plays() -> Iterator[Callable[[Stage], None]]:
    yield from SCRIPTS.values()
    for script in SCRIPTS:
        yield from (_killed(script, at) for at in range(1, _length(script)))


def _finds(play: Callable[[Stage], None], site: Site) -> str | None:
    """Return a losing state of a script that is played without the syncs of one place."""
    moments, _ = _moments(play, Stage(Disk(), Ledger()), site)
    affected = [moment for moment in moments if moment.skipped]
    return next(filter(None, _losing(affected, CONTROL_LIMIT)), None)


def test_without_any_one_of_the_syncs_something_is_lost() -> None:
    using: dict[Site, list[Callable[[Stage], None]]] = {}
    for play in _plays():
        for site in _moments(play, Stage(Disk(), Ledger()))[1]:
            using.setdefault(site, []).append(play)
    count("syncs left out, one at a time", len(using), len(using))
    assert {site.function for site in using} >= {
        "_put",
        "SegmentWriter.sync",
        "SegmentWriter.create",
        "Recovery._settle",
    }
    unmissed = [site for site, plays in using.items() if not any(_finds(play, site) for play in plays)]
    assert not unmissed, f"nothing was lost without {unmissed}"


def test_without_any_one_of_the_syncs_something_received_is_lost() -> None:
    plays = [_receiving_only, *(_killed("receiving_only", at) for at in range(1, _length("receiving_only")))]
    sites = {site for play in plays for site in _moments(play, Stage(Disk(), Ledger()))[1]}
    log = {site for site in sites if site.function.startswith(("SegmentWriter", "Recovery", "seal"))}
    assert {site.function for site in log} >= {"SegmentWriter.sync", "SegmentWriter.create", "Recovery._settle", "seal"}
    unmissed = [site for site in log if not any(_finds(play, site) for play in plays)]
    assert not unmissed, f"nothing was lost without {unmissed}"
