"""Sessions over byte streams: the loop that reads and writes, idle timers, and connections that stay open."""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from memorize.limits import PEER_IDLE_S, PEER_TURN_BYTES
from memorize.sync.session import Outcome, Session
from memorize.sync.wire import Decoder, Frame, Garbled, encode

CHUNK_BYTES: Final = 64 * 1024
# A connection that stays compares digests so often even when nobody has news; a hint that got lost costs no more.
EVERY_S: Final = 60.0
# Events that come close together travel in one round.
_PAUSE_S: Final = 0.2
# Whoever ends a session by an error lets the other side finish its turn, or it would never read the error.
_LINGER_S: Final = 5.0
_LINGER_BYTES: Final = 2 * PEER_TURN_BYTES

Progress = Callable[[int, int], None]


class Stream(Protocol):
    """Bytes in both directions. Used by one thread at a time, but for ``close``, which ends what waits."""

    def read(self, timeout_s: float) -> bytes:
        """Return bytes that have come, b"" after the last. Raises TimeoutError when none come in time, OSError."""
        ...

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of these bytes. Raises TimeoutError, OSError."""
        ...

    def wait(self, timeout_s: float, bell: Bell) -> bool:
        """Wait until something can be read, or the bell rings, or time is over; tell whether something can be read."""
        ...

    def close(self) -> None:
        """Close both directions; safe to call twice."""
        ...


class Bell:
    """Wakes a connection that stays: like an event of ``threading``, but one that a socket can be waited for with."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)

    def ring(self) -> None:
        """Say that there is news. From any thread; after ``close`` nothing happens."""
        with contextlib.suppress(OSError):  # full: it rings already
            self._theirs.send(b"\0")

    def hush(self) -> bool:
        """Stop the ringing; tell whether it rang."""
        try:
            return bool(self._ours.recv(CHUNK_BYTES))
        except BlockingIOError:
            return False

    def fileno(self) -> int:
        """Return what to wait for."""
        return self._ours.fileno()

    def close(self) -> None:
        """Give the descriptors back."""
        self._ours.close()
        self._theirs.close()


class SocketStream:
    """A stream over a connected socket, plain or TLS."""

    def __init__(self, connection: socket.socket, also: Callable[[], None] = lambda: None) -> None:
        """Use a socket; ``also`` is called once when the stream is closed."""
        self._socket = connection
        self._also: Callable[[], None] | None = also

    def read(self, timeout_s: float) -> bytes:
        """Return bytes that have come."""
        self._socket.settimeout(max(timeout_s, 0.001))
        return self._socket.recv(CHUNK_BYTES)

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of these bytes."""
        self._socket.settimeout(max(timeout_s, 0.001))
        self._socket.sendall(data)

    def wait(self, timeout_s: float, bell: Bell) -> bool:
        """Wait for bytes or the bell."""
        pending = getattr(self._socket, "pending", None)  # TLS: bytes that have left the socket already
        if pending is not None and pending():
            return True
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(bell, selectors.EVENT_READ)
            ready = selector.select(max(timeout_s, 0.0))
        return any(key.fileobj is self._socket for key, _ in ready)

    def close(self) -> None:
        """Close both directions."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        also, self._also = self._also, None
        if also is not None:
            also()


def pair() -> tuple[SocketStream, SocketStream]:
    """Return the two ends of a stream inside this process."""
    one, other = socket.socketpair()
    return SocketStream(one), SocketStream(other)


class Link:
    """A session on a stream. What comes in renews the idle timer only when it brings the session further."""

    def __init__(self, session: Session, stream: Stream, idle_s: float, progress: Progress = lambda *_: None) -> None:
        self.session = session
        self.bytes_in = 0
        self.bytes_out = 0
        self._stream = stream
        self._idle_s = idle_s
        self._progress = progress
        self._decoder = Decoder()
        self._seen = 0
        self.renew()

    def renew(self) -> None:
        """Start the idle timer again."""
        self._end = time.monotonic() + self._idle_s

    def send(self, frames: Iterable[Frame]) -> None:
        """Write frames. Each chunk that is taken renews the timer: a session sends a bounded number of them."""
        for frame in frames:
            data = memoryview(encode(frame))
            for start in range(0, len(data), CHUNK_BYTES):
                part = bytes(data[start : start + CHUNK_BYTES])
                self._stream.write(part, self._idle_s)
                self.bytes_out += len(part)
                self.renew()

    def step(self) -> None:
        """Read what comes next, and answer. Raises TimeoutError, EOFError, OSError."""
        data = self._stream.read(self._end - time.monotonic())
        if not data:
            raise EOFError
        self.bytes_in += len(data)
        self._decoder.feed(data)
        self._take()
        if self.session.progress > self._seen:
            self._seen = self.session.progress
            self.renew()
        elif time.monotonic() > self._end:
            raise TimeoutError

    def linger(self) -> None:
        """After an error that this side has told: take what is still on its way, for a while, and forget it."""
        end, room = time.monotonic() + _LINGER_S, _LINGER_BYTES
        with contextlib.suppress(OSError):
            while self.session.failed and room > 0 and (left := end - time.monotonic()) > 0:
                data = self._stream.read(left)
                if not data:
                    return
                room -= len(data)

    def _take(self) -> None:
        self._decoder.limit = self.session.frame_bytes_max
        try:
            for frame in self._decoder.frames():
                self.send(self.session.on([frame]))
                self._progress(*self.session.moved)
                self._decoder.limit = self.session.frame_bytes_max
                if self.session.outcome is not None:
                    return
        except Garbled as error:
            if self.session.outcome is None:
                self.send(self.session.garbled(str(error)))


def run(
    session: Session, stream: Stream, idle_s: float = PEER_IDLE_S, progress: Progress = lambda *_: None
) -> tuple[Outcome, Link]:
    """Hold a session to its end, close the stream, and return how it ended and what went through the link.

    Never raises for anything the other side or the connection does. A Problem of this side is raised.
    """
    link = Link(session, stream, idle_s, progress)
    try:
        with ended(session, idle_s):
            link.send(session.opening())
            while session.outcome is None:
                link.step()
        link.linger()
    finally:
        stream.close()
    if session.problem is not None:
        raise session.problem
    assert session.outcome is not None
    return session.outcome, link


@contextlib.contextmanager
def ended(session: Session, idle_s: float) -> Iterator[None]:
    """Turn the end of a connection into the outcome of its session."""
    try:
        yield
    except TimeoutError:
        session.lost("idle", f"nothing came of it for {idle_s:.0f} s")
    except EOFError:
        session.lost("closed", "the other side closed the connection")
    except OSError as error:
        session.lost("closed", f"the connection broke: {error.strerror or error}")


def serve_live(
    session: Session,
    stream: Stream,
    bell: Bell,
    *,
    note: Callable[[Outcome], None],
    is_leaving: Callable[[], bool] = lambda: False,
    idle_s: float = PEER_IDLE_S,
    every_s: float = EVERY_S,
) -> Outcome:
    """Hold a session that stays (``stays=True``), until the connection ends or ``is_leaving`` says so; closes it.

    Whoever has new events rings the bell: the initiator begins a round, the responder asks it to. ``note`` is called
    after every round; it may ring the bells of other connections. Without news a round begins every ``every_s``
    seconds, and a responder that hears nothing for three times that long gives up. Raises a Problem of this side.
    """
    link = Link(session, stream, idle_s)
    try:
        with ended(session, idle_s):
            link.send(session.opening())
            while not is_leaving():
                link.renew()
                while session.settled is None and session.outcome is None:
                    link.step()
                if session.outcome is not None:
                    break
                assert session.settled is not None
                note(session.settled)
                _rest(link, stream, bell, every_s, is_leaving)
        link.linger()
    finally:
        stream.close()
    if session.problem is not None:
        raise session.problem
    session.lost("closed", "the connection was closed")
    assert session.outcome is not None
    return session.outcome


def _rest(link: Link, stream: Stream, bell: Bell, every_s: float, is_leaving: Callable[[], bool]) -> None:
    """Wait until there is reason for a round, and begin it, or have it begun."""
    session = link.session
    leads = session.leads
    end = time.monotonic() + (every_s if leads else 3 * every_s)
    time.sleep(_PAUSE_S)
    while session.settled is not None and session.outcome is None and not is_leaving():
        if leads and (session.asked or time.monotonic() >= end):
            bell.hush()
            link.renew()
            link.send(session.start())
        elif time.monotonic() >= end:
            raise TimeoutError
        elif stream.wait(end - time.monotonic(), bell):
            link.renew()
            link.step()
        elif bell.hush():
            if leads:
                session.asked = True
            else:
                link.send(session.news())
