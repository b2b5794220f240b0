"""Run one program that answers a question, and be done with it at the deadline, whatever it is or does.

Input and output are files without a name, not pipes: a grandchild that keeps them open holds nobody up, there is
nothing to drain, and a crash leaves no text behind. The program gets a process group of its own, an empty directory
of its own, no terminal and no shell.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from uuid import uuid4

from memorize.consolidate.port import ModelFailed
from memorize.environment import own

OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024
GUARD: Final = "MEMORIZE_GUARD"
# Names a call in the environment of everything that it started, so that what left its process group is found.
_MARK: Final = "MEMORIZE_CALL"
_GRACE_S: Final = 0.5
_PAUSES_S: Final = (0.005, 0.01, 0.02, 0.04)


class Done(NamedTuple):
    """How a program ended. ``status`` None: it was killed at the deadline (``late``) or for its output (``large``)."""

    status: int | None
    out: bytes
    err: bytes
    seconds: float
    late: bool = False
    large: bool = False


class NotStarted(OSError):  # noqa: N818 - called for what happened
    """The program could not be started at all."""


def failure(program: str, error: OSError) -> ModelFailed:
    """Return what it means that a call could not be made at all."""
    gone = isinstance(error, NotStarted) and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ENOEXEC)
    return ModelFailed("missing" if gone else "exit", f"{program}: {error.strerror or error}")


def environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child: the person's, without what other programs left in it, and with the guard."""
    return {**own(environ), **extra, GUARD: "1"}


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Give a private directory for one call and remove it afterwards; its folder ``empty`` is where the child runs."""
    with tempfile.TemporaryDirectory(prefix="memorize-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        (place / "empty").mkdir(mode=0o700)
        yield place


def run(
    argv: Sequence[str],
    stdin: bytes,
    environ: Mapping[str, str],
    directory: Path,
    deadline_s: float,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> Done:
    """Run a program to its end, or end it and its children at the deadline or when it prints too much.

    Raises NotStarted, and OSError when there is no room for the files of the call.
    """
    began = time.monotonic()
    mark = uuid4().hex
    with _nameless(stdin) as source, _nameless() as out, _nameless() as err:
        process = _start(argv, source, out, err, {**environ, _MARK: mark}, directory)
        late = large = False
        try:
            late, large = _wait(process, (out, err), began + deadline_s, output_bytes_max)
        finally:
            _end(process, mark, forced=late or large or process.returncode is None)
        texts = [_head(file, output_bytes_max) for file in (out, err)]
    status = None if late or large else process.returncode
    return Done(status, texts[0], texts[1], time.monotonic() - began, late, large)


@contextlib.contextmanager
def _nameless(content: bytes = b"") -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _start(
    argv: Sequence[str], source: IO[bytes], out: IO[bytes], err: IO[bytes], environ: Mapping[str, str], directory: Path
) -> subprocess.Popen[bytes]:
    own: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":  # pragma: no cover - exercised on Windows only
        own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    try:
        return subprocess.Popen(
            list(argv), stdin=source, stdout=out, stderr=err, env=dict(environ), cwd=directory, close_fds=True, **own
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise NotStarted(getattr(error, "errno", 0) or 0, getattr(error, "strerror", None) or str(error)) from error


def _wait(
    process: subprocess.Popen[bytes], files: Iterable[IO[bytes]], until: float, output_bytes_max: int
) -> tuple[bool, bool]:
    """Wait for the end. Returns (late, large)."""
    pauses = iter(_PAUSES_S)
    while True:
        done = process.poll() is not None
        if any(os.fstat(file.fileno()).st_size > output_bytes_max for file in files):
            return False, True
        if done:
            return False, False
        left = until - time.monotonic()
        if left <= 0:
            return True, False
        time.sleep(min(left, next(pauses, _PAUSES_S[-1])))


def _head(file: IO[bytes], most: int) -> bytes:
    file.seek(0)
    return file.read(most)


def _end(process: subprocess.Popen[bytes], mark: str, *, forced: bool) -> None:
    """End what is left of a call: a finished one's children, or all of a forced one's after a moment to tidy up."""
    if sys.platform == "win32":  # pragma: no cover - exercised on Windows only
        if forced:
            subprocess.run(
                ["taskkill", "/F", "/T", "/PID", str(process.pid)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=10,
            )
            process.wait()
        return
    if forced:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)
    if forced:
        for stray in _marked(mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(stray, signal.SIGKILL)
    process.wait()


def _signal_group(leader: int, number: int) -> None:
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)


def _marked(mark: str) -> list[int]:
    """Return the processes of a call that left its group, where the system shows the environment of processes."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc").is_dir() else ():
        with contextlib.suppress(OSError, ValueError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
