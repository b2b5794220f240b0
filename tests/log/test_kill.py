"""Sixteen writers and an ingester that is killed all the time: every event is there, none is there twice."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import memorize
from memorize.capture.install import install_hook
from memorize.clock import SystemClock
from memorize.index.projector import Projector
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.log.verify import CLEAN, verify
from memorize.model import DEVICE_HELLO
from memorize.paths import Home
from tests.counts import count
from tests.log import kill_room
from tests.log.fakes import events_on_disk, segments

WRITERS = 16
CAPTURES = count("captures of each of 16 writers", quick=60, full=1_000)
KILLS = count("kills of the ingester", quick=25, full=400)
STEPS = 2 * KILLS  # some ingesters are done before their end comes
PATIENCE_S = 420


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_no_kill_of_the_ingester_loses_or_doubles_a_capture(tmp_path: Path) -> None:
    home = Home(tmp_path / "state 상태")
    replica = load_or_renew(home, RealFiles(), SystemClock()).replica
    install_hook(home.hook)
    (home.root / "steps").touch()
    stop = tmp_path / "stop"
    _play(home, stop)
    count("kills of the ingester that happened", happened := (home.root / "kills").stat().st_size, happened)

    events = events_on_disk(segments(home))
    slots = Counter((event.header.nonce, event.header.ordinal) for event in events)
    assert [slot for slot, times in slots.items() if times > 1] == []
    greetings = [event for event in events if event.kind == DEVICE_HELLO]
    assert [event.header.nonce for event in greetings] == [replica]
    wanted = [kill_room.text(writer, number) for writer in range(WRITERS) for number in range(CAPTURES)]
    texts = Counter(str(event.payload["text"]) for event in events if event.payload and event.kind != DEVICE_HELLO)
    assert texts == Counter(wanted) + Counter(words[::-1] for words in wanted)
    assert [*(home.spool / "new").iterdir(), *(home.spool / "bad").iterdir()] == []

    with sqlite3.connect(home.index) as index:
        assert {bytes(row[0]) for row in index.execute("select id from events")} == {event.id for event in events}
    projector = Projector(home.index)
    report = verify(home, deep=True, offsets=projector.offsets())
    projector.close()
    assert (report.exit, report.torn, report.forks) == (CLEAN, 0, ())
    assert happened >= KILLS


def _play(home: Home, stop: Path) -> None:
    """Run the writers and the killed ingester to their end."""
    program = [sys.executable, str(Path(kill_room.__file__))]
    environ = os.environ | {"PYTHONPATH": str(Path(memorize.__file__).parents[1])}
    killer = subprocess.Popen([*program, "ingest", str(home.root), str(STEPS), "2026", str(stop)], env=environ)
    writers = [
        subprocess.Popen([*program, "write", str(home.root), str(number), str(CAPTURES), str(STEPS)], env=environ)
        for number in range(WRITERS)
    ]
    try:
        end = time.monotonic() + PATIENCE_S
        while any(writer.poll() is None for writer in writers) and time.monotonic() < end:
            assert killer.poll() is None, "the ingester gave up"
            time.sleep(0.05)
        assert [writer.poll() for writer in writers] == [0] * WRITERS
        stop.touch()
        assert killer.wait(PATIENCE_S) == 0
    finally:
        for process in (killer, *writers):
            process.kill()
            process.wait()
