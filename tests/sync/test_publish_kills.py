"""A publisher that dies, or whose disk fails, at any step: nothing partial is seen, and the next one goes on."""

from __future__ import annotations

import errno
import shutil

import pytest

from memorize.log.files import RealFiles
from memorize.sync.catalog import Catalog
from memorize.sync.folder import RealFolder
from memorize.sync.pack import decode
from memorize.sync.packfile import OURS, probe
from memorize.sync.plan import PACE
from tests.counts import count
from tests.sync.places import DAY, SECRET, Machine
from tests.sync.test_folder import Failing, Killed

SMALL = PACE._replace(fan=(3, 2, 2))
STRIDE = count("steps of a publisher between two kills", quick=7, full=2)


def _work(machine: Machine) -> None:
    """Publish, merge and tidy, so that every kind of step is among them."""
    for number in range(7):
        machine.write(f"{number} 기억")
        machine.sync(SMALL)
    for _ in range(9):
        machine.wall += DAY
        machine.sync(SMALL._replace(pause=DAY))


@pytest.mark.parametrize("across", [False, True], ids=["one file system", "two file systems"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), Killed()], ids=["full disk", "kill"])
def test_every_step_of_a_publisher(ram, across, error):
    step, kinds = 1, set()
    while True:
        root = ram / f"{step}"
        files = Failing(step, error, across=across)
        a, b = Machine(root, "A", root / "f", files=files), Machine(root, "B", root / "f")
        a.catalog = Catalog.open(a.home / "sync.sqlite", "f")
        try:
            _work(a)
            paused = False
        except Killed:
            paused = True
        a.catalog.close()
        if files.calls < step:
            assert not paused
            break
        for path in a.packs():
            if path.name.startswith("~"):
                continue
            assert probe(path.read_bytes()).state == OURS
            list(decode(path.read_bytes(), lambda _: SECRET).envelopes)
            kinds.add(path.name[0])
        a.catalog = Catalog.open(a.home / "sync.sqlite", "f")
        a.folder = RealFolder(str(a.path), str(a.home / "outbox"), RealFiles())
        a.write("after it")
        report = a.sync(SMALL)
        assert report.paused == ""
        b.sync(SMALL)
        assert a.holding.digest() == b.holding.digest()
        assert not list((a.home / "outbox").iterdir())
        assert not [path for path in a.own() if path.name.startswith("~")]
        a.catalog.close()
        shutil.rmtree(root)
        step += STRIDE
    assert len(kinds) >= 2
    assert step > 100
