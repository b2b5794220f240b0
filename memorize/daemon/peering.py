"""Exchange with paired devices while the daemon runs: connects to them, lets them in, passes news on within a second.

One thread looks after all of it, one more serves each connection with parts of its own. Whatever goes wrong with a peer
is shown by ``memorize peer list`` and hinders nobody else: capture does not know of any of this.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from memorize.bootstrap import App, meeting
from memorize.daemon.peerlink import Link
from memorize.sync import keys, lan, peers, tls
from memorize.sync.handshake import Role
from memorize.sync.peers import Peer

TICK_S: Final = 0.25
IN_MAX: Final = 24
BACKOFF_S_MAX: Final = 60.0
# Both sides of a pair may dial; the one with the greater fingerprint lets the other one try first.
_SECOND_S: Final = 2.0
LEAVE_S: Final = 5.0
_REASON_CHARS_MAX: Final = 200

CONNECTED: Final = "connected"
CONNECTING: Final = "connecting"
WAITING: Final = "waiting"


class State:
    """How it stands with one peer. Written by its links, read by whoever asks."""

    def __init__(self, name: str) -> None:
        """Nothing has happened yet."""
        self.name = name
        self.reason = ""
        self.dialling = False
        self.failed = 0
        self.due = time.monotonic()
        self.converged: bool | None = None
        self.sent = self.received = self.last_ms = 0

    def told(self, fingerprint: bytes, connected: bool) -> dict[str, Any]:
        """Return what ``memorize peer list`` shows."""
        state = CONNECTED if connected else CONNECTING if self.dialling else WAITING
        return {
            "fingerprint": fingerprint.hex(),
            "name": self.name,
            "state": state,
            "reason": "" if connected else self.reason,
            "converged": self.converged if connected else None,
            "sent": self.sent,
            "received": self.received,
            "last_ms": self.last_ms,
        }

    def put_off(self) -> None:
        """Try again later, and later still the next time."""
        self.failed += 1
        self.due = time.monotonic() + min(BACKOFF_S_MAX, 2.0 ** min(self.failed, 10)) * random.uniform(0.7, 1.0)


class Peering(threading.Thread):
    """Looks after the connections to all paired devices."""

    def __init__(self, app: App, fresh: Callable[[], App]) -> None:
        """``app`` tells home and configuration only; ``fresh`` makes parts for one thread."""
        super().__init__(name="peers", daemon=True)
        self.leave = threading.Event()
        self.failure = ""
        self.refused = 0  # connections that were no peer's
        self._app = app
        self._fresh = fresh
        self._lock = threading.Lock()
        self._paired: dict[bytes, Peer] = {}
        self._states: dict[bytes, State] = {}
        self._links: dict[Link, None] = {}
        self._listener: socket.socket | None = None
        self._listen_due = 0.0
        self._coming = 0
        self._stamps: tuple[object, object] = (None, None)
        self._digest: object = None
        self._mine = b""

    @staticmethod
    def wanted(app: App) -> bool:
        """Tell whether any device is paired; costs one look at the disk."""
        return app.home.peers.exists()

    def status(self) -> dict[str, Any]:
        """Return how it stands with each peer, and with the port."""
        with self._lock:
            up = self._up()
            told = [state.told(name, name in up) for name, state in self._states.items() if name in self._paired]
        listening = self._listener is not None
        return {"peers": told, "listening": listening, "refused": self.refused, "failure": self.failure}

    def _up(self) -> set[bytes]:
        return {link.peer for link in self._links if link.trusted and link.peer is not None}

    def run(self) -> None:
        """Work until told to leave, or until no device is paired any more."""
        own = self._fresh()
        try:
            while not self.leave.wait(TICK_S) and self.wanted(self._app):
                try:
                    self._look(own)
                except Exception as error:
                    # A file that cannot be read passes, and a mistake of ours must not end what goes well.
                    self.failure = f"{type(error).__name__}: {error}"[:_REASON_CHARS_MAX]
                    own.close()
                    self.leave.wait(1.0)
        finally:
            self._end(own)

    def _end(self, own: App) -> None:
        self.leave.set()
        if self._listener is not None:
            self._listener.close()
        with self._lock:
            links = list(self._links)
        for link in links:
            link.end()
        deadline = time.monotonic() + LEAVE_S
        for link in links:
            link.join(max(0.0, deadline - time.monotonic()))
        own.close()

    def _look(self, own: App) -> None:
        self._reload(own)
        self._listen(own)
        self._let_in()
        self._dial()
        self._pass_on(own)

    def _reload(self, own: App) -> None:
        """Follow what was paired, removed or given other keys meanwhile; links that do not fit any more end."""
        stamps = (_stamp(own.home.peers), _stamp(own.home.keys / keys.RING))
        before, self._stamps = self._stamps, stamps
        if stamps == before:
            return
        begun = bool(self._mine)
        self._mine = self._mine or tls.fingerprint(meeting.own_certificate(own).der)
        paired = {one.fingerprint: one for one in peers.load(own.home, own.files)}
        now = time.monotonic()
        with self._lock:
            self._paired = paired
            for name, one in paired.items():
                state = self._states.setdefault(name, State(one.name))
                state.name, state.failed = one.name, 0
                state.due = now + (_SECOND_S if self._mine > name else 0.0)
            # With other keys everybody begins anew: they are told in the greeting.
            rekeyed = begun and stamps[1] != before[1]
            over = [link for link in self._links if link.trusted and (rekeyed or link.peer not in paired)]
        for link in over:
            link.end()

    # -- in ---------------------------------------------------------------------------------------------------------

    def _listen(self, own: App) -> None:
        if own.config.peers_listen != "on" or self._listener is not None or time.monotonic() < self._listen_due:
            return
        try:
            self._listener = lan.listening(own.config.peers_port)
            self._listener.setblocking(False)
        except OSError as error:
            self._listen_due = time.monotonic() + BACKOFF_S_MAX
            self.failure = f"port {own.config.peers_port} cannot be opened: {error.strerror or error}"

    def _let_in(self) -> None:
        for _ in range(IN_MAX):
            if self._listener is None:
                return
            try:
                wire, _ = self._listener.accept()
            except BlockingIOError:
                return
            wire.setblocking(True)
            with self._lock:
                room = self._coming < IN_MAX
                self._coming += room
            if not room:
                wire.close()
                continue
            self._start(Link(self, Role.RESPONDER, wire))

    # -- out --------------------------------------------------------------------------------------------------------

    def _dial(self) -> None:
        now = time.monotonic()
        with self._lock:
            up = self._up()
        for name, one in self._paired.items():
            state = self._states[name]
            if name not in up and not state.dialling and now >= state.due and one.addresses:
                state.dialling = True
                self._start(Link(self, Role.INITIATOR, None, one))

    def _start(self, link: Link) -> None:
        with self._lock:
            self._links[link] = None
        link.start()

    def _pass_on(self, own: App) -> None:
        """Wake the links when there is something new here, whoever brought it."""
        with self._lock:
            links = [link for link in self._links if link.trusted]
        if not links:
            self._digest = None
            return
        digest = own.holding.digest()
        if digest != self._digest:
            self._digest = digest
            for link in links:
                link.bell.ring()

    # -- told by links ----------------------------------------------------------------------------------------------

    def fresh(self) -> App:
        """Return parts for the thread that asks."""
        return self._fresh()

    def known(self) -> dict[bytes, Peer]:
        """Return the paired devices by fingerprint."""
        with self._lock:
            return dict(self._paired)

    def state(self, name: bytes) -> State:
        """Return how it stands with a peer."""
        with self._lock:
            return self._states.setdefault(name, State(""))

    def over(self, link: Link) -> None:
        """Forget a link that has ended."""
        with self._lock:
            self._links.pop(link, None)
            if link.role is Role.RESPONDER:
                self._coming -= 1


def _stamp(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
