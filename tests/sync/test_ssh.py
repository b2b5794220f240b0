from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memorize.bootstrap import App
from memorize.sync import ssh
from memorize.sync.handshake import Role
from memorize.sync.peer import PeerReport, sync_peer, sync_stream
from tests.counts import count, note
from tests.sync.devices import Sshd, device, ring, serve_command, sshd
from tests.sync.peers import Pen

FIRST_SYNC = count("peers: events of a first sync over ssh", quick=3_000, full=100_000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path / "sshd") as running:
        yield running


def over(server: Sshd, app: App, other: Path, **options: object) -> PeerReport:
    command = serve_command(other)
    return sync_peer(server.address, app.holding, ring(app), command=command, options=server.options, **options)


def filled(root: Path, events: int, of: App | None = None) -> App:
    app = device(root, of)
    pens = [Pen(writer=bytes([number]) * 16) for number in (3, 4, 5)]
    for _ in range(0, events, 3_000):
        app.holding.receive([pen.write() for _ in range(min(events, 1_000)) for pen in pens][:events])
    return app


def test_over_real_ssh_an_empty_device_gets_everything_though_the_link_is_cut_meanwhile(
    tmp_path: Path, server: Sshd
) -> None:
    full = filled(tmp_path / "full home", FIRST_SYNC)
    empty = device(tmp_path / "빈 기기", full)
    wanted = full.holding.digest()
    assert wanted.events >= FIRST_SYNC
    begun = time.monotonic()
    chance, before, runs = random.Random(FIRST_SYNC), empty.holding.digest().events, 0
    for part in range(3):
        end = chance.uniform(0.1, 0.3) * wanted.events
        words = ssh.words(
            ssh.parse_address(server.address, serve_command(full.home.root)), asks=False, options=server.options
        )
        child = ssh.Child(words)

        def cut(moved: int, _: int, child: ssh.Child = child, end: float = end) -> None:
            if moved > end:
                os.kill(child.pid, signal.SIGKILL)

        report = sync_stream(child.stream, empty.holding, ring(empty), Role.INITIATOR, cut)
        held = empty.holding.digest().events
        assert held >= before, part
        before, runs = held, runs + 1
        if not report.converged:
            assert report.code == "closed"
    assert over(server, empty, full.home.root).converged
    note(f"peers: {wanted.events:,} events over ssh in {runs + 1} runs, {time.monotonic() - begun:.1f} s")
    assert empty.holding.digest() == full.holding.digest() == wanted
    again = over(server, empty, full.home.root)
    assert again.converged
    assert (again.sent, again.received, again.turns) == (0, 0, 1)
