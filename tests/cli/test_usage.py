"""``memorize usage``: what models were asked, and how long memories held."""

from __future__ import annotations

from memorize.cli.rows import columns_of
from memorize.clock import SystemClock
from memorize.consolidate.meter import MeterFile
from memorize.consolidate.port import ModelFailed, Reply
from memorize.consolidate.spend import Caps, Meter
from tests.cli.kit import Person


def spends(person: Person, *, purpose: str = "extract", failed: bool = False, cost: int | None = 1_500) -> None:
    meter = Meter(MeterFile(person.home.meter), SystemClock(), Caps(1_000, 10**9))
    project = person.gets("status")["project"]["key"]
    number = meter.begin("claude", purpose, project, b"", 100)  # type: ignore[arg-type]
    meter.end(number, ModelFailed("exit", "x") if failed else Reply("답", 1_000, 50, cost, "haiku", 2.0))


def test_nothing_was_asked_yet(person: Person) -> None:
    found = person.gets("usage")
    assert (found["items"], found["total"], found["stopped"]) == ([], 0, None)
    assert found["today"]["calls_cap"] == 24
    assert person.types("usage").out == "today       0 of 24 calls, 0 of 400,000 tokens\n"
    assert not person.home.meter.exists()


def test_calls_are_shown_by_day_project_and_purpose(person: Person) -> None:
    person.remembers("무엇이든")
    spends(person)
    spends(person)
    spends(person, purpose="judge", failed=True)
    found = person.gets("usage", "--days", "1")
    assert [(one["purpose"], one["calls"], one["failed"]) for one in found["items"]] == [
        ("extract", 2, 0),
        ("judge", 1, 1),
    ]
    assert found["items"][0]["name"] == person.project.name
    assert found["items"][0]["cost_usd"] == 0.003
    assert found["items"][1]["cost_usd"] is None
    assert found["sum"] == {"calls": 3, "failed": 1, "tokens_in": 2_100, "tokens_out": 100, "cost_usd": 0.003}
    head, *rows = person.types("usage").out.splitlines()
    assert head.split() == ["day", "project", "purpose", "by", "calls", "failed", "in", "out", "USD"]
    assert [row.split()[-5:] for row in rows[:-1]] == [
        ["2", "0", "2,000", "100", "0.0030"],
        ["1", "1", "100", "0", "-"],
        ["3", "1", "2,100", "100", "0.0030"],
    ]
    assert {columns_of(line) for line in (head, *rows[:-1])} == {80}


def test_a_cap_that_is_reached_is_told(person: Person) -> None:
    person.home.config.write_text("[consolidate]\ncalls_per_day = 1\n", encoding="utf-8")
    spends(person)
    assert "the cap of 1 model calls a day is reached; it goes on tomorrow" in person.types("usage").out
    assert person.gets("usage")["stopped"] == "the cap of 1 model calls a day is reached; it goes on tomorrow"


def test_lifetimes_tell_what_became_of_memories(person: Person) -> None:
    assert person.types("usage", "--lifetimes").out == "no memory was formed yet\n"
    old = person.remembers("주 데이터베이스는 SQLite다", "--kind", "fact")
    person.remembers("환불은 정수로 센다", "--kind", "constraint")
    person.gets("edit", old, "주 데이터베이스는 PostgreSQL이다")
    lines = {one["kind"]: one for one in person.gets("usage", "--lifetimes")["items"]}
    assert (lines["fact"]["formed"], lines["fact"]["live"], lines["fact"]["superseded"]) == (2, 1, 1)
    assert lines["fact"]["days"] == 0
    assert (lines["constraint"]["formed"], lines["constraint"]["days"]) == (1, None)
    assert "constraint" in person.types("usage", "--lifetimes").out
