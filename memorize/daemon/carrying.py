"""The daemon's eye on sync folders and devices by ssh: sees when a round is due, and lets a process of its own do it.

That process needs several times the memory that a daemon may keep, and ends with what it held. While nothing changes
here or there, none is started: a look costs one number of the index, and once a minute the names in the folders. They
are asked for in a small process, too: nothing in this one ever touches a folder that may hang, before it has answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memorize.bootstrap import App
from memorize.bootstrap.syncing import Syncing
from memorize.daemon.process import run_process
from memorize.errors import Problem
from memorize.sync import asking
from memorize.sync.targets import FOLDER, SSH, Target
from memorize.sync.watch import FolderWatch

LOOK_S: Final = 1.0
# What was written here is handed out when nothing more came for so long ...
QUIET_S: Final = 5.0
# ... but rounds never begin more often than this, and packs stay few.
SPACING_S: Final = 30.0
LISTING_S: Final = 60.0
# Packs that were not whole, levels to be merged, devices by ssh: nothing in sight says when.
HEARTBEAT_S: Final = 300.0
BACKOFF_S_MAX: Final = 3600.0
# A folder that is being written to is looked at again rather than read half.
SETTLE_S: Final = 1.0


def _spacing(failures: int) -> float:
    return min(BACKOFF_S_MAX, SPACING_S * 2.0**failures)


class Seen(NamedTuple):
    """What a look saw: the set digest of this device, and the names in all folders."""

    held: str = ""
    names: int = 0


class Rest(NamedTuple):
    """How long an address that does not answer is left alone: a device that is off must hold up nothing else."""

    failures: int = 0
    until: float = -1e9


class Due(NamedTuple):
    """When the next round is to begin, by what is known. All times are seconds of one monotonic clock.

    ``failures``: rounds that could not be done at all, one after the other.
    """

    began: float = -1e9
    changed: float = -1e9
    failures: int = 0

    def is_due(self, now: float, done: Seen, seen: Seen) -> bool:
        """Tell whether a round should begin now. ``done``: what was seen after the last one."""
        if now - self.began < _spacing(self.failures):
            return False
        if seen.names != done.names:
            return now - self.changed >= SETTLE_S
        if seen.held != done.held:
            return now - self.changed >= QUIET_S
        return now - self.began >= HEARTBEAT_S


class Carrying(threading.Thread):
    """Looks every second and starts rounds. A failure of any kind is told by ``memorize sync status``, never raised."""

    def __init__(self, app: App, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is looked at before the thread starts. ``app``: parts of this thread's own."""
        super().__init__(name="carry", daemon=True)
        self.leave = threading.Event()
        self._app = app
        self._clock = clock
        self._syncing = Syncing(app)
        self._hint = threading.Event()
        self._watch = FolderWatch(self._hint)
        self._due = Due()
        self._done = Seen()
        self._seen = Seen()
        self._listed = -1e9
        self._asking = asking.Asking()
        self._names: Mapping[str, int | None] = {}  # of each folder; None: it does not answer
        self._rests: dict[str, Rest] = {}

    def run(self) -> None:
        """Work until told to leave."""
        while not self.leave.wait(LOOK_S):
            try:
                self._look()
            except Exception:  # the index is being made anew, a folder is gone: the next look sees
                self._app.close()
        self._watch.close()
        self._app.close()

    def _look(self) -> None:
        chosen = self._syncing.targets()
        now = self._clock()
        awake = [target for target in chosen if now >= self._rests.get(target.where, Rest()).until]
        if not awake:
            return
        folders = [target.where for target in chosen if target.kind == FOLDER]
        if self._hint.is_set() or now - self._listed >= LISTING_S or self._names.keys() != set(folders):
            self._hint.clear()
            self._listed = now
            self._ask(folders)
            if self.leave.is_set():
                return  # nobody waited for the answers
        self._watch.watch(folder for folder in folders if self._names[folder] is not None)
        seen = Seen(self._app.reader(drain=False).digest()[0], _hash(self._names))
        if seen != self._seen:
            self._seen, self._due = seen, self._due._replace(changed=now)
        if self._due.is_due(now, self._done, seen):
            self._round(awake, folders, now)

    def _ask(self, folders: Sequence[str]) -> None:
        self._names = self._asking.ask(folders, asking.ANSWER_S, self.leave.wait)

    def _round(self, chosen: Sequence[Target], folders: list[str], now: float) -> None:
        self._due = self._due._replace(began=now)
        self._ask(folders)
        if self.leave.is_set():
            return
        before = _hash(self._names)
        silent = [target for target in chosen if self._names.get(target.where, 0) is None]
        self._syncing.unanswered(silent)
        chosen = [target for target in chosen if target not in silent]
        fine = not chosen or run_process(self._app.home, self.leave, "sync", *(target.where for target in chosen))
        self._due = self._due._replace(failures=0 if fine else min(self._due.failures + 1, 16))
        last = self._syncing.last()
        if fine:
            self._rests |= rests(self._rests, chosen, last, self._clock())
        held = next((str(told.get("set")) for one in chosen if (told := last.get(one.where))), self._seen.held)
        # The names are those from before: whatever came meanwhile, be it our own, is looked at once more.
        self._done, self._listed = Seen(held, before), -1e9


def _hash(names: Mapping[str, int | None]) -> int:
    """Return a number that changes with the names in the folders, and with which of them answer."""
    return hash(tuple(sorted((folder, -1 if number is None else number) for folder, number in names.items())))


def rests(
    before: Mapping[str, Rest], tried: Sequence[Target], last: Mapping[str, Mapping[str, Any]], now: float
) -> dict[str, Rest]:
    """Return for how long each place that was tried is left alone. To look at a folder costs nothing, so none is."""
    found = {}
    for target in tried:
        failures = 0
        if target.kind == SSH and not last.get(target.where, {}).get("settled"):
            failures = min(before.get(target.where, Rest()).failures + 1, 16)
        found[target.where] = Rest(failures, now + _spacing(failures)) if failures else Rest()
    return found


def round_of(app: App, places: Collection[str]) -> bool:
    """Do one round with these places, as the process that ``Carrying`` starts; True when it was done, well or not."""
    syncing = Syncing(app)
    try:
        syncing.rounds([target for target in syncing.targets() if target.where in places])
    except Problem:
        return False
    return True
