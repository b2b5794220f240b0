"""The processes of the kill test: writers, and an ingester that is killed again and again.

``kill_room.py write HOME NUMBER CAPTURES KILLS`` drops captures, every 20th through the hook program itself, and keeps
step with the kills (``HOME/kills`` grows by a byte with each). ``kill_room.py ingest HOME KILLS SEED STOP`` starts
ingesters and kills them at random, half of them after a random time, half ahead of a random call to the disk; when
the file STOP is there and the kills are done, one may finish.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memorize.clock import SystemClock
from memorize.errors import IndexMissing
from memorize.index.projector import Projector
from memorize.index.rebuild import rebuild
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.log.ingest import Ingester
from memorize.log.spool import put_capture
from memorize.model import OBSERVED_NOTE, Capture, Draft
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


def write(home: Home, writer: int, captures: int, kills: int) -> None:
    """Drop the captures, evenly over all kills."""
    clock = SystemClock()
    counter = home.root / "kills"
    for number in range(captures):
        while counter.stat().st_size < number * kills // captures - 1:
            time.sleep(0.002)
        data = text(writer, number).encode()
        if number % HOOK_EVERY == 0:
            command = [sys.executable, "-I", "-S", str(home.hook_program), "claude", "Stop"]
            subprocess.run(command, input=data, check=True, env={"PATH": os.environ["PATH"]}, cwd="/")
        else:
            put_capture(home, "claude", "Stop", data, clock)


class _Deadly(RealFiles):
    """Kills its own process ahead of the k-th call."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __getattribute__(self, name: str) -> Any:
        if name in _CALLS:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def note(capture: Capture) -> Sequence[Draft]:
    """One capture is two events, so that an ingester can die between them."""
    words = capture.data.decode()
    payload = {"text": words, "agent": capture.agent}
    return [Draft(OBSERVED_NOTE, payload, 0), Draft(OBSERVED_NOTE, payload | {"text": words[::-1]}, 1)]


def _work(home: Home, files: RealFiles, once: bool) -> None:
    clock = SystemClock()
    projector = Projector(home.index)
    identity = load_or_renew(home, files, clock)
    ingester = Ingester(home, files, clock, identity, note, projector)
    while True:
        try:
            report = ingester.run(wait_s=60.0)
        except IndexMissing:
            rebuild(home, clock)
            continue
        if once and report.left == 0:
            return
        if report.files == 0:
            time.sleep(0.002)


def _child(home: Home, files: RealFiles, once: bool = False) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _work(home, files, once)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(code)
    return child


def ingest(home: Home, kills: int, seed: int, stop: Path) -> None:
    """Kill ingesters until it was often enough and the writers are done; then let one finish."""
    chance = random.Random(seed)
    done = 0
    with (home.root / "kills").open("ab", buffering=0) as counter:
        while done < kills or not stop.exists():
            by_call = chance.random() < 0.5
            files = _Deadly(chance.randrange(1, 80)) if by_call else RealFiles()
            child = _child(home, files)
            # One that has nothing to do never comes to its last call.
            until = time.monotonic() + (0.3 if by_call else chance.uniform(0.0, 0.06))
            ended, status = 0, 0
            while not ended and time.monotonic() < until:
                time.sleep(0.001)
                ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
            if os.WIFEXITED(status):
                raise SystemExit("an ingester gave up")
            done += 1
            counter.write(b".")
    _, status = os.waitpid(_child(home, RealFiles(), once=True), 0)
    raise SystemExit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    role, root, *words = sys.argv[1:]
    if role == "write":
        write(Home(Path(root)), *(int(word) for word in words))
    else:
        ingest(Home(Path(root)), int(words[0]), int(words[1]), Path(words[2]))
