"""One connection to a paired device: from the handshake to its end, in a thread of its own with parts of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Final

from memorize.bootstrap import App, keeping, meeting
from memorize.errors import Problem
from memorize.sync import peer, tls
from memorize.sync.handshake import Role
from memorize.sync.peers import Address, Peer
from memorize.sync.ring import Wrapped, adopt
from memorize.sync.session import Outcome, Session
from memorize.sync.transport import Bell, SocketStream, serve_live

if TYPE_CHECKING:
    from memorize.daemon.peering import Peering, State

CONNECT_S: Final = 5.0
_REASON_CHARS_MAX: Final = 200


class Link(threading.Thread):
    """One connection, from the handshake to its end."""

    def __init__(self, peering: Peering, role: Role, wire: socket.socket | None, to: Peer | None = None) -> None:
        """``wire``: one that came in; ``to``: the device to connect to."""
        super().__init__(name=f"peer {to.name if to else 'in'}"[:60], daemon=True)
        self.role = role
        self.bell = Bell()
        self.peer: bytes | None = to.fingerprint if to else None
        self.trusted = False
        self._peering = peering
        self._to = to
        self._wire = wire
        self._ended = threading.Event()
        self._stream: SocketStream | None = None

    def end(self) -> None:
        """End the connection; from another thread."""
        self._ended.set()
        self.bell.ring()
        wire = self._wire
        if wire is not None:
            with contextlib.suppress(OSError):
                # That of a TLS socket would have its own thread take what is still coming for plain bytes.
                socket.socket.shutdown(wire, socket.SHUT_RDWR)

    def run(self) -> None:
        """Hold the connection. Every failure becomes the peer's state."""
        reason = ""
        try:
            reason = self._hold()
        except (Problem, OSError, tls.NotThePeer) as error:
            reason = str(error) or type(error).__name__
        except Exception as error:
            # A mistake of ours in one link must not end the others; it is shown like any other reason.
            reason = f"{type(error).__name__}: {error}"
        finally:
            self._close(reason)

    def _close(self, reason: str) -> None:
        if self._wire is not None:
            with contextlib.suppress(OSError):
                self._wire.close()
        if self.peer is None:
            self._peering.refused += 1
        else:
            state = self._peering.state(self.peer)
            state.reason = reason[:_REASON_CHARS_MAX]
            if self._to is not None:
                state.dialling = False
                state.put_off()
        self._peering.over(self)
        self.bell.close()

    def _hold(self) -> str:
        app = self._peering.fresh()
        try:
            secured = self._secured(app)
            state = self._peering.state(self.peer or b"")
            ring = keeping.keyring(app)
            app.reader()
            session = peer.session(app.holding, ring, self.role, stays=True)
            stream = SocketStream(secured)
            told = _Told(app, self, state, session)
            outcome = serve_live(session, stream, self.bell, note=told.note, is_leaving=self._ended.is_set)
            return outcome.reason
        finally:
            app.close()

    def _secured(self, app: App) -> ssl.SSLSocket:
        own = meeting.own_certificate(app)
        if self._to is not None:
            safe, seen = self._reached(self._to, own)
        else:
            assert self._wire is not None
            trusted = [one.certificate for one in self._peering.known().values()]
            safe, seen = tls.secured(self._wire, own, trusted, server=True)
        self._wire = safe
        self.peer = tls.fingerprint(seen)
        safe.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return safe

    def _reached(self, to: Peer, own: tls.OwnCertificate) -> tuple[ssl.SSLSocket, bytes]:
        """Try its addresses in turn: in another network one of them may be somebody else's by now."""
        last: Exception = OSError("it has no address")
        for place in to.addresses:
            if self._ended.is_set():
                break
            try:
                self._wire = _connected(place)
                return tls.secured(self._wire, own, [to.certificate], server=False)
            except (OSError, tls.NotThePeer) as error:
                last = error
        if isinstance(last, OSError):
            raise OSError(f"cannot be reached: {last.strerror or last}")
        raise last


class _Told:
    """What the rounds of one connection come to."""

    def __init__(self, app: App, link: Link, state: State, session: Session) -> None:
        self._app = app
        self._link = link
        self._state = state
        self._session = session
        self._sent = self._received = 0
        self._given: tuple[Wrapped, ...] = ()

    def note(self, settled: Outcome) -> None:
        """A round has ended."""
        state = self._state
        self._link.trusted = True
        state.failed, state.reason = 0, ""
        state.converged, state.last_ms = settled.converged, self._app.clock.wall_ms()
        state.sent += settled.sent - self._sent
        state.received += settled.received - self._received
        fresh = settled.received > self._received
        self._sent, self._received = settled.sent, settled.received
        self._take_keys()
        if fresh:
            # What somebody else brought is told to the next session, too.
            self._app.refresh_briefs(force=False, drain=False)
        # Until the next round nothing is asked, and a daemon is to stay small.
        self._app.close()

    def _take_keys(self) -> None:
        given = peer.given(self._session)
        if given == self._given:
            return
        self._given = given
        keeping.update(self._app, lambda ring: adopt(ring, given))


def _connected(place: Address) -> socket.socket:
    return socket.create_connection((place.host, place.port), CONNECT_S)
