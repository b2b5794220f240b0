"""Devices of one person on loopback: state directories, daemons as processes, verbs as a person types them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memorize.agents.hookfiles import put_hook_files
from memorize.bootstrap import App, keeping, meeting, open_app
from memorize.daemon import life
from memorize.paths import Home
from memorize.sync import keys, peers
from memorize.sync.peers import Address, Peer
from tests.children import environ, hear
from tests.daemon.kit import PATIENCE_S, until


def free_port() -> int:
    """Return a port that nobody listens at now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


class Device:
    """One state directory with its daemon and a project."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.home = Home(root / "h")
        self.project = root / "결제 서비스"
        self.project.mkdir(parents=True)
        self.port = free_port()
        self.environ = {**os.environ, "MEMORIZE_HOME": str(self.home.root)}
        put_hook_files(self.home, sys.executable)
        self.configure(listen="off")

    def configure(self, listen: str, idle_exit_s: int = 1_800) -> None:
        """Write config.toml; a daemon that runs leaves when it sees that."""
        self.home.config.write_text(
            f'[daemon]\nidle_exit_s = {idle_exit_s}\n[consolidate]\nextractor = "off"\n'
            f'[peers]\nname = "{self.name}"\nlisten = "{listen}"\nport = {self.port}\n',
            encoding="utf-8",
        )

    # -- the person -------------------------------------------------------------------------------------------------

    def begins(self, *words: str) -> subprocess.Popen[str]:
        """Begin a verb as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "memorize", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.project,
            env={**environ(), **self.environ},
            preexec_fn=hear,
        )

    def types(self, *words: str, given: str = "") -> tuple[int, str, str]:
        """Run a verb; return how it left and what it printed."""
        process = self.begins(*words)
        out, err = process.communicate(given, timeout=PATIENCE_S)
        return process.returncode, out, err

    def remembers(self, text: str) -> None:
        code, _, err = self.types("remember", text)
        assert code == 0, err

    # -- the daemon -------------------------------------------------------------------------------------------------

    def serves(self, listen: bool = False) -> None:
        """Have a daemon serve under this configuration."""
        self.configure("on" if listen else "off")
        self.stops()
        life.spawn(self.home, self.environ)
        assert life.wait_until_up(self.home, PATIENCE_S) is not None

    def stops(self) -> None:
        life.stop(self.home, PATIENCE_S)

    def is_up(self) -> bool:
        return life.status(self.home) is not None

    def state_of(self, other: Device) -> dict[str, Any]:
        """Return how the daemon says that it stands with another device."""
        name = other.certificate_name()
        return next((one for one in life.peering(self.home).get("peers", []) if one["fingerprint"] == name), {})

    # -- the memory -------------------------------------------------------------------------------------------------

    @contextmanager
    def app(self) -> Iterator[App]:
        parts = open_app(self.environ)
        try:
            yield parts
        finally:
            parts.close()

    def digest(self) -> tuple[str, str]:
        with self.app() as parts:
            found = parts.reader(drain=False).digest()
            return found.set, found.state

    def knows(self, text: str) -> bool:
        """Tell whether a memory with this text is held."""
        with self.app() as parts:
            connection = parts.reader(drain=False).connection
            return connection.execute("select 1 from memories where text = ?", (text,)).fetchone() is not None

    def ring(self) -> keys.Keyring:
        with self.app() as parts:
            return keeping.keyring(parts)

    def as_peer(self) -> Peer:
        """Return this device as another one knows it."""
        with self.app() as parts:
            certificate = meeting.own_certificate(parts).der
            return Peer(self.name, certificate, (Address("127.0.0.1", self.port),), parts.identity.device, 1)

    def certificate_name(self) -> str:
        return self.as_peer().fingerprint.hex()

    def meets(self, other: Device, *, keyed: bool = True) -> None:
        """Pair with another device without a code, as both would be afterwards; this one joins it when ``keyed``."""
        mine, theirs = self.as_peer(), other.as_peer()
        with self.app() as here, other.app() as there:
            if keyed:
                keeping.take(here, keys.offer(keeping.keyring(there)))
            peers.change(here.home, here.files, lambda known: peers.with_peer(known, theirs))
            peers.change(there.home, there.files, lambda known: peers.with_peer(known, mine))


def converged(*devices: Device) -> None:
    """Wait until all hold the same, and read the same out of it."""
    until(lambda: len({device.digest() for device in devices}) == 1, "equal digests")
