r"""Start, find and stop the daemon. Liveness is an OS lock that it holds plus an answer on its socket, never a pid.

The socket's place is computed from the state directory alone, so that every client and every environment agrees.
Protocol (docs/format.md): one line in, ``<decimal length>\n<bytes>`` out, then the connection closes.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgpack

from memorize import __version__
from memorize.agents.hookfiles import daemon_program, kept
from memorize.capture.memorize_hook import socket_path
from memorize.errors import DaemonStays, NoDaemon
from memorize.log.lock import Lock
from memorize.paths import Home

ASK_S: Final = 2.0
START_S: Final = 20.0
# Longer than a daemon that was asked to leave waits for its own last batch.
STOP_S: Final = 20.0
REPLY_BYTES_MAX: Final = 1 << 20
_PAUSE_S: Final = 0.02


class Running(NamedTuple):
    """What a daemon tells of itself. ``late``: answers that came too late to be of use; ``failure``: the last one."""

    version: str
    pid: int = 0
    since_s: int = 0
    answers: int = 0
    ingested: int = 0
    memory_kib: int = 0
    late: int = 0
    failures: int = 0
    failure: str = ""


def endpoint(home: Home) -> str:
    """Return the path of the daemon's socket for this state directory."""
    return str(socket_path(str(home.root)))


def daemon_lock(home: Home) -> Lock:
    """Return the lock that the one serving daemon holds."""
    return Lock(home.locks / "daemon")


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
    """Return what the running daemon says of itself, or None. Other versions may tell more, or less."""
    reply = ask(home, b"S")
    if reply is None:
        return None
    try:
        facts: Any = msgpack.unpackb(reply)
    except (ValueError, msgpack.UnpackException):
        facts = None
    told = facts if isinstance(facts, dict) else {}
    defaults = Running("unknown")._asdict()
    known = {name: told[name] for name, default in defaults.items() if type(told.get(name)) is type(default)}
    return Running(**{**defaults, **known})


def peering(home: Home) -> dict[str, Any]:
    """Return how it stands with the paired devices, as the daemon tells; empty when none runs or none is paired."""
    reply = ask(home, b"P")
    try:
        found: Any = msgpack.unpackb(reply) if reply else {}
    except (ValueError, msgpack.UnpackException):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("peers"), list) else {}


def is_older(running: Running) -> bool:
    """Tell whether the daemon is of an older version than this program; one that cannot say counts as old."""
    return order(running.version) < order(__version__)


def order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, by which one is older than another."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:4])


def look(home: Home) -> Running | None:
    """Return the status like ``status``, but ask a daemon of an older version to leave; None when it was asked."""
    running = status(home)
    if running is not None and is_older(running):
        ask(home, b"Q")
        return None
    return running


def start(home: Home) -> Running:
    """Return the status of a daemon that is up, started when there is none, renewed when it is older than we are.

    Raises NoDaemon when it does not come up, DaemonStays when an old one does not leave.
    """
    running = status(home)
    if running is not None and is_older(running):
        stop(home)
        running = None
    if running is None:
        spawn(home)
        running = wait_until_up(home, START_S)
    if running is None:
        raise NoDaemon(seconds=int(START_S), detail=_why_not(home))
    return running


def _why_not(home: Home) -> str:
    if not hasattr(socket, "AF_UNIX"):
        return "this system has no Unix sockets; every verb works without it"
    return "another process holds its lock but does not answer" if is_locked(home) else "it left at once"


def spawn(home: Home, environ: Mapping[str, str] | None = None) -> None:
    """Start the daemon, fully detached from the caller, without waiting for it.

    All three streams are on the null device, other descriptors are closed, the session is its own and the environment
    is the person's: whoever starts it can reach end-of-file and leave at once, and leaves no marks of its own in it.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", daemon_program(), "serve"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/" if os.name == "posix" else None,
        close_fds=True,
        start_new_session=True,
        env={**kept(os.environ if environ is None else environ), "MEMORIZE_HOME": str(home.root)},
    )
    process.returncode = 0  # nobody waits for it


def wait_until_up(home: Home, timeout_s: float = START_S) -> Running | None:
    """Return the daemon's status as soon as it answers, or None after the time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        running = status(home)
        if running is not None:
            return running
        time.sleep(_PAUSE_S)
    return None


def is_locked(home: Home) -> bool:
    """Tell whether a daemon holds the lock, be it serving, leaving or stuck."""
    if not home.locks.is_dir():
        return False
    lock = daemon_lock(home)
    try:
        taken = lock.acquire()
    except OSError:  # where no lock can be opened, no daemon has one
        return False
    lock.release()
    return not taken


def stop(home: Home, timeout_s: float = STOP_S) -> bool:
    """Ask the daemon to leave and wait until it is gone; False when none ran. Raises DaemonStays."""
    asked = ask(home, b"Q") is not None
    if not asked and not is_locked(home):
        return False
    deadline = time.monotonic() + timeout_s
    while is_locked(home):
        if time.monotonic() >= deadline:
            raise DaemonStays(seconds=int(timeout_s), pid=_pid(home) or "unknown")
        time.sleep(_PAUSE_S)
    return True


def _pid(home: Home) -> int:
    """Return the process at the other end of the socket, for messages only; 0 when the system does not say."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(ASK_S)
            wire.connect(endpoint(home))
            return int.from_bytes(wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
    except (OSError, AttributeError):
        return 0
