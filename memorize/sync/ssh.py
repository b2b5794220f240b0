"""Peers over ssh: the address, the command, and the child process whose standard streams carry the session."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from memorize.errors import BadTarget, CannotRun
from memorize.patterns import late
from memorize.sync.transport import CHUNK_BYTES, SocketStream

SCHEME: Final = "ssh://"
# What "serve --stdio" says first. A shell on the other side may print a greeting of its own before it.
PREAMBLE: Final = b"\0memorize peer\n"
_NOISE_BYTES_MAX: Final = 64 * 1024
_STDERR_BYTES_MAX: Final = 4 * 1024
_LEAVE_S: Final = 3.0
# A host that is switched off must not hold up what runs by itself; somebody at a terminal has settings and patience.
_CONNECT_S: Final = 15
# The installer links the program there, and a shell that nobody logs in to often does not look there.
_COMMAND: Final = 'PATH="$PATH:$HOME/.local/bin" exec memorize serve --stdio'
_ADDRESS: Final = late(
    r"ssh://(?:(?P<user>[\w.+][\w.+-]*)@)?(?P<host>[\w.][\w.-]*|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>\d{1,5}))?(?P<path>/[^\s]*)?"
)


class Address(NamedTuple):
    """A peer reached by ssh; ``command`` is what the other side's shell runs."""

    user: str
    host: str
    port: int
    command: str


def parse_address(text: str, command: str = "") -> Address:
    """Return the parts of ``ssh://[user@]host[:port][/path/of/memorize]``; ``/~/`` begins at the home directory.

    ``command`` replaces what is run on the other side. Raises BadTarget.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise BadTarget(what=text, detail="an address is ssh://[user@]host[:port][/path/of/memorize]")
    port = int(found["port"] or 0)
    if port > 65_535:
        raise BadTarget(what=text, detail=f"there is no port {port}")
    path = found["path"] or ""
    if not command and len(path) > 1:
        rooted = path.startswith("/~/")
        program = f"~/{shlex.quote(path[3:])}" if rooted else shlex.quote(path)
        command = f"{program} serve --stdio"
    return Address(found["user"] or "", found["host"].strip("[]"), port, command or f"sh -c {shlex.quote(_COMMAND)}")


def words(address: Address, *, asks: bool, options: Sequence[str] = ()) -> list[str]:
    """Return the ssh command. Without a terminal (``asks`` off) ssh must fail instead of asking for something."""
    found = ["ssh", "-T", *options]
    if not asks:
        found += ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_S}"]
    if address.port:
        found += ["-p", str(address.port)]
    where = f"{address.user}@{address.host}" if address.user else address.host
    return [*found, "--", where, address.command]


class Child:
    """A process whose standard streams are a stream of ours; what it says on standard error is kept."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises CannotRun."""
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        except OSError as error:
            raise CannotRun(program=command[0], detail=error.strerror or error) from error
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        ours, self._theirs = socket.socketpair()
        self._stderr = bytearray()
        self.stream = SocketStream(ours, self._leave)
        self._threads = [
            _thread(lambda: _to_socket(out.fileno(), self._theirs, PREAMBLE)),
            _thread(lambda: _from_socket(self._theirs, into.fileno(), into.close)),
            _thread(self._listen),
        ]

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def said(self) -> str:
        """Return the end of what it said on standard error, as one line of printable text."""
        text = bytes(self._stderr).decode("utf-8", "replace")
        lines = ["".join(char for char in line if char.isprintable()).strip() for line in text.splitlines()]
        return "; ".join(line for line in lines if line)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        while part := self._process.stderr.read(CHUNK_BYTES):
            self._stderr += part
            del self._stderr[:-_STDERR_BYTES_MAX]

    def _leave(self) -> None:
        """See the process off: it ends by itself when its input has ended, or is ended."""
        try:
            self._process.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join(_LEAVE_S)
        self._theirs.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


class StandardStreams:
    """This process's own standard input and output as a stream, for ``serve --stdio``."""

    def __init__(self, source: int = 0, sink: int = 1) -> None:
        """Say hello on ``sink`` and begin to copy."""
        ours, theirs = socket.socketpair()
        _write_all(sink, PREAMBLE)
        self._out = _thread(lambda: _from_socket(theirs, sink, lambda: None))
        _thread(lambda: _to_socket(source, theirs, b""))
        self.stream = SocketStream(ours, lambda: self._out.join(_LEAVE_S))


def _thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _to_socket(source: int, sink: socket.socket, after: bytes) -> None:
    """Copy bytes into a socket, from behind ``after`` on; the end of them, or its lack, ends the socket's reading."""
    with contextlib.suppress(OSError):
        noise = b""
        while after and (part := os.read(source, CHUNK_BYTES)):
            noise += part
            _, found, rest = noise.partition(after)
            if found:
                sink.sendall(rest)
                after = b""
            elif len(noise) > _NOISE_BYTES_MAX:
                break
        while not after and (part := os.read(source, CHUNK_BYTES)):
            sink.sendall(part)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _from_socket(source: socket.socket, sink: int, close: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(CHUNK_BYTES):
            _write_all(sink, part)
    with contextlib.suppress(OSError):
        close()


def _write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
