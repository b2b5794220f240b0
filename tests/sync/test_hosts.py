from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import NamedTuple

import pytest

from memorize.bootstrap import App
from memorize.sync import ssh
from memorize.sync.handshake import Role
from memorize.sync.peer import PeerReport, sync_stream
from memorize.sync.transport import Progress
from tests.counts import count
from tests.sync.devices import Sshd, device, ring, serve_command, sshd
from tests.sync.hosts import Host, network
from tests.sync.peers import Pen

EVENTS = count("peers: events of a host whose link is cut", quick=2_500, full=10_000)


# What a server has started ends with it, also when it cannot hear that the other side is gone.
_ALL_END = ("unshare", "--pid", "--fork", "--kill-child")


class Machine(NamedTuple):
    """A host with a memory and an ssh server."""

    host: Host
    app: App
    server: Sshd


def sync(one: Machine, other: Machine, progress: Progress = lambda *_: None, idle_s: float = 120.0) -> PeerReport:
    """Let ``one`` go to ``other`` by ssh."""
    address = ssh.parse_address(other.server.address, serve_command(other.app.home.root))
    words = [*one.host.on, *ssh.words(address, asks=False, options=other.server.options)]
    return sync_stream(ssh.Child(words).stream, one.app.holding, ring(one.app), Role.INITIATOR, progress, idle_s)


@pytest.mark.slow
def test_three_hosts_become_equal_though_a_cable_is_pulled_in_the_middle_of_a_session(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(3))
        machines: list[Machine] = []
        for host in net.hosts:
            folder = tmp_path / f"host{host.number}"
            server = stack.enter_context(sshd(folder / "sshd", host.address, (*host.on, *_ALL_END)))
            app = device(folder / "기억", machines[0].app if machines else None)
            stack.callback(app.close)
            app.holding.receive(Pen(lamport=host.number).many(300))
            machines.append(Machine(host, app, server))
        first, second, third = machines
        pen = Pen(lamport=9)
        for _ in range(0, EVENTS, 500):
            third.app.holding.receive([pen.write(secrets.token_urlsafe(2_400), "later.kind") for _ in range(500)])
        assert sync(first, second).converged

        def pull(moved: int, _: int) -> None:
            if moved > 600:
                net.cable(third.host, plugged=False)

        cut = sync(first, third, pull, idle_s=15.0)
        assert (cut.converged, cut.code) == (False, "idle"), cut
        held = first.app.holding.digest().events
        assert held > 600
        assert not sync(second, third, idle_s=1.0).converged
        net.cable(third.host, plugged=True)
        again = sync(first, third)
        assert again.converged, again
        assert again.received < EVENTS
        for pair in ((second, third), (third, first), (first, second)):
            assert sync(*pair).converged
        assert len({machine.app.holding.digest() for machine in machines}) == 1
        assert len({machine.app.reader().digest() for machine in machines}) == 1
