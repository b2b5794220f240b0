"""The real hook file, run as an agent runs it, and a small daemon that misbehaves on demand."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memorize.capture.install import hook_files
from memorize.capture.memorize_hook import parse_name, socket_path

# Generous: nothing here may hang, how long it takes is the benchmark's business.
PATIENCE_S = 20
FILES = hook_files()
PAYLOAD = '{"session_id":"s1","prompt":"저장소를 정리해 줘 – naïve"}'.encode()
Answer = Callable[[socket.socket, bytes], None]


class Hook:
    """A state directory with the hook installed in it."""

    def __init__(self, root: Path, cwd: Path) -> None:
        self.root = root
        self.cwd = cwd
        (root / "hook").mkdir(mode=0o700, parents=True)
        for name, content in FILES.items():
            (root / "hook" / name).write_bytes(content)

    @property
    def program(self) -> Path:
        return self.root / "hook" / "memorize_hook.py"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-I", "-S", str(self.program), *words]

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        # Without MEMORIZE_HOME: the state directory is the one that the file lies in.
        return {k: v for k, v in os.environ.items() if k != "MEMORIZE_HOME"} | dict(extra or {})

    def run(self, *words: str, data: bytes = PAYLOAD, **more: Any) -> bytes:
        """Run it to its end; it must leave with status 0 and without a word on stderr. Return what it printed."""
        done = self.call(*words, data=data, **more)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def call(
        self,
        *words: str,
        data: bytes = PAYLOAD,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
        shell: str = "",
        **more: Any,
    ) -> subprocess.CompletedProcess[bytes]:
        command = self.command(*words)
        if shell:
            command = ["/bin/sh", "-c", shell, "sh", *command]
        return subprocess.run(
            command,
            input=data,
            capture_output=True,
            cwd=cwd or self.cwd,
            env=self.environ(environ),
            timeout=PATIENCE_S,
            check=False,
            **more,
        )

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.cwd,
            env=self.environ(),
            **more,
        )

    def captures(self) -> list[tuple[str, str, bool, bytes]]:
        """Return (agent, event, cut, bytes) of every finished file, each checked against its name, oldest first."""
        found = []
        assert list((self.root / "spool" / "tmp").glob("*")) == []
        for path in sorted((self.root / "spool" / "new").glob("*")):
            data, parsed = path.read_bytes(), parse_name(path.name)
            assert parsed is not None
            _mono, _nonce, length, crc, agent, event, cut = parsed
            assert (len(data), zlib.crc32(data)) == (length, crc)
            found.append((agent, event, cut, data))
        return found

    def nonces(self, event: str) -> list[bytes]:
        names = [parse_name(path.name) for path in (self.root / "spool" / "new").iterdir()]
        return [name[1] for name in names if name and name[5] == event]


class FakeDaemon:
    """Accepts connections and hands each with its request line to ``answer``; None never accepts."""

    def __init__(self, root: Path, answer: Answer | None) -> None:
        self.path = socket_path(str(root))
        self.lines: list[bytes] = []
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._serve)

    def __enter__(self) -> FakeDaemon:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join(PATIENCE_S)
        self.listener.close()
        Path(self.path).unlink()

    def _serve(self) -> None:
        self.listener.settimeout(0.02)
        while not self.done.is_set():
            if self.answer is None:
                self.done.wait(0.02)
                continue
            try:
                wire, _ = self.listener.accept()
            except TimeoutError:
                continue
            with wire:
                wire.settimeout(PATIENCE_S)
                line = b""
                while not line.endswith(b"\n") and (part := wire.recv(4096)):
                    line += part
                self.lines.append(line)
                with contextlib.suppress(OSError):  # the hook has given up
                    self.answer(wire, line)


def replying(*parts: bytes) -> Answer:
    """Answer with these bytes, each in a packet of its own."""

    def answer(wire: socket.socket, line: bytes) -> None:
        for part in parts:
            wire.sendall(part)

    return answer


def framed(text: bytes) -> bytes:
    return b"%d\n%s" % (len(text), text)


def finish(process: subprocess.Popen[bytes], data: bytes | None = None) -> tuple[int, bytes, bytes]:
    """Wait for a started hook; return (status, stdout, stderr)."""
    out, err = process.communicate(data, timeout=PATIENCE_S)
    return process.returncode, out, err


def modules_loaded(command: Sequence[str], environ: Mapping[str, str], cwd: Path, data: bytes = b"") -> set[str]:
    """Return the names that ``-X importtime`` lists for this command (the interpreter's own start included)."""
    done = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]],
        input=data,
        capture_output=True,
        env=dict(environ),
        cwd=cwd,
        timeout=PATIENCE_S,
        check=True,
    )
    lines = done.stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")} - {"imported package"}
