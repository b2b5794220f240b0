"""State directories on disk that share a store, and a real sshd on the loopback between them."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import memorize
from memorize.bootstrap import App, keeping, open_app
from memorize.sync import keys
from memorize.sync.keys import offer

PATIENCE_S = 120.0
_SOURCE = str(Path(memorize.__file__).parent.parent)


def device(root: Path, of: App | None = None) -> App:
    """Return a new state directory, of the same store as ``of``."""
    made = open_app({"MEMORIZE_HOME": str(root)})
    made.identity  # noqa: B018 - made at the first use
    (made.home.hook / "nodaemon").touch()
    if of is not None:
        keeping.take(made, offer(keeping.keyring(of)))
    made.reader()
    return made


def ring(app: App) -> keys.Keyring:
    return keeping.keyring(app)


def serve_words(root: Path) -> list[str]:
    """Return the command that serves a state directory."""
    told = {"MEMORIZE_HOME": str(root), "PYTHONPATH": _SOURCE, "PYTHONSAFEPATH": "1"}
    return ["env", *(f"{name}={value}" for name, value in told.items()), sys.executable, "-m", "memorize", "serve"]


def serve_command(root: Path) -> str:
    """Return the same as the other side's shell is given it."""
    return shlex.join([*serve_words(root), "--stdio"])


class Sshd(NamedTuple):
    """A server of one's own: how ssh finds it."""

    address: str
    options: tuple[str, ...]


@contextlib.contextmanager
def sshd(folder: Path, host: str = "127.0.0.1", within: tuple[str, ...] = ()) -> Iterator[Sshd]:
    """Run a real sshd with keys, port and settings of its own; ``within``: a command that runs it elsewhere."""
    program = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        pytest.skip("there is no sshd, or no ssh, on this machine")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    port = _free_port()
    server, client = folder / "sshd_config", folder / "ssh_config"
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    kind, key, *_ = (folder / "host.pub").read_text("ascii").split()
    (folder / "known_hosts").write_text(f"[{host}]:{port} {kind} {key}\n", "ascii")
    server.write_text(
        f"ListenAddress {host}:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized_keys\n"
        "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n",
        "utf-8",
    )
    client.write_text(
        f"IdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known_hosts\n"
        "StrictHostKeyChecking yes\nServerAliveInterval 15\n",
        "utf-8",
    )
    with _separation(), (folder / "log").open("wb") as log:
        command = [*within, program, "-D", "-e", "-f", str(server)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            reach = ["ssh", "-F", str(client), "-o", "BatchMode=yes", "-p", str(port), host, "true"]
            _wait_for(process, [*within, *reach], folder / "log")
            yield Sshd(f"ssh://{host}:{port}", ("-F", str(client)))
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _separation() -> Iterator[None]:
    """Have the empty directory that sshd wants when root runs it; it is made at boot where sshd is a service."""
    wanted = Path("/run/sshd")
    if os.geteuid() == 0:
        wanted.mkdir(mode=0o755, exist_ok=True)
    yield


def _wait_for(process: subprocess.Popen[bytes], reach: list[str], log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        tried = subprocess.run(reach, stdin=subprocess.DEVNULL, capture_output=True)
        if tried.returncode == 0:
            return
        if process.poll() is not None or time.monotonic() > end or b"Permission denied" in tried.stderr:
            said = log.read_text("utf-8", "replace") + tried.stderr.decode("utf-8", "replace")
            pytest.skip(f"sshd cannot be used here: {said.strip()[-300:]}")
        time.sleep(0.1)
