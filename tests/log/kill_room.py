"""The processes of the kill test: writers, and an ingester that is killed again and again.

``kill_room.py write HOME NUMBER CAPTURES STEPS`` drops captures, every 20th through the hook program itself, and keeps
step with the ingesters (``HOME/steps`` grows by a byte with each). ``kill_room.py ingest HOME STEPS SEED STOP`` starts
ingesters that die by SIGKILL in the middle of their work (``HOME/kills`` grows by a byte): ahead of a random call to
the disk, a random moment later, or while the index is written. When the file STOP is there, one may finish.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memorize.clock import SystemClock
from memorize.index.projector import Projector
from memorize.index.rebuild import rebuild
from memorize.limits import INGEST_BATCH_FILES_MAX
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.log.ingest import Ingester
from memorize.log.spool import put_capture
from memorize.model import OBSERVED_NOTE, Capture, Draft, Stored
from memorize.paths import Home

HOOK_EVERY = 20
_CALLS = (
    "create",
    "reopen",
    "write",
    "truncate",
    "fdatasync",
    "fsync",
    "close",
    "sync_dir",
    "rename",
    "unlink",
    "read",
)


def text(writer: int, number: int) -> str:
    """Return what a writer captures."""
    return f"기억 {writer}-{number} " + "x" * (number % 300)


def write(home: Home, writer: int, captures: int, steps: int) -> None:
    """Drop the captures, evenly over all ingesters."""
    clock = SystemClock()
    counter = home.root / "steps"
    for number in range(captures):
        while counter.stat().st_size < number * steps // captures - 1:
            time.sleep(0.002)
        data = text(writer, number).encode()
        if number % HOOK_EVERY == 0:
            command = [sys.executable, "-I", "-S", str(home.hook_program), "claude", "Stop"]
            subprocess.run(command, input=data, check=True, env={"PATH": os.environ["PATH"]}, cwd="/")
        else:
            put_capture(home, "claude", "Stop", data, clock)


def die() -> None:
    """End this process as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)


class Fate:
    """When a process dies: ahead of its call ``at`` to the disk, ``after`` seconds later if that is not 0.

    ``index``: not by calls but ``after`` seconds into the ``at``-th transaction of the index.
    """

    def __init__(self, at: int, after: float, index: bool) -> None:
        self.at, self.after, self.index = at, after, index

    def call(self, index: bool) -> None:
        """Count a call or a transaction."""
        if index != self.index:
            return
        self.at -= 1
        if self.at == 0:
            if self.after:
                threading.Timer(self.after, die).start()
            else:
                die()


class _Files(RealFiles):
    def __init__(self, fate: Fate) -> None:
        self.fate = fate

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in _CALLS:
            return found

        def counted(*args: Any) -> Any:
            self.fate.call(index=False)
            return found(*args)

        return counted


class _Index(Projector):
    def __init__(self, path: Path, fate: Fate) -> None:
        super().__init__(path)
        self.fate = fate

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        self.fate.call(index=True)
        super().apply(events, offsets, received_ms)


def note(capture: Capture) -> Sequence[Draft]:
    """One capture is two events, so that an ingester can die between them."""
    words = capture.data.decode()
    payload = {"text": words, "agent": capture.agent}
    return [Draft(OBSERVED_NOTE, payload, 0), Draft(OBSERVED_NOTE, payload | {"text": words[::-1]}, 1)]


def _work(home: Home, fate: Fate) -> None:
    """Ingest until there is nothing left."""
    clock, files = SystemClock(), _Files(fate)
    identity = load_or_renew(home, files, clock)
    ingester = Ingester(home, files, clock, identity, note, _Index(home.index, fate))
    while (report := ingester.run(wait_s=60.0)).left or report.files:
        pass


def _child(home: Home, fate: Fate) -> int:
    """Return how an ingester ended: 0, or -9."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _work(home, fate)
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _fate(chance: random.Random, waiting: int) -> Fate:
    """Choose an end that comes before the work is done, whatever the size of the spool."""
    kind = chance.choice((0, 1, 1, 2))
    if kind == 0:
        return Fate(chance.choice((1, 1, 1, 2)), chance.uniform(0.0, 0.01), index=True)
    return Fate(
        chance.randrange(1, 20 + 2 * min(waiting, INGEST_BATCH_FILES_MAX)),
        (kind - 1) * chance.uniform(0.0001, 0.01),
        index=False,
    )


def ingest(home: Home, steps: int, seed: int, stop: Path) -> None:
    """Let ingesters die until the writers are done; then let one finish."""
    chance = random.Random(seed)
    rebuild(home, SystemClock())
    done = 0
    new = home.spool / "new"
    with (home.root / "kills").open("ab", 0) as kills, (home.root / "steps").open("ab", 0) as counter:
        while done < steps or not stop.exists():
            patience = time.monotonic() + 2.0
            while not any(new.iterdir()) and not stop.exists() and time.monotonic() < patience:
                time.sleep(0.001)
            code = _child(home, _fate(chance, sum(1 for _ in new.iterdir())))
            if code not in (0, -signal.SIGKILL):
                raise SystemExit("an ingester gave up")
            kills.write(b"." if code else b"")
            counter.write(b".")
            done += 1
    raise SystemExit(_child(home, Fate(0, 0.0, index=False)))


if __name__ == "__main__":
    role, root, *words = sys.argv[1:]
    if role == "write":
        write(Home(Path(root)), *(int(word) for word in words))
    else:
        ingest(Home(Path(root)), int(words[0]), int(words[1]), Path(words[2]))
