from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memorize.bootstrap import App
from memorize.errors import BadTarget, CannotRun
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


@pytest.mark.slow
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


def test_a_peer_that_cannot_be_reached_is_told_with_the_words_of_ssh(tmp_path: Path, server: Sshd) -> None:
    app = device(tmp_path / "home")
    missing = sync_peer(server.address, app.holding, ring(app), command="no-such-program serve", options=server.options)
    assert (missing.converged, missing.code) == (False, "unreachable")
    assert "no-such-program" in missing.reason
    (tmp_path / "sshd" / "known_hosts").write_text("")
    stranger = over(server, app, tmp_path / "other")
    assert stranger.code == "unreachable"
    assert "verification failed" in stranger.reason


def test_another_key_is_refused_over_ssh_and_nothing_is_written(tmp_path: Path, server: Sshd) -> None:
    mine, other = filled(tmp_path / "mine", 3), filled(tmp_path / "other", 3)
    before = mine.holding.digest(), other.holding.digest()
    report = over(server, mine, other.home.root)
    assert (report.converged, report.code) == (False, "store")
    assert (mine.holding.digest(), other.holding.digest()) == before


def test_a_greeting_of_the_login_shell_does_not_disturb(tmp_path: Path, server: Sshd) -> None:
    mine = filled(tmp_path / "mine", 3)
    other = filled(tmp_path / "other", 0, mine)
    noisy = f"echo 안녕하세요; {serve_command(other.home.root)}"
    report = sync_peer(server.address, mine.holding, ring(mine), command=noisy, options=server.options)
    assert report.converged, report
    endless = sync_peer(server.address, mine.holding, ring(mine), command="yes", options=server.options)
    assert endless.code == "unreachable"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssh://host", ["--", "host", ssh.parse_address("ssh://host").command]),
        ("ssh://me@host:2222", ["-p", "2222", "--", "me@host", ssh.parse_address("ssh://host").command]),
        ("ssh://host/opt/a b", None),
        ("ssh://host/opt/memorize", ["--", "host", "/opt/memorize serve --stdio"]),
        ("ssh://host/~/bin/memorize", ["--", "host", "~/bin/memorize serve --stdio"]),
        ("ssh://host/opt/$(rm)", ["--", "host", "'/opt/$(rm)' serve --stdio"]),
        ("ssh://[fe80::1]:22", ["-p", "22", "--", "fe80::1", ssh.parse_address("ssh://host").command]),
        ("ssh://-oProxyCommand=sh", None),
        ("ssh://-l@host", None),
        ("ssh://host:99999", None),
        ("ssh://", None),
        ("host", None),
    ],
)
def test_an_address_becomes_one_ssh_command_or_is_refused(text: str, words: list[str] | None) -> None:
    if words is None:
        with pytest.raises(BadTarget):
            ssh.parse_address(text)
        return
    address = ssh.parse_address(text)
    assert ssh.words(address, asks=True) == ["ssh", "-T", *words]
    assert ssh.words(address, asks=False)[2:4] == ["-o", "BatchMode=yes"]


def test_a_machine_without_ssh_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = device(tmp_path / "home")
    keys = ring(app)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRun, match="ssh"):
        sync_peer("ssh://host", app.holding, keys)
