"""Making erased text go away: out of the index, the rendered briefs, captures set aside, and at last the log itself.

Whoever has taken in an erasure does this, and whoever comes later and finds it undone. The log is done last: while a
body is there, a rebuilt index says again that everything is still to be done. What hinders it is tried again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memorize.errors import CannotRead, CannotWrite, Problem
from memorize.index import erasures, purge
from memorize.index.erasures import Spot
from memorize.limits import ERASE_IDS_MAX
from memorize.log.codec import Bad
from memorize.log.lock import Lock
from memorize.log.scrub import scrub
from memorize.log.segments import read_event
from memorize.log.spool import entry, pending
from memorize.model import ERASE_ACKNOWLEDGED, Draft
from memorize.patterns import late

if TYPE_CHECKING:
    from memorize.bootstrap.app import App

# What failed is tried again after so long.
_PAUSE_NS: Final = 30_000_000_000
_LOCK_WAIT_S: Final = 30.0
_BAD_BYTES_MAX: Final = 16 << 20
# A line of a body by which a capture that was set aside is known again: long enough not to stand anywhere.
_LINE_CHARS: Final = 64
_LINE_MIN: Final = 16
_LINE_MIN_WIDE: Final = 6
_ESCAPE: Final = late(r"(?:\\u[0-9a-fA-F]{4})+")


class Erasing:
    """One state directory's part in the erasures of its person."""

    def __init__(self, app: App) -> None:
        """Nothing is looked at yet."""
        self._app = app
        self._at_work = False
        self._pause_until = 0
        self.hindrance: Problem | None = None  # what stood in the way the last time

    def after_ingest(self) -> None:
        """Do what there is to do, if anything; what hinders it is noted and hinders nothing else."""
        if self._at_work or self._app.clock.monotonic_ns() < self._pause_until:
            return
        try:
            if self._app.projector.erases(self._app.identity.replica):
                self.run()
        except Problem as problem:
            self.hindrance = problem
            self._pause_until = self._app.clock.monotonic_ns() + _PAUSE_NS

    def again(self) -> None:
        """The same at once, also when it failed just now: what stood in the way may be gone."""
        self._pause_until = 0
        self.after_ingest()

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Within this, what is taken in is not looked at: something must be done before it is acknowledged."""
        self._at_work = True
        try:
            yield
        finally:
            self._at_work = False

    def run(self, wait_s: float = 0.0) -> None:
        """Take out what is erased and acknowledge it.

        Raises Busy when another process is at it for so long, CannotRead, CannotWrite, IndexDamaged, Deferred.
        """
        home = self._app.home
        with self.held_back(), Lock(home.locks / "erase", wait_s), Lock(home.locks / "rebuild", wait_s):
            self._take_out()
            self._acknowledge()
        self.hindrance = None

    # -- taking out -------------------------------------------------------------------------------------------------

    def _take_out(self) -> None:
        app = self._app
        self._ingest_known(erasures.unclean(app.reader(drain=False).connection))
        found = erasures.unclean(app.reader(drain=False).connection)
        if not found:
            return
        lines = self._lines(found) if self._set_aside() else frozenset()
        with self._ingest_lock():
            self._clear_rebuilds()
            purge.forget(app.home.index, app.home.root, found)
        self._clear_set_aside(lines, {spot.nonce for spot in found})
        try:
            app.refresh_briefs(drain=False)
        except OSError as error:
            raise CannotWrite(path=app.home.briefs, detail=error.strerror or error) from error
        with self._ingest_lock():
            purge.compact(app.home.index)
        app.release()
        places: dict[str, list[tuple[int, int]]] = {}
        for spot in found:
            places.setdefault(spot.file, []).append((spot.offset, spot.length))
        scrub(app.home, app.files, {spot.id for spot in found}, places, _LOCK_WAIT_S)
        with self._ingest_lock():
            purge.clean(app.home.index, app.home.root, found)

    def _ingest_lock(self) -> Lock:
        return Lock(self._app.home.locks / "ingest", _LOCK_WAIT_S)

    def _ingest_known(self, found: Sequence[Spot]) -> None:
        """A capture of an erased event that still lies in the spool is known already: to ingest it removes it."""
        nonces = {spot.nonce for spot in found} - {b""}
        try:
            names = pending(self._app.home, self._app.files)
        except OSError as error:
            raise CannotRead(path=self._app.home.spool, detail=error.strerror or error) from error
        if any((read := entry(name)) is not None and read.nonce in nonces for name in names):
            self._app.ingest()

    def _clear_rebuilds(self) -> None:
        """Remove what a rebuild left that was cut short; none is at work, for the lock is held."""
        for path in self._app.home.root.glob("index.new*"):
            _remove(path)

    # -- captures that were set aside --------------------------------------------------------------------------------

    def _set_aside(self) -> list[str]:
        bad = f"{self._app.home.spool}/bad"
        try:
            return self._app.files.names(bad)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CannotRead(path=bad, detail=error.strerror or error) from error

    def _clear_set_aside(self, lines: frozenset[str], nonces: set[bytes]) -> None:
        """Remove captures that could never be read and say what is erased."""
        for name in self._set_aside():
            path = self._app.home.spool / "bad" / name
            read = entry(name)
            if not (read is not None and read.nonce in nonces):
                try:
                    data = self._app.files.read(str(path), _BAD_BYTES_MAX)
                except OSError:
                    data = b""
                if not any(line in text for text in _readings(data) for line in lines):
                    continue
            _remove(path)

    def _lines(self, found: Iterable[Spot]) -> frozenset[str]:
        """Return the beginnings of the longer lines of the bodies that go."""
        lines: set[str] = set()
        for spot in found:
            with contextlib.suppress(Bad, CannotRead):
                event = read_event(self._app.home.root / spot.file, spot.offset, spot.length)
                for text in _texts(event.payload):
                    cut = (line.strip()[:_LINE_CHARS] for line in text.splitlines())
                    lines.update(line for line in cut if len(line) >= (_LINE_MIN if line.isascii() else _LINE_MIN_WIDE))
        return frozenset(lines)

    # -- saying so --------------------------------------------------------------------------------------------------

    def _acknowledge(self) -> None:
        """Say that nothing of what these erasures name is left here, and destroy the keys of its projects before."""
        app = self._app
        connection = app.reader(drain=False).connection
        waiting = erasures.unacknowledged(connection, app.identity.replica)
        if not waiting or erasures.unclean(connection) or not app.packs_clean():
            return
        self._spend_keys(waiting)
        for start in range(0, len(waiting), ERASE_IDS_MAX):
            part = waiting[start : start + ERASE_IDS_MAX]
            app.append([Draft(ERASE_ACKNOWLEDGED, {"erasures": part, "device": app.device()})])

    def _spend_keys(self, waiting: Iterable[bytes]) -> None:
        from memorize.bootstrap import keeping

        app = self._app
        if not keeping.keyring(app).scopes:
            return
        for identity in waiting:
            event = app.reader(drain=False).event(identity)
            projects = (event.payload or {}).get("projects") if event is not None else None
            named = [one for one in projects if isinstance(one, str)] if isinstance(projects, list) else []
            if named:
                keeping.spend_scopes(app, named, identity)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWrite(path=path, detail=error.strerror or error) from error


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a payload."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _readings(data: bytes) -> Iterator[str]:
    """Yield what the bytes may say: as they are, with the escapes of JSON undone, and as UTF-16."""
    text = data.decode("utf-8", "replace")
    yield text
    if "\\" in text:
        plain = _ESCAPE.sub(lambda match: _unescaped(match[0]), text)
        yield plain.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
    if data.count(0) * 4 > len(data):
        yield data.decode("utf-16-le", "replace")


def _unescaped(escapes: str) -> str:
    raw = b"".join(bytes.fromhex(one) for one in escapes.split("\\u")[1:])
    return raw.decode("utf-16-be", "replace")
