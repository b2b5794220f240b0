"""The daemon: answers hooks from memory and ingests what they drop. A shell around what every verb also does.

Three threads: this one owns the socket and never waits for anybody; one makes answers from a read-only view of the
index; one ingests, consolidates at boundaries and renders briefs. A large backlog, a client that says nothing or an
index that is locked delays nobody else.
"""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

import msgpack

import memorize
from memorize import __version__
from memorize.bootstrap import App, open_app
from memorize.capture.memorize_hook import own_directory
from memorize.daemon import life
from memorize.daemon.answer import SILENCE, Answerer, seconds_for
from memorize.daemon.ingesting import Ingesting, Turn, memory_kib
from memorize.daemon.once import answer_once
from memorize.daemon.others import Others
from memorize.errors import BadHome, Problem

TICK_S: Final = 1.0
REQUEST_S: Final = 1.0
REPLY_S: Final = 0.2
REQUEST_BYTES_MAX: Final = 4_096
CONNECTIONS_MAX: Final = 64
LEAVE_S: Final = 10.0
# A thread that wants to run gets its turn within this time, so an answer is not held up by a batch in the making.
SWITCH_S: Final = 0.0005
_PROGRAM: Final = Path(memorize.__file__)


class Question(NamedTuple):
    """A hook that waits: its connection, the name of its spool file, when it asked and for how long it waits."""

    wire: socket.socket
    name: str
    asked_at: float
    seconds: float


class Answering(threading.Thread):
    """Answers one hook after the other. What came too late is neither said nor recorded."""

    def __init__(self, app: App, ingesting: Ingesting, turn: Turn) -> None:
        """Nothing is opened before the first question."""
        super().__init__(name="answer", daemon=True)
        self.questions: queue.Queue[Question | None] = queue.Queue(CONNECTIONS_MAX)
        self.late = 0
        self.answerer = Answerer(app)
        self._ingesting = ingesting
        self._turn = turn

    def ask(self, question: Question) -> bool:
        """Queue a question; False when there are too many."""
        try:
            self.questions.put_nowait(question)
        except queue.Full:
            return False
        return True

    def run(self) -> None:
        """Answer until told to leave by a None."""
        self.answerer.warm()
        while (question := self.questions.get()) is not None:
            with question.wire, self._turn:
                try:
                    self._answer(question)
                except Exception as error:
                    self.answerer.failed(error)
            self._ingesting.wake.set()
        self.answerer.close()

    def _answer(self, question: Question) -> None:
        if time.monotonic() - question.asked_at >= question.seconds:
            self.late += 1  # nobody waits for it any more
            return
        answer = self.answerer.answer(question.name)
        if answer is None:
            self._ingesting.doubt()
        in_time = time.monotonic() - question.asked_at < question.seconds
        if in_time and reply(question.wire, (answer or SILENCE).text):
            self.answerer.printed(answer or SILENCE)
        else:
            self.late += 1
            self.answerer.missed(answer or SILENCE)


class _Client:
    """A connection whose request has not come in whole."""

    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.line = b""
        self.since = time.monotonic()


class Server:
    """The socket loop. One request a connection; a client that does not get to the point is dropped."""

    def __init__(self, app: App) -> None:
        """Bind the socket; the caller holds the daemon lock, so a file that is there already is stale."""
        self.app = app
        self.started = self.asked_at = time.monotonic()
        self.answers = 0
        self.leaving = False
        turn = Turn()
        self.ingesting = Ingesting(app, turn)
        self.answering = Answering(app, self.ingesting, turn)
        self.selector = selectors.DefaultSelector()
        self.clients: dict[object, _Client] = {}
        self.others = Others(app)
        self.path = Path(life.endpoint(app.home))
        _own_folder(self.path.parent, app.home.hook)
        self.path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.path))
        self.path.chmod(0o600)
        self.listener.listen(CONNECTIONS_MAX)
        self.listener.setblocking(False)
        self._file = _file_of(self.path)
        self._made_of = self._sources()

    def quiet_s(self) -> float:
        """Seconds since the last request or the last ingested event."""
        return time.monotonic() - max(self.asked_at, self.ingesting.worked_at)

    def leave(self, *_: int | FrameType | None) -> None:
        """Stop serving soon; also the handler of the signals that ask for it."""
        self.leaving = True

    def run(self, idle_exit_s: float) -> None:
        """Serve until asked to leave, idle for so long, or out of reach because the socket is gone."""
        self.ingesting.start()
        self.answering.start()
        self.selector.register(self.listener, selectors.EVENT_READ)
        while not self.leaving and (self.others.look() or self.quiet_s() < idle_exit_s) and self._reachable():
            self._turn(min(TICK_S, idle_exit_s))
        self._close()

    def _reachable(self) -> bool:
        """Without its socket or its threads a daemon is of no use, and keeps another one from serving.

        When the program or the configuration was replaced, the next session start is to meet the new one.
        """
        as_it_was = _file_of(self.path) == self._file and self._sources() == self._made_of
        return as_it_was and self.ingesting.is_alive() and self.answering.is_alive()

    def _sources(self) -> tuple[object, ...]:
        return _file_of(_PROGRAM), _change_of(self.app.home.config)

    def _turn(self, seconds: float) -> None:
        for key, _ in self.selector.select(seconds):
            if key.fileobj is self.listener:
                self._accept()
            elif (client := self.clients.get(key.fileobj)) is not None:  # else it just made room for another one
                self._hear(client)
        now = time.monotonic()
        for client in [one for one in self.clients.values() if now - one.since > REQUEST_S]:
            self._drop(client).close()

    def _accept(self) -> None:
        try:
            wire, _ = self.listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptors left, for one: it would be asked again at once
            time.sleep(0.05)
            return
        wire.setblocking(False)
        if len(self.clients) >= CONNECTIONS_MAX:
            self._drop(next(iter(self.clients.values()))).close()
        self.clients[wire] = _Client(wire)
        self.selector.register(wire, selectors.EVENT_READ)

    def _drop(self, client: _Client) -> socket.socket:
        del self.clients[client.wire]
        self.selector.unregister(client.wire)
        return client.wire

    def _hear(self, client: _Client) -> None:
        try:
            part = client.wire.recv(REQUEST_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        client.line += part
        if part and b"\n" not in client.line and len(client.line) < REQUEST_BYTES_MAX:
            return
        wire = self._drop(client)
        line, newline, _ = client.line.partition(b"\n")
        if newline:
            self.asked_at = time.monotonic()
            self._request(wire, line.strip())
        else:
            wire.close()

    def _request(self, wire: socket.socket, line: bytes) -> None:
        verb, _, rest = line.partition(b" ")
        if verb == b"A":
            self.answers += 1
            name = rest.decode("ascii", "replace")
            seconds = seconds_for(name)
            if seconds and self.answering.ask(Question(wire, name, time.monotonic(), seconds)):
                return
            self.ingesting.wake.set()
        with wire:
            reply(wire, self._reply(verb))

    def _reply(self, verb: bytes) -> bytes:
        if verb == b"Q":
            self.leave()
            return b"bye"
        if verb == b"P":
            told: bytes = msgpack.packb(self.others.peers())
            return told
        return self._status() if verb == b"S" else b""

    def _status(self) -> bytes:
        told = life.Running(
            version=__version__,
            pid=os.getpid(),
            since_s=int(time.monotonic() - self.started),
            answers=self.answers,
            ingested=self.ingesting.ingested,
            memory_kib=memory_kib(),
            late=self.answering.late,
            failures=self.ingesting.failures + self.answering.answerer.failures,
            failure=self.ingesting.failure or self.answering.answerer.failure,
        )
        packed: bytes = msgpack.packb(told._asdict())
        return packed

    def _close(self) -> None:
        """Take the socket away first, so that nobody new comes; who came already is still answered."""
        if _file_of(self.path) == self._file:
            with contextlib.suppress(OSError):
                self.path.unlink()
                if self.path.parent != self.app.home.hook:
                    self.path.parent.rmdir()
        self.ingesting.leave.set()
        self.ingesting.wake.set()
        for _ in range(CONNECTIONS_MAX):
            if not self.selector.select(0):
                break
            self._turn(0)
        self.listener.close()
        for client in list(self.clients.values()):
            self._drop(client).close()
        self.selector.close()
        with contextlib.suppress(queue.Full):
            self.answering.questions.put(None, timeout=REPLY_S)
        self.answering.join(timeout=REQUEST_S)
        self.ingesting.join(timeout=LEAVE_S)
        self.others.close()


def reply(wire: socket.socket, text: bytes) -> bool:
    """Send a reply; False when the other side is gone. It fits into the socket's buffer, so nobody waits."""
    try:
        wire.settimeout(REPLY_S)
        wire.sendall(b"%d\n" % len(text) + text)
    except OSError:
        return False
    return True


def _file_of(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _change_of(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_mtime_ns, found.st_size


def _own_folder(folder: Path, hook: Path) -> None:
    """Make the socket's folder, or refuse one that is not ours alone: anybody may write below ``/tmp``."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder == hook:
        folder.chmod(0o700)
    if not own_directory(str(folder)):
        raise BadHome(path=folder, detail="others may enter the folder of the daemon's socket")


def _take(app: App) -> bool:
    """Take the lock. One that is serving keeps it; one that is just leaving is waited for."""
    lock = life.daemon_lock(app.home)
    deadline = time.monotonic() + life.START_S
    while not lock.acquire():
        if life.status(app.home) is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True  # held until the process ends


def _serve(app: App) -> None:
    app.identity  # noqa: B018 - made before two threads want it
    server = Server(app)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, server.leave)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    server.run(app.config.idle_exit_s)


def main(arguments: list[str] | None = None) -> int:
    """Serve (``serve``), do what there is to do (``once``, ``rebuild``, ``sync``), or answer one hook (``before``).

    Behind ``sync`` stand the places to sync with.

    The last, ``before`` and the name of a spool file, is what the hook's lean child becomes before a tool when there
    is no daemon: an empty line, then the exact text for the agent. All else is silent.
    """
    mode = (sys.argv[1:] if arguments is None else arguments) or ["serve"]
    os.umask(0o077)
    try:
        app = open_app(os.environ)
        if mode == ["once"]:
            while app.work_once():
                pass
            return 0
        if mode == ["rebuild"]:
            app.rebuild()
            return 0
        if mode[:1] == ["sync"]:
            from memorize.daemon.carrying import round_of

            return 0 if round_of(app, mode[1:]) else 1
        if mode[:1] == ["before"]:
            return 0 if answer_once(app, mode[-1]) else 1  # asked by a program of an earlier version
        os.chdir("/")
        sys.setswitchinterval(SWITCH_S)
        if _take(app):
            _serve(app)
    except (Problem, OSError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
