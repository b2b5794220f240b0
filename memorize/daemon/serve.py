"""The daemon: answers hooks from memory and ingests what they drop. A shell around what every verb also does.

Two threads: this one owns the socket and a read-only view of the index; the other one ingests, consolidates at
boundaries and renders briefs. Neither waits for the other, so a large backlog never delays an answer.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgpack

from memorize import __version__
from memorize.bootstrap import App, open_app
from memorize.capture.memorize_hook import own_directory
from memorize.daemon.answer import Answerer
from memorize.daemon.life import endpoint
from memorize.errors import BadHome, Problem
from memorize.log.lock import Lock

POLL_S: Final = 0.25
REQUEST_S: Final = 0.2
REQUEST_BYTES_MAX: Final = 4_096
CONNECTIONS_MAX: Final = 64
# A blocked thread is woken within this time, so an answer is not held up by a batch that is being indexed.
SWITCH_S: Final = 0.001


class Ingesting(threading.Thread):
    """Ingests whenever the spool holds something; consolidates after boundaries. Errors are counted, never fatal."""

    def __init__(self, app: App, quiet: Callable[[], float]) -> None:
        """``quiet`` tells for how many seconds nothing has happened; this thread resets it by working."""
        super().__init__(name="ingest", daemon=True)
        self.app = app
        self.leave = threading.Event()
        self.wake = threading.Event()
        self.ingested = 0
        self.failures = 0
        self.worked_at = time.monotonic()
        self._quiet = quiet

    def run(self) -> None:
        """Work until told to leave."""
        while not self.leave.is_set():
            try:
                worked = self.app.work_once()
            except (Problem, OSError):
                # A full disk or a locked index passes; the captures wait in the spool meanwhile.
                self.failures += 1
                worked = 0
                self.leave.wait(1.0)
            if worked:
                self.ingested += worked
                self.worked_at = time.monotonic()
            else:
                self.wake.wait(POLL_S)
                self.wake.clear()


class Server:
    """The socket loop. One request a connection; every request has a deadline of its own."""

    def __init__(self, app: App) -> None:
        """Bind the socket; the caller holds the daemon lock, so a file that is there already is stale."""
        self.app = app
        self.started = time.monotonic()
        self.asked_at = self.started
        self.answers = 0
        self.leaving = False
        self.ingesting = Ingesting(app, self.quiet_s)
        self.answerer = Answerer(app)
        self.path = Path(endpoint(app.home))
        _own_folder(self.path.parent)
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            self.listener.bind(str(self.path))
        finally:
            os.umask(mask)
        self.listener.listen(CONNECTIONS_MAX)
        self.listener.setblocking(False)

    def quiet_s(self) -> float:
        """Seconds since the last request or the last ingested event."""
        return time.monotonic() - max(self.asked_at, self.ingesting.worked_at)

    def run(self, idle_exit_s: float) -> None:
        """Serve until asked to leave or idle for so long."""
        self.ingesting.start()
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener, selectors.EVENT_READ)
            while not self.leaving and self.quiet_s() < idle_exit_s:
                for _ in selector.select(timeout=min(1.0, idle_exit_s)):
                    self._accept()
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            wire, _ = self.listener.accept()
            with wire:
                wire.settimeout(REQUEST_S)
                self._serve(wire)

    def _serve(self, wire: socket.socket) -> None:
        line = b""
        while not line.endswith(b"\n") and len(line) < REQUEST_BYTES_MAX:
            part = wire.recv(REQUEST_BYTES_MAX)
            if not part:
                return
            line += part
        self.asked_at = time.monotonic()
        reply = self._reply(line.strip())
        wire.sendall(b"%d\n" % len(reply) + reply)

    def _reply(self, line: bytes) -> bytes:
        verb, _, rest = line.partition(b" ")
        if verb == b"A":
            self.answers += 1
            reply = self.answerer.answer(rest.decode("ascii", "replace"))
            self.ingesting.wake.set()
            return reply
        if verb == b"Q":
            self.leaving = True
            return b"bye"
        if verb == b"S":
            return self._status()
        return b""

    def _status(self) -> bytes:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        since = int(time.monotonic() - self.started)
        packed: bytes = msgpack.packb(
            [__version__, os.getpid(), since, self.answers, self.ingesting.ingested, memory],
        )
        return packed

    def close(self) -> None:
        """Take the socket away first, so that nobody waits for an answer that will not come."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.listener.close()
        self.ingesting.leave.set()
        self.ingesting.wake.set()
        self.ingesting.join(timeout=10.0)
        self.answerer.close()


def _own_folder(folder: Path) -> None:
    """Make the socket's folder, or refuse one that is not ours alone: anybody may write below ``/tmp``."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not own_directory(str(folder)):
        raise BadHome(path=folder, detail="others may enter the folder of the daemon's socket")


def main(arguments: list[str] | None = None) -> int:
    """Serve (``serve``), or do one round of work and leave (``once``). Silent: there is nobody to read."""
    mode = (sys.argv[1:] if arguments is None else arguments or ["serve"])[:1]
    sys.setswitchinterval(SWITCH_S)
    app = open_app(os.environ)
    if mode == ["once"]:
        while app.work_once():
            pass
        return 0
    lock = Lock(app.home.locks / "daemon")
    if not lock.acquire():
        return 0
    try:
        Server(app).run(app.config.idle_exit_s)
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
