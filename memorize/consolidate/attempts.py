"""When a window that failed is tried again: after 1, 2, 4 ... boundaries, and after five times only when asked to.

The wait belongs to a *lane* (a session's windows of one project), since a window whose session goes on becomes another
window; being parked belongs to the window itself, that is, to its set of sources. When the service itself fails, every
lane waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

from memorize.clock import Clock
from memorize.consolidate.meter import MeterFile
from memorize.consolidate.port import OF_THE_SERVICE, ModelFailed

FAILURES_MAX: Final = 5
_SKIP_MAX: Final = 64
_ALL: Final = ""

Due = Literal["go", "wait", "parked"]


class Failing(NamedTuple):
    """A window that failed: its lane, its project's key, how often, and how it failed last (``at_ms``: wall ms)."""

    lane: str
    project: str
    failures: int
    kind: str
    detail: str
    at_ms: int


def lane(agent: str, session: str, project: str) -> str:
    """Return the lane of a session's windows of one project."""
    return f"{agent} {session} {project}"


class Attempts:
    """What failed, and what waits for that. Every method raises Busy, CannotWrite or MeterDamaged."""

    def __init__(self, file: MeterFile, clock: Clock) -> None:
        """Nothing is read or written yet."""
        self._file = file
        self._clock = clock

    def boundary(self) -> bool:
        """Return whether the service may be tried at this boundary; call it once a boundary, not when run by hand.

        A boundary at which nothing is tried counts for every lane.
        """
        if self._passed(_ALL):
            return True
        with self._file.writing() as connection:
            connection.execute("update lanes set skip = max(0, skip - 1) where lane <> ?", (_ALL,))
        return False

    def due(self, window: bytes, of: str, *, by_hand: bool = False) -> Due:
        """Return what to do with a window at this boundary; by hand nothing waits, but what is parked stays so."""
        with self._file.reading() as connection:
            if connection is None:
                return "go"
            row = connection.execute("select failures from windows where key = ?", (_short(window),)).fetchone()
        if row is not None and row[0] >= FAILURES_MAX:
            return "parked"
        return "go" if by_hand or self._passed(of) else "wait"

    def _passed(self, of: str) -> bool:
        """Use up one boundary of a lane; return whether it had none to wait for."""
        with self._file.reading() as connection:
            if connection is None:
                return True
            row = connection.execute("select skip from lanes where lane = ?", (of,)).fetchone()
        if row is None or row[0] <= 0:
            return True
        with self._file.writing() as connection:
            connection.execute("update lanes set skip = max(0, skip - 1) where lane = ?", (of,))
        return False

    def failed(self, window: bytes, of: str, project: str, kind: str, detail: str) -> int:
        """Count a failure of a window and let its lane wait longer; return how often the window has failed.

        A failure of the service makes all lanes wait.
        """
        entry = (_short(window), of, project, 1, kind, detail, self._clock.wall_ms())
        with self._file.writing() as connection:
            failures: int = connection.execute(
                "insert into windows values(?, ?, ?, ?, ?, ?, ?) on conflict(key) do update"
                " set failures = failures + 1, lane = excluded.lane, kind = excluded.kind,"
                " detail = excluded.detail, at_ms = excluded.at_ms"
                " returning failures",
                entry,
            ).fetchone()[0]
            for name in (of, _ALL) if kind in OF_THE_SERVICE else (of,):
                connection.execute(
                    "insert into lanes values(?, 1, 1) on conflict(lane) do update set failures = failures + 1,"
                    " skip = min(?, 1 << min(failures, 30))",
                    (name, _SKIP_MAX),
                )
        return failures

    def gave_up(self, window: bytes, of: str, project: str, failure: ModelFailed) -> int:
        """Count the failure of a call as the window's. Returns as ``failed`` does."""
        return self.failed(window, of, project, failure.kind, failure.detail)

    def succeeded(self, window: bytes, of: str) -> None:
        """Forget what failed of a window, and let its lane and the service go on."""
        with self._file.reading() as connection:
            if connection is None:
                return
            known = connection.execute(
                "select 1 from windows where key = ? union all select 1 from lanes where lane in (?, ?)",
                (_short(window), of, _ALL),
            ).fetchone()
        if known is not None:
            with self._file.writing() as connection:
                connection.execute("delete from windows where key = ?", (_short(window),))
                connection.execute("delete from lanes where lane in (?, ?)", (of, _ALL))

    def keep_only(self, windows: Iterable[bytes]) -> None:
        """Forget windows that are not among all that are open: they have grown into others, or were done elsewhere."""
        with self._file.reading() as connection:
            if connection is None:
                return
            known = {row[0] for row in connection.execute("select key from windows")}
        if gone := known - {_short(window) for window in windows}:
            with self._file.writing() as connection:
                connection.executemany("delete from windows where key = ?", [(key,) for key in gone])

    def parked(self) -> list[Failing]:
        """Return the windows that are not tried any more, the latest first."""
        return [one for one in self._failing() if one.failures >= FAILURES_MAX]

    def failing(self) -> list[Failing]:
        """Return the windows that failed and will be tried again, the latest first."""
        return [one for one in self._failing() if one.failures < FAILURES_MAX]

    def _failing(self) -> list[Failing]:
        sql = "select lane, project, failures, kind, detail, at_ms from windows order by at_ms desc, key"
        with self._file.reading() as connection:
            rows = connection.execute(sql).fetchall() if connection is not None else []
        return [Failing(*row) for row in rows]

    def retry_parked(self) -> int:
        """Let everything be tried again; return how many windows were parked."""
        found = len(self.parked())
        if found:
            with self._file.writing() as connection:
                connection.execute("delete from windows where failures >= ?", (FAILURES_MAX,))
                connection.execute("delete from lanes")
        return found


def _short(window: bytes) -> bytes:
    return blake2b(window, digest_size=16).digest()
