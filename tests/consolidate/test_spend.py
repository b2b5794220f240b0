"""What models cost, the caps of a day, and what waits after a failure."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memorize.consolidate import attempts
from memorize.consolidate.attempts import Attempts, lane
from memorize.consolidate.meter import MeterFile
from memorize.consolidate.port import Kind, ModelFailed, Reply, Request
from memorize.consolidate.spend import CapReached, Caps, Line, Meter, Metered, Used, needs, total
from memorize.errors import CannotWrite, MeterDamaged
from tests.consolidate.programs import question

DAY = 24 * 3600 * 1000
HOUR = 3600 * 1000
# 2026-11-29, 14:00 UTC.
NOON = 1_795_960_800_000


class Hand:
    """A clock that a test sets."""

    def __init__(self, wall: int = NOON, zone: int = 0) -> None:
        self.wall, self.zone = wall, zone

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ns(self) -> int:
        return 0

    def boot(self) -> bytes:
        return bytes(16)

    def zone_minutes(self) -> int:
        return self.zone


class Scripted:
    """A model that answers what it is told to."""

    name = "claude"

    def __init__(self, *answers: Reply | ModelFailed) -> None:
        self.answers = list(answers)
        self.asked = 0

    def ask(self, request: Request) -> Reply:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else reply()
        if isinstance(answer, ModelFailed):
            raise answer
        return answer


def reply(tokens_in: int = 100, tokens_out: int = 20, cost: int | None = 7) -> Reply:
    return Reply("답", tokens_in, tokens_out, cost, "haiku", 1.5)


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "meter.sqlite"


def meter(path: Path, clock: Hand, calls: int = 24, tokens: int = 400_000) -> Meter:
    return Meter(MeterFile(path), clock, Caps(calls, tokens))


def asks(counted: Meter, times: int = 1, project: str = "p") -> int:
    """Ask so often, or until the cap; return how often the model was called."""
    model = Scripted()
    for _ in range(times):
        try:
            Metered(model, counted, project, b"w").ask(question())
        except CapReached:
            break
    return model.asked


# -- counting


def test_looking_makes_no_file(path: Path, clock: Hand) -> None:
    counted = meter(path, clock)
    assert (counted.today(), counted.notice(), counted.usage(7)) == (Used(), None, [])
    failed = Attempts(MeterFile(path), clock)
    assert (failed.boundary(), failed.due(b"w", "l"), failed.parked(), failed.retry_parked()) == (True, "go", [], 0)
    failed.succeeded(b"w", "l")
    failed.keep_only([])
    assert not path.exists()


def test_every_call_is_counted_with_tokens_and_cost(path: Path, clock: Hand) -> None:
    counted = meter(path, clock)
    asks(counted, 2, "결제")
    Metered(Scripted(reply(5, 6, None)), counted, "p").ask(question()._replace(purpose="judge"))
    clock.wall += DAY
    asks(counted, 1, "p")
    assert counted.today() == Used(1, 0, 100, 20, 7)
    assert counted.usage(7) == [
        Line("2026-11-30", "p", "extract", "claude", Used(1, 0, 100, 20, 7)),
        Line("2026-11-29", "p", "judge", "claude", Used(1, 0, 5, 6, None)),
        Line("2026-11-29", "결제", "extract", "claude", Used(2, 0, 200, 40, 14)),
    ]
    assert total(counted.usage(7)) == Used(4, 0, 305, 66, 21)
    assert [line.day for line in counted.usage(1)] == ["2026-11-30"]


def test_the_file_is_private_also_when_it_was_not(path: Path, clock: Hand) -> None:
    asks(meter(path, clock))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    asks(meter(path, clock))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_failed_call_costs_what_it_says_or_else_what_was_set_aside_for_it(path: Path, clock: Hand) -> None:
    counted = meter(path, clock)
    aside = needs("claude", question())
    answers = {"refused": (9, 3), "timeout": (0, 0), "exit": (0, 0), "not-logged-in": (0, 0), "rate-limited": (0, 0)}
    for kind, (tokens_in, tokens_out) in answers.items():
        failure = ModelFailed(kind, "x", tokens_in=tokens_in, tokens_out=tokens_out)  # type: ignore[arg-type]
        with pytest.raises(ModelFailed):
            Metered(Scripted(failure), counted, "p").ask(question())
    assert counted.today() == Used(5, 5, 9 + 2 * aside, 3, None)


def test_a_call_that_never_came_back_is_counted_all_the_same(path: Path, clock: Hand) -> None:
    counted = meter(path, clock, calls=1)
    counted.begin("claude", "extract", "p", b"w", 1_000)  # and the worker was killed
    assert counted.today() == Used(1, 0, 1_000, 0, None)
    assert asks(counted) == 0


def test_an_answer_is_not_lost_when_the_meter_cannot_be_written(path: Path, clock: Hand) -> None:
    class Full(Meter):
        def end(self, number: int, reply: Reply | ModelFailed, seconds: float = 0.0) -> None:
            raise CannotWrite(path=path, detail="No space left on device")

    assert Metered(Scripted(reply()), Full(MeterFile(path), clock, Caps(1, 10_000)), "p").ask(question()) == reply()


# -- caps


def test_beyond_the_cap_no_call_is_made_and_the_next_day_it_goes_on(path: Path, clock: Hand) -> None:
    counted = meter(path, clock, calls=3)
    assert counted.notice() is None
    assert asks(counted, 10) == 3
    assert counted.notice() == "the cap of 3 model calls a day is reached; it goes on tomorrow"
    clock.wall += DAY
    assert counted.notice() is None
    assert asks(counted, 10) == 3


@pytest.mark.parametrize("first", [{"calls": 3}, {"tokens": 100}])
def test_a_cap_that_was_raised_stops_nothing_any_more(path: Path, clock: Hand, first: dict[str, int]) -> None:
    assert asks(meter(path, clock, **first), 10) < 10
    assert meter(path, clock, **first).notice() is not None
    raised = meter(path, clock)
    assert raised.notice() is None
    assert asks(raised) == 1
    assert raised.notice() is None


def test_a_cap_of_no_calls_means_none(path: Path, clock: Hand) -> None:
    counted = meter(path, clock, calls=0)
    assert asks(counted) == 0
    assert "cap of 0" in (counted.notice() or "")


def test_the_cap_of_tokens_leaves_out_a_call_that_would_not_fit(path: Path, clock: Hand) -> None:
    aside = needs("claude", question())
    counted = meter(path, clock, tokens=aside + 120)
    assert asks(counted, 5) == 2
    assert "240 of" in (counted.notice() or "")
    clock.wall += DAY
    assert counted.notice() is None
    assert asks(meter(path, clock, tokens=aside - 1)) == 0


def test_the_day_is_the_persons(path: Path) -> None:
    seoul = Hand(NOON, zone=9 * 60)  # 23:00 there
    counted = meter(path, seoul, calls=1)
    assert asks(counted) == 1
    assert counted.usage(1)[0].day == "2026-11-29"
    seoul.wall += HOUR
    assert asks(counted) == 1
    assert counted.usage(1)[0].day == "2026-11-30"


@pytest.mark.parametrize("back", [HOUR, DAY, 2 * DAY, 400 * DAY])
def test_a_clock_that_jumps_back_gives_no_call_back(path: Path, clock: Hand, back: int) -> None:
    counted = meter(path, clock, calls=3)
    assert asks(counted, 10) == 3
    clock.wall -= back
    assert asks(counted, 10) == 0
    assert counted.today().calls == 3
    assert counted.notice() is not None


def test_a_clock_that_goes_to_and_fro_over_midnight_gives_no_call_back(path: Path, clock: Hand) -> None:
    counted = meter(path, clock, calls=3)
    assert asks(counted, 10) == 3
    for _ in range(3):
        clock.wall -= DAY
        assert asks(counted, 10) == 0
        clock.wall += DAY
        assert asks(counted, 10) == 0


def test_calls_of_a_clock_that_was_years_ahead_do_not_stop_it_for_years(path: Path, clock: Hand) -> None:
    counted = meter(path, clock, calls=3)
    clock.wall += 1_000 * DAY
    assert asks(counted, 10) == 3
    clock.wall = NOON
    assert asks(counted, 10) == 0
    clock.wall += DAY
    assert asks(counted, 10) == 3


def test_two_workers_at_once_keep_to_one_cap(path: Path, clock: Hand) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.consolidate.test_spend import *;"
        "print(asks(meter(Path(sys.argv[1]), Hand(), calls=20), 30))"
    )
    command = [sys.executable, "-c", code, str(path)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environ) for _ in range(2)]
    counts = [int(worker.communicate(timeout=120)[0]) for worker in workers]
    assert sum(counts) == 20
    assert meter(path, clock).today().calls == 20


def test_a_meter_that_cannot_be_read_stops_every_call(path: Path, clock: Hand) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 100)
    model = Scripted()
    with pytest.raises(MeterDamaged):
        Metered(model, meter(path, clock), "p").ask(question())
    assert model.asked == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_meter_that_cannot_be_written_stops_every_call(path: Path, clock: Hand) -> None:
    path.parent.mkdir(mode=0o500)
    with pytest.raises(CannotWrite):
        asks(meter(path, clock))


def test_a_file_that_was_only_begun_is_finished(path: Path, clock: Hand) -> None:
    path.parent.mkdir()
    path.touch()
    counted = meter(path, clock)
    assert counted.today() == Used()
    assert asks(counted) == 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()


# -- attempts

ONE = lane("claude", "세션", "p")


def tried(failed: Attempts, boundaries: int, kind: Kind, window: bytes = b"w", of: str = ONE) -> list[int]:
    """Let so many boundaries pass; return those at which the window was tried. Every try fails."""
    at = []
    for number in range(boundaries):
        if failed.boundary() and failed.due(window, of) == "go":
            at.append(number)
            failed.gave_up(window, of, "p", ModelFailed(kind, "까닭"))
    return at


@pytest.mark.parametrize("kind", ["timeout", "refused", "garbled", "rate-limited", "empty"])
def test_a_window_waits_1_2_4_8_boundaries_and_is_parked_after_five_failures(
    path: Path, clock: Hand, kind: Kind
) -> None:
    failed = Attempts(MeterFile(path), clock)
    assert tried(failed, 100, kind) == [0, 2, 5, 10, 19]
    assert failed.due(b"w", ONE) == "parked"
    assert failed.due(b"w", ONE, by_hand=True) == "parked"
    [parked] = failed.parked()
    assert parked == attempts.Failing(ONE, "p", 5, kind, "까닭", NOON)


def test_what_is_parked_is_tried_again_when_asked_to(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    tried(failed, 100, "timeout")
    assert failed.retry_parked() == 1
    assert failed.parked() == []
    assert tried(failed, 100, "timeout") == [0, 2, 5, 10, 19]


def test_by_hand_nothing_waits_and_no_boundary_is_used_up(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    failed.failed(b"w", ONE, "p", "refused", "")
    assert [failed.due(b"w", ONE, by_hand=True) for _ in range(3)] == ["go"] * 3
    assert [failed.due(b"w", ONE) for _ in range(3)] == ["wait", "go", "go"]


def test_a_window_that_fails_keeps_no_other_session_waiting_unless_the_service_failed(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    failed.failed(b"w", ONE, "p", "refused", "")
    assert failed.boundary()
    assert failed.due(b"other", lane("codex", "s", "p")) == "go"
    failed.failed(b"w", ONE, "p", "rate-limited", "")
    assert not failed.boundary()


def test_a_session_that_goes_on_still_waits_though_its_window_is_another_one(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    for size in range(3):
        failed.failed(b"w" * (size + 1), ONE, "p", "garbled", "")
    assert [failed.due(b"wwww", ONE) for _ in range(5)] == ["wait"] * 4 + ["go"]


def test_success_ends_every_wait(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    for _ in range(3):
        failed.failed(b"w", ONE, "p", "timeout", "")
    failed.succeeded(b"w", ONE)
    assert failed.boundary()
    assert failed.due(b"w", ONE) == "go"
    assert tried(failed, 3, "refused") == [0, 2]


def test_windows_that_are_no_longer_open_are_forgotten(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    for window in (b"gone", b"open"):
        for _ in range(5):
            failed.failed(window, ONE, "p", "refused", "")
    failed.keep_only([b"open", b"new"])
    assert len(failed.parked()) == 1
    assert failed.due(b"open", ONE) == "parked"


def test_no_wait_is_longer_than_64_boundaries(path: Path, clock: Hand) -> None:
    failed = Attempts(MeterFile(path), clock)
    for number in range(40):
        failed.failed(bytes([number]), ONE, "p", "refused", "")
    assert [failed.due(b"w", ONE) for _ in range(66)].count("wait") == 64
