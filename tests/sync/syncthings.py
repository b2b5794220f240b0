"""Two real Syncthing processes on the loopback: no discovery, no relays, no browser, no word to anybody else."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pytest

PATIENCE_S = 240.0
_FOLDER = "memorize-test"


class Node(NamedTuple):
    """One process: the folder that it keeps, and how to ask it."""

    folder: Path
    identity: str
    api: str
    key: str

    def ask(self, path: str, *, post: bool = False) -> dict[str, object]:
        """Return what it answers. Raises OSError while it does not."""
        request = urllib.request.Request(
            f"http://{self.api}/rest/{path}", headers={"X-API-Key": self.key}, method="POST" if post else "GET"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            raw = answer.read()
        return json.loads(raw) if raw.strip() else {}

    def scan(self) -> None:
        """Have it look at its folder now."""
        with contextlib.suppress(OSError):
            self.ask(f"db/scan?folder={_FOLDER}", post=True)


@contextlib.contextmanager
def syncthings(root: Path, folders: Sequence[Path]) -> Iterator[list[Node]]:
    """Run one Syncthing a folder, all connected with each other."""
    program = shutil.which("syncthing")
    if program is None:
        pytest.skip("there is no syncthing on this machine")
    homes = [root / f"syncthing {number}" for number in range(len(folders))]
    names = [_made(program, home) for home in homes]
    ports = _free_ports(2 * len(folders))
    nodes = [
        Node(folder, name, f"127.0.0.1:{ports[2 * at + 1]}", secrets.token_hex(16))
        for at, (folder, name) in enumerate(zip(folders, names, strict=True))
    ]
    addresses = {node.identity: f"tcp://127.0.0.1:{ports[2 * at]}" for at, node in enumerate(nodes)}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for home, node in zip(homes, nodes, strict=True):
            (home / "config.xml").write_text(_config(node, addresses), "utf-8")
            running.append(_started(program, home))
        _wait_until_connected(nodes, running, homes)
        yield nodes
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _made(program: str, home: Path) -> str:
    """Make keys for a process and return the name that follows from them."""
    home.mkdir(parents=True)
    options = ["--home", str(home), "--no-default-folder"]
    made = subprocess.run([program, "generate", *options], env=_environ(home), capture_output=True, check=False)
    if made.returncode:
        subprocess.run([program, "--generate", str(home)], env=_environ(home), capture_output=True, check=True)
    told = subprocess.run(
        [program, "--device-id", "--home", str(home)], env=_environ(home), capture_output=True, check=True
    )
    found = re.search(rb"\b(?:[A-Z2-7]{7}-){7}[A-Z2-7]{7}\b", told.stdout)
    assert found is not None, told
    return found.group().decode("ascii")


def _started(program: str, home: Path) -> subprocess.Popen[bytes]:
    command = [program, "serve", "--home", str(home), "--no-browser", "--no-restart", "--no-upgrade"]
    with (home / "output").open("wb") as output:
        return subprocess.Popen(
            command, env=_environ(home), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )


def _environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "STNOUPGRADE": "1", "STNORESTART": "1", "GOMAXPROCS": "1"}


def _config(node: Node, addresses: dict[str, str]) -> str:
    """Return the settings of one process. Every switch that could reach beyond the loopback is off."""
    members = "".join(f"<device id={quoteattr(name)}/>" for name in addresses)
    devices = "".join(
        f'<device id={quoteattr(name)} name="d" compression="metadata"><address>{escape(address)}</address></device>'
        for name, address in addresses.items()
    )
    return f"""<configuration version="36">
<folder id="{_FOLDER}" path={quoteattr(str(node.folder))} type="sendreceive" rescanIntervalS="10"
 fsWatcherEnabled="true" fsWatcherDelayS="1">{members}<minDiskFree unit="">0</minDiskFree></folder>
{devices}
<gui enabled="true" tls="false"><address>{node.api}</address><apikey>{node.key}</apikey></gui>
<options>
<listenAddress>{escape(addresses[node.identity])}</listenAddress>
<globalAnnounceEnabled>false</globalAnnounceEnabled><localAnnounceEnabled>false</localAnnounceEnabled>
<relaysEnabled>false</relaysEnabled><natEnabled>false</natEnabled><startBrowser>false</startBrowser>
<urAccepted>-1</urAccepted><autoUpgradeIntervalH>0</autoUpgradeIntervalH>
<crashReportingEnabled>false</crashReportingEnabled><reconnectionIntervalS>2</reconnectionIntervalS>
<setLowPriority>false</setLowPriority><minHomeDiskFree unit="">0</minHomeDiskFree>
</options></configuration>
"""


def _wait_until_connected(
    nodes: Sequence[Node], running: Sequence[subprocess.Popen[bytes]], homes: Sequence[Path]
) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        for process, home in zip(running, homes, strict=True):
            assert process.poll() is None, (home / "output").read_text("utf-8", "replace")[-2_000:]
        with contextlib.suppress(OSError, KeyError, TypeError):
            if all(_is_connected(node) for node in nodes):
                return
        assert time.monotonic() < end, [(home / "output").read_text("utf-8", "replace")[-1_000:] for home in homes]
        time.sleep(0.2)


def _is_connected(node: Node) -> bool:
    found = node.ask("system/connections")["connections"]
    assert isinstance(found, dict)
    others = {name: one for name, one in found.items() if name != node.identity}
    return bool(others) and all(one["connected"] for one in others.values())


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
