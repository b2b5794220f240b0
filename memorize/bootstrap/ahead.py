"""A large backlog is read and parsed by a second process, ahead of this one, which redacts, writes and indexes.

The second process is given the names in a file without a name, and says what it found by a pipe, one record a spool
file, in their order. It touches neither log, index nor lock. What it cannot tell, and everything once it is gone, is
prepared here instead, so that it makes nothing but speed. The pipe bounds how far it is ahead, and ends it when this
process dies: the next write fails.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import msgpack

import memorize
from memorize.agents.hookfiles import kept
from memorize.bootstrap.intake import DELIVERED, Intake, Recent, Said, delivered, said
from memorize.clock import SystemClock
from memorize.index.place import Place, Places
from memorize.log.codec import tidy
from memorize.log.files import RealFiles
from memorize.log.prepare import Prepared, Read, captured
from memorize.log.spool import OWN_AGENT, SPOOL_BYTES_MAX
from memorize.model import Capture, Draft
from memorize.paths import Home

# So many are prepared here while it starts.
HEAD_FILES: Final = 256
_PIPE_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 17
# All but what only the process that found a place needs: its marker, how names compare there, its aliases.
_PLACE_FIELDS: Final = Place._fields.index("marker")
# Names of places may hold what is no Unicode.
_pack: Final[Callable[[object], bytes]] = msgpack.Packer(unicode_errors="surrogatepass").pack
_Unpacker: Final = partial(
    msgpack.Unpacker,
    read_size=_CHUNK_BYTES,
    max_buffer_size=2 * SPOOL_BYTES_MAX,
    strict_map_key=False,
    unicode_errors="surrogatepass",
)
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from memorize.bootstrap.ahead import main; raise SystemExit(main())"
)


@contextlib.contextmanager
def ahead(
    home: Home, device: str, settings: Sequence[str], intake: Intake, names: Sequence[str], read: Read
) -> Iterator[Read]:
    """Start a second process on these files and yield the way to prepare each in turn; it ends with the context.

    ``device`` (in hex) and ``settings`` (of git) are what places are found by. ``read`` prepares what it does not tell.
    """
    process = _started(home, device, settings, names[HEAD_FILES:])
    if process is None or process.stdout is None:
        yield read
        return
    try:
        yield _Following(process.stdout, intake, read)
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def _started(home: Home, device: str, settings: Sequence[str], names: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Start the second process; None when that fails."""
    order = [os.fsencode(home.root), device, [*map(os.fsencode, settings)], [*map(os.fsencode, names)]]
    try:
        with tempfile.TemporaryFile() as told:
            told.write(msgpack.packb(order))
            told.seek(0)
            return subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, str(Path(memorize.__file__).resolve().parent.parent)],
                stdin=told,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=kept(os.environ),
                pipesize=_PIPE_BYTES,
            )
    except OSError:
        return None


class _Following:
    """Prepares files by the records of the second process, as long as they come."""

    def __init__(self, pipe: IO[bytes], intake: Intake, read: Read) -> None:
        self._records: Iterator[Any] = iter(_Unpacker(pipe))
        self._intake = intake
        self._read = read
        self._head = HEAD_FILES
        self._places: list[Place] = []

    def __call__(self, name: str) -> Prepared | None:
        if self._head:
            self._head -= 1
            return self._read(name)
        try:
            record = next(self._records)
            found = None if record is None else self._prepared(name, *record)
        except Exception:  # it is gone, or says what nobody understands: no more of it is taken
            self._records = iter(())
            found = None
        return self._read(name) if found is None else found

    def _prepared(
        self, name: str, nonce: bytes, mono: int, size: int, drafts: list[Any], place: Any, again: list[Any] | None
    ) -> Prepared:
        if nonce.hex() not in name:
            raise ValueError(f"not what lies in {name}")
        if isinstance(place, list):
            self._places.append(_place(place))
            place = -1
        found = Said(
            [Draft(kind, payload, ordinal, tuple(deps)) for kind, payload, ordinal, deps in drafts],
            None if place is None else self._places[place],
            None if again is None else Capture(*again),
        )
        return Prepared(nonce, mono, size, self._intake.follow(found))


def _place(fields: Sequence[Any]) -> Place:
    """Return the place that was told."""
    project, name, identities, root, folder, branch, head, off = fields
    return Place(project, name, tuple(map(tuple, identities)), root, folder, branch, head, off, {})


class _Telling:
    """Makes the records, in the second process. A place is told once and has a number from then on."""

    def __init__(self, home: Home, places: Places) -> None:
        self._new = f"{home.spool}/new"
        self._files = RealFiles()
        self._locate = places
        self._recent = Recent()
        self._numbers: dict[int, int] = {}
        self._told: list[Place] = []  # keeps them, so that no other one can get the same number

    def record(self, name: str) -> list[Any] | None:
        """Return what a spool file holds; None leaves it to the other process, whatever the reason."""
        try:
            capture = captured(self._files, self._new, name)
            drafts, place, kept = self._said(capture)
            plain = [[kind, tidy(payload), ordinal, deps] for kind, payload, ordinal, deps in drafts]
        except Exception:
            return None
        return [capture.nonce, capture.mono, len(capture.data), plain, self._number(place), kept]

    def _said(self, capture: Capture) -> Said:
        """Return what a capture says. Raises LookupError when only the index can tell."""
        if capture.agent == OWN_AGENT:
            if capture.event != DELIVERED:
                raise LookupError(capture.event)
            return Said([delivered(capture, self._session_of)])
        found = said(capture, self._locate)
        if found.kept is not None:
            self._recent.keep(found.kept)
        return found

    def _session_of(self, nonce: bytes) -> str:
        session = self._recent.session_of(nonce)
        if session is None:
            raise LookupError(nonce)
        return session

    def _number(self, place: Place | None) -> int | list[Any] | None:
        if place is None:
            return None
        number = self._numbers.setdefault(id(place), len(self._told))
        if number < len(self._told):
            return number
        self._told.append(place)
        return list(place[:_PLACE_FIELDS])


def main() -> int:
    """Prepare the files that standard input names, and tell the records to standard output."""
    root, device, settings, names = msgpack.unpackb(sys.stdin.buffer.read())
    home = Home(Path(os.fsdecode(root)))
    places = Places(device, home.exclude, SystemClock(), tuple(os.fsdecode(name) for name in settings))
    telling = _Telling(home, places)
    with open(1, "wb", buffering=_CHUNK_BYTES) as out:
        for name in names:
            out.write(_pack(telling.record(os.fsdecode(name))))
    return 0
