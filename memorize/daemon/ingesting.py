"""The daemon's other thread: ingests, consolidates behind boundaries, renders briefs. Never stops for an error."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Final

from memorize.bootstrap import App
from memorize.daemon.process import run_process
from memorize.errors import IndexDamaged
from memorize.index.damage import is_damage

POLL_S: Final = 0.25
# A round without anything in the spool: what other processes wrote, what died, a day-old segment.
ROUND_S: Final = 60.0
BACKOFF_S_MAX: Final = 30.0
# Above this the caches are given up: a daemon is to stay below 60 MiB, and opening again takes milliseconds.
MEMORY_KIB_MAX: Final = 42 * 1024
FAILURE_CHARS_MAX: Final = 200


def memory_kib() -> int:
    """Return the memory that this process holds now, its peak where the system tells only that."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024
    except (OSError, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak


def give_back() -> None:
    """Give freed memory back to the system, where the C library knows how: holes between what is used stay else."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


class Turn:
    """Lets the thread that answers go first: ingesting pauses between two files while an answer is being made."""

    def __init__(self) -> None:
        """Nobody is answering yet."""
        self._free = threading.Event()
        self._free.set()

    def __enter__(self) -> None:
        """Begin an answer."""
        self._free.clear()

    def __exit__(self, *_: object) -> None:
        """The answer is made."""
        self._free.set()

    def give_way(self) -> None:
        """Wait while an answer is being made, but not for ever: a stuck answer must not stop the ingesting."""
        if not self._free.is_set():
            self._free.wait(POLL_S)


class Ingesting(threading.Thread):
    """Does a round whenever the spool holds something. Failures are counted and told by ``status``."""

    def __init__(self, app: App, turn: Turn) -> None:
        """Nothing is read before the thread starts."""
        super().__init__(name="ingest", daemon=True)
        self.app = app
        self.leave = threading.Event()
        self.wake = threading.Event()
        self.due = threading.Event()
        self.due.set()
        self.ingested = 0
        self.failures = 0
        self.failure = ""
        self.worked_at = self._looked_at = time.monotonic()
        self._in_a_row = 0
        self._doubts = 0
        self._doubted = 0
        app.between = turn.give_way

    def run(self) -> None:
        """Work until told to leave."""
        while not self.leave.is_set():
            if self.due.is_set() or self._something_waits():
                self._round()
            else:
                self._rest(POLL_S)

    def doubt(self) -> None:
        """Somebody found the index missing or broken. The connection that writes may not see it: it opens again."""
        self._doubts += 1
        self.due.set()
        self.wake.set()

    def _look_at_index(self) -> None:
        """Make the index anew when it is not there or broken. A doubt that opening it does not settle counts, too."""
        doubts, self._doubts = self._doubts, 0
        if doubts:
            self.app.close()
            self._doubted += 1
        try:
            self.app.projector.top()
        except IndexDamaged:
            self._doubted = 2
        if self._doubted >= 2:
            self._doubted = 0
            self._rebuild()

    def _rebuild(self) -> None:
        """Let a process of its own do it: it needs several times the memory that a daemon may keep."""
        self.app.close()
        run_process(self.app.home, self.leave, "rebuild")

    def _rest(self, seconds: float) -> None:
        self.wake.wait(seconds)
        self.wake.clear()

    def _something_waits(self) -> bool:
        """Look into the spool without listing it."""
        if time.monotonic() - self._looked_at >= ROUND_S:
            return True
        try:
            with os.scandir(self.app.home.spool / "new") as entries:
                return next(entries, None) is not None
        except OSError:
            return False

    def _round(self) -> None:
        if not self.app.home.identity.exists():
            self.leave.set()  # somebody deleted the state directory, and we must not make it again
            return
        now = time.monotonic()
        if now - self._looked_at >= ROUND_S:
            self._looked_at, self.app.catch_up = now, True
        self.due.clear()
        try:
            self._look_at_index()
            worked = self.app.work_once()
        except Exception as error:
            # A full disk or a locked index passes, a mistake of ours must not end the captures: they wait in the spool.
            self.failures += 1
            self._in_a_row += 1
            if is_damage(error):
                self.doubt()
            self.failure = f"{type(error).__name__}: {error}"[:FAILURE_CHARS_MAX]
            self.due.set()
            self.leave.wait(min(BACKOFF_S_MAX, 0.5 * 2 ** min(self._in_a_row, 8)))
            return
        self._in_a_row = 0
        if memory_kib() > MEMORY_KIB_MAX:
            self.app.close()
            give_back()
        if worked:
            self.ingested += worked
            self.worked_at = time.monotonic()
        elif not self.leave.is_set():
            self._rest(POLL_S)
