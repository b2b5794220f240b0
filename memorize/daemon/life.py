r"""Start, find and stop the daemon. Liveness is an OS lock that it holds plus an answer on its socket, never a pid.

The socket's place is computed from the state directory alone, so that every client and every environment agrees.
Protocol (docs/format.md): one line in, ``<decimal length>\n<bytes>`` out, then the connection closes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import Any, Final, NamedTuple

import msgpack

from memorize.capture.memorize_hook import socket_path
from memorize.paths import Home

ASK_S: Final = 2.0
STOP_S: Final = 10.0
REPLY_BYTES_MAX: Final = 1 << 20


class Running(NamedTuple):
    """What a daemon tells of itself."""

    version: str
    pid: int
    since_s: int
    answers: int
    ingested: int
    memory_kib: int


def endpoint(home: Home) -> str:
    """Return the path of the daemon's socket for this state directory."""
    return str(socket_path(str(home.root)))


def ask(home: Home, line: bytes, timeout_s: float = ASK_S) -> bytes | None:
    """Send one request line and return the reply; None when there is no daemon or no whole answer in time."""
    deadline = time.monotonic() + timeout_s
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(timeout_s)
            wire.connect(endpoint(home))
            wire.sendall(line + b"\n")
            return _reply(wire, deadline)
    except (OSError, ValueError, AttributeError):  # AttributeError: a platform without Unix sockets
        return None


def _reply(wire: socket.socket, deadline: float) -> bytes | None:
    received = b""
    while len(received) < REPLY_BYTES_MAX:
        wire.settimeout(max(0.001, deadline - time.monotonic()))
        part = wire.recv(65_536)
        if not part:
            break
        received += part
    size, newline, body = received.partition(b"\n")
    return body if newline and len(body) == int(size) else None


def status(home: Home) -> Running | None:
    """Return what the running daemon says of itself, or None."""
    reply = ask(home, b"S")
    if reply is None:
        return None
    facts: Any = msgpack.unpackb(reply)
    return Running(*facts) if isinstance(facts, list) and len(facts) == len(Running._fields) else None


def start(home: Home, mode: str = "serve") -> None:
    """Start the daemon (or, with ``once``, one round of its work), fully detached from the caller.

    All three streams are on the null device, other descriptors are closed and the session is its own: a hook or a
    terminal that starts it can reach end-of-file and leave at once.
    """
    subprocess.Popen(
        [sys.executable, "-I", "-m", "memorize.daemon.serve", mode],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/" if os.name == "posix" else None,
        close_fds=True,
        start_new_session=True,
        env={**os.environ, "MEMORIZE_HOME": str(home.root)},
    )


def wait_until_up(home: Home, timeout_s: float = 10.0) -> Running | None:
    """Return the daemon's status as soon as it answers, or None after the time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        running = status(home)
        if running is not None:
            return running
        time.sleep(0.05)
    return None


def stop(home: Home, timeout_s: float = STOP_S) -> bool:
    """Ask the daemon to leave and wait for it; True when none runs afterwards."""
    if ask(home, b"Q") is None:
        return status(home) is None
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if status(home) is None:
            return True
        time.sleep(0.05)
    return False
