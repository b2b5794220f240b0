"""Hosts on one machine: network namespaces joined by a bridge, each cable of which can be pulled. Needs root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest


class Host(NamedTuple):
    """One host: its address, and the command that runs others on it."""

    number: int
    address: str
    on: tuple[str, ...]


class Network(NamedTuple):
    """A switch and its hosts."""

    switch: tuple[str, ...]
    hosts: tuple[Host, ...]

    def cable(self, host: Host, *, plugged: bool) -> None:
        """Pull a host's cable, or plug it in again."""
        _run(*self.switch, "ip", "link", "set", f"port{host.number}", "up" if plugged else "down")


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)


@contextlib.contextmanager
def network(count: int) -> Iterator[Network]:
    """Yield a network of so many hosts; skip the test where there can be none."""
    if os.name != "posix" or os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        pytest.skip("network namespaces need root, ip, unshare and nsenter")
    with contextlib.ExitStack() as stack:
        try:
            spaces = [stack.enter_context(_space()) for _ in range(count + 1)]
            switch, *others = spaces
            on = tuple(_on(switch))
            _run(*on, "ip", "link", "add", "switch", "type", "bridge")
            _run(*on, "ip", "link", "set", "switch", "up")
            hosts = tuple(_host(on, number, space) for number, space in enumerate(others, 1))
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", b"") or str(error).encode()
            pytest.skip(f"there can be no network namespaces here: {said.decode('utf-8', 'replace').strip()}")
        yield Network(on, hosts)


@contextlib.contextmanager
def _space() -> Iterator[int]:
    """Yield the number of a process that keeps a network of its own."""
    words = ["unshare", "--net", "sh", "-c", "echo ready; exec sleep 3600"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise OSError("unshare failed")
        yield process.pid
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _on(space: int) -> list[str]:
    return ["nsenter", "--target", str(space), "--net", "--"]


def _host(switch: tuple[str, ...], number: int, space: int) -> Host:
    on, address, port = _on(space), f"10.77.0.{number}", f"port{number}"
    _run(*switch, "ip", "link", "add", port, "type", "veth", "peer", "name", "cable", "netns", str(space))
    _run(*switch, "ip", "link", "set", port, "master", "switch", "up")
    _run(*on, "ip", "address", "add", f"{address}/24", "dev", "cable")
    for name in ("cable", "lo"):
        _run(*on, "ip", "link", "set", name, "up")
    return Host(number, address, tuple(on))
