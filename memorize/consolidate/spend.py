"""What models cost: every call is counted before it is made, and none is made beyond the caps of the day.

A call that never came back keeps what was set aside for it, so that a crash spends nothing that nobody counts. The
day is the local one. Calls dated later than today count for today: a clock that was set back brings none of them back.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Final, NamedTuple

from memorize.clock import Clock
from memorize.consolidate.meter import MeterFile
from memorize.consolidate.port import Model, ModelFailed, Purpose, Reply, Request
from memorize.errors import Problem
from memorize.recall.tokens import estimate

_DAY_MS: Final = 24 * 3600 * 1000
# What the programs send along besides the question, as measured, and room for an answer.
_ALONG_TOKENS: Final = {"claude": 600, "codex": 6_500}
_ANSWER_TOKENS: Final = 500
# A call dated further ahead than this was made by a clock that was wrong; it is dated anew, or it would count for ever.
_AHEAD_DAYS: Final = 1
_OPEN: Final = "open"
OK: Final = "ok"
# These failures cost nothing that anybody counts.
_FREE: Final = frozenset({"missing", "not-logged-in", "rate-limited"})


class Caps(NamedTuple):
    """What a day may cost: calls, and tokens in and out."""

    calls: int
    tokens: int


class Used(NamedTuple):
    """What was asked: calls, how many of them failed, tokens, and the cost as far as it was told (None: never)."""

    calls: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd_micro: int | None = None


class Line(NamedTuple):
    """What one project cost on one day (YYYY-MM-DD, local) for one purpose, by one extractor."""

    day: str
    project: str
    purpose: str
    extractor: str
    used: Used


class CapReached(Exception):  # noqa: N818 - called for what happened
    """A call was not made, since the day's cap would not hold. No attempt, no failure; it goes on the next day."""

    def __init__(self, notice: str) -> None:
        """``notice`` is for the person."""
        super().__init__(notice)
        self.notice = notice


class Meter:
    """Calls, counted and capped. Every method raises Busy, CannotWrite or MeterDamaged."""

    def __init__(self, file: MeterFile, clock: Clock, caps: Caps) -> None:
        """Nothing is read or written yet."""
        self._file = file
        self._clock = clock
        self.caps = caps

    def _day(self) -> int:
        return (self._clock.wall_ms() + self._clock.zone_minutes() * 60_000) // _DAY_MS

    def today(self) -> Used:
        """Return what today has cost, open calls included."""
        with self._file.reading() as connection:
            if connection is None:
                return Used()
            return Used(*connection.execute(f"select {_SUMS} from calls where day >= ?", (self._day(),)).fetchone())

    def notice(self) -> str | None:
        """Return why no model is asked any more today; None while one may be."""
        used = self.today()
        if (text := self._full(used, 0)) is not None:
            return text
        with self._file.reading() as connection:
            if connection is None:
                return None
            row = connection.execute("select text from refusals where day = ?", (self._day(),)).fetchone()
        # The tokens that were wanted, and not the words of then: the caps may be others by now.
        return self._full(used, int(row[0])) if row and row[0].isdecimal() else None

    def _full(self, used: Used, wanted: int) -> str | None:
        """Return the notice when the caps leave no room for another call of ``wanted`` tokens."""
        if used.calls >= self.caps.calls:
            return f"the cap of {self.caps.calls} model calls a day is reached; it goes on tomorrow"
        spent = used.tokens_in + used.tokens_out
        if spent + wanted > self.caps.tokens or spent >= self.caps.tokens:
            said = f"{spent:,} of {self.caps.tokens:,} tokens a day are used"
            return f"{said}; it goes on tomorrow" if not wanted else f"{said} and the next call needs {wanted:,}"
        return None

    def begin(self, extractor: str, purpose: Purpose, project: str, window: bytes, tokens: int) -> int:
        """Count a call that is about to be made, with the tokens it will take at least; return its number.

        Raises CapReached.
        """
        day = self._day()
        with self._file.writing() as connection:
            connection.execute("update calls set day = ? where day > ?", (day, day + _AHEAD_DAYS))
            used = Used(*connection.execute(f"select {_SUMS} from calls where day >= ?", (day,)).fetchone())
            notice = self._full(used, tokens)
            if notice is None:
                row = (day, self._clock.wall_ms(), extractor, "", purpose, project, window, tokens, 0, None, 0, _OPEN)
                marks = ", ".join("?" * len(row))
                number = connection.execute(f"insert into calls values(null, {marks})", row).lastrowid
                assert number is not None
                return number
            connection.execute("insert or replace into refusals values(?, ?)", (day, str(tokens)))
        raise CapReached(notice)

    def end(self, number: int, reply: Reply | ModelFailed, seconds: float = 0.0) -> None:
        """Put down what a call has cost. What was not told stays as it was estimated."""
        model = reply.model if isinstance(reply, Reply) else ""
        outcome = OK if isinstance(reply, Reply) else reply.kind
        took = round((reply.seconds if isinstance(reply, Reply) else seconds) * 1000)
        told = bool(reply.tokens_in or reply.tokens_out) or outcome in _FREE
        with self._file.writing() as connection:
            connection.execute(
                "update calls set model = ?, outcome = ?, milliseconds = ?, cost_usd_micro = ? where n = ?",
                (model, outcome, took, reply.cost_usd_micro, number),
            )
            if told:
                spent = (reply.tokens_in, reply.tokens_out, number)
                connection.execute("update calls set tokens_in = ?, tokens_out = ? where n = ?", spent)

    def usage(self, days: int) -> list[Line]:
        """Return what the last days cost, today included, the latest day first."""
        sql = (
            f"select day, project, purpose, extractor, {_SUMS} from calls where day > ?"
            " group by day, project, purpose, extractor order by day desc, project, purpose, extractor"
        )
        with self._file.reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(sql, (self._day() - days,)).fetchall()
        return [Line(_date(row[0]), row[1], row[2], row[3], Used(*row[4:])) for row in rows]


_SUMS: Final = (
    "count(*), coalesce(sum(outcome not in ('ok', 'open')), 0), coalesce(sum(tokens_in), 0),"
    " coalesce(sum(tokens_out), 0), sum(cost_usd_micro)"
)


def _date(day: int) -> str:
    try:
        return datetime.fromtimestamp(day * _DAY_MS / 1000, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return f"day {day}"


def total(lines: list[Line]) -> Used:
    """Return the sum of lines."""
    costs = [line.used.cost_usd_micro for line in lines if line.used.cost_usd_micro is not None]
    return Used(
        sum(line.used.calls for line in lines),
        sum(line.used.failed for line in lines),
        sum(line.used.tokens_in for line in lines),
        sum(line.used.tokens_out for line in lines),
        sum(costs) if costs else None,
    )


class Metered:
    """A model whose every call is counted, for one project and window."""

    def __init__(self, model: Model, meter: Meter, project: str, window: bytes = b"") -> None:
        """``window`` is the window's key, empty where there is none."""
        self._model = model
        self._meter = meter
        self._project = project
        self._window = window

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    def ask(self, request: Request) -> Reply:
        """Return the answer. Raises ModelFailed, and CapReached before anything was asked."""
        number = self._meter.begin(self.name, request.purpose, self._project, self._window, needs(self.name, request))
        try:
            reply = self._model.ask(request)
        except ModelFailed as failed:
            self._put_down(number, failed)
            raise
        self._put_down(number, reply)
        return reply

    def _put_down(self, number: int, reply: Reply | ModelFailed) -> None:
        # An answer that was paid for is not lost because the meter cannot be written; its estimate stands already.
        with contextlib.suppress(Problem):
            self._meter.end(number, reply)


def needs(extractor: str, request: Request) -> int:
    """Return the tokens that a call will take at least, so that a dry run and the cap reckon alike."""
    along = _ALONG_TOKENS.get(extractor, 0)
    return estimate(request.system) + estimate(request.prompt) + along + _ANSWER_TOKENS
