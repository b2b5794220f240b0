"""What verbs say: whole sentences, one for one and many for many, dates instead of numbers, lines that fit."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from memorize.cli.rows import columns_of, fit, padded
from memorize.cli.table import VERBS
from memorize.counted import counted
from tests.cli.kit import Person


def test_one_is_one_and_more_are_many() -> None:
    assert [counted(number, "rule") for number in (0, 1, 2, 1234)] == ["0 rules", "1 rule", "2 rules", "1,234 rules"]
    assert [counted(number, "memory") for number in (1, 2)] == ["1 memory", "2 memories"]
    assert counted(2, "day") == "2 days"


def test_status_counts_like_a_person(person: Person) -> None:
    person.remembers("Only pnpm.", "--kind", "rule")
    said = person.types("status").out
    assert "1 memory (1 rule, 0 disputed)" in said
    assert "has not run yet; by rules, no model calls" in said


def test_the_name_of_a_project_takes_one_line_whatever_it_is(person: Person) -> None:
    place = person.project.parent / "새\n줄 'n\x1b[31m\" 것"
    place.mkdir()
    (identity,) = person.types("remember", "기억.", "--project", str(place)).out.splitlines()
    assert "for 새 줄 'n\" 것: fact" in identity
    assert len(person.types("status", "--project", str(place)).out.splitlines()) == 5
    shown = person.types("search", "기억", "--project", str(place))
    assert "in 새 줄 'n\" 것 + personal" in shown.err


def test_the_help_has_a_whole_sentence_on_one_line_for_every_verb(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = person.types("--help").out.splitlines()
    shown = {line.split()[0]: line for line in lines if line.startswith("  ") and line.endswith(".")}
    assert set(VERBS) <= set(shown)
    assert all(columns_of(line) <= 80 for line in lines)
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage:")]


@pytest.mark.parametrize("group", ["sync", "peer", "key", "projects"])
def test_the_help_of_a_group_says_what_each_verb_does_in_whole_sentences(
    person: Person, monkeypatch: pytest.MonkeyPatch, group: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = person.types(group, "--help").out.partition("Commands:")[2].split("\n")[1:-1]
    assert lines
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_a_verb_that_is_not_there_names_the_nearest(person: Person) -> None:
    assert 'did you mean "search"?' in person.types("serch", "x").err
    said = person.types("zzz")
    assert said.code == 2
    assert "did you mean" not in said.err


def test_too_few_digits_are_told_as_such(person: Person) -> None:
    identity = person.remembers("기억.")
    for short in ("", identity[:1], identity[:3]):
        said = person.types("show", short)
        assert said.code == 13
        assert "at least 4 digits" in said.err


def test_show_gives_dates_and_indents_further_lines(person: Person) -> None:
    identity = person.remembers("여러 줄\n둘째 줄")
    lines = person.types("show", identity).out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("text")]
    assert lines[at : at + 2] == [f"{'text':14} 여러 줄", f"{'':14} 둘째 줄"]
    for name in ("wall", "recency"):
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        assert line.endswith(" UTC")
    assert not next(line for line in lines if line.startswith("pinned")).endswith("False")


def test_a_list_fits_the_columns_and_has_a_date(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    person.remembers("아주 긴 기억 " * 60)
    monkeypatch.setenv("COLUMNS", "80")
    (line,) = person.types("list").out.splitlines()
    assert columns_of(line) <= 80
    assert line.endswith("…")
    assert all(columns_of(line) <= 80 for line in person.types("log").out.splitlines())
    assert any(month in line for month in "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())


@pytest.mark.parametrize(("text", "columns", "cut"), [("가나다라", 8, "가나다라"), ("가나다라", 7, "가나다…")])
def test_wide_characters_take_two_columns(text: str, columns: int, cut: str) -> None:
    assert fit(text, columns) == cut


@pytest.mark.parametrize("text", ["", "가", "가나다라", "e\u0301clair", "long enough to be cut"])
def test_a_cell_takes_the_columns_that_it_has(text: str) -> None:
    assert columns_of(padded(text, 7)) == 7


def test_a_project_that_is_not_there_is_refused(person: Person) -> None:
    for verb in (("search", "x"), ("list",), ("pack", "x"), ("remember", "x")):
        said = person.types(*verb, "--project", str(person.project / "없음"))
        assert said.code == 2
        assert "does not exist" in said.err


def test_setup_says_restart_once_and_that_there_is_no_history(person: Person) -> None:
    said = person.types("setup", "--agent", "claude,codex").out
    assert said.count("Restart") == 1
    assert "Restart Claude Code and Codex" in said
    assert "no old sessions" in said


def test_pin_and_confirm_say_whole_sentences(person: Person, tmp_path: Path) -> None:
    identity = person.remembers("Pinned. 고정.")
    for verb in ("pin", "confirm"):
        for line in person.types(verb, identity).out.splitlines():
            assert line[:1].isalpha()
            assert ".:" not in line


def test_no_verb_lets_what_a_memory_says_move_the_cursor_or_turn_the_line(person: Person) -> None:
    identity = person.remembers("기억\x1b]0;title\x07 \u202etfel\r\x1b[2J two\nlines \x9b31m")
    words = [(verb, identity) for verb in ("show", "history", "pin", "unpin", "confirm", "forget", "restore")]
    words += [("edit", identity, "--importance", "3"), ("list",), ("list", "--old"), ("search", "기억"), ("log",)]
    words += [("erase", "--dry-run", identity), ("conflicts",), ("pack", "기억"), ("projects",), ("status",)]
    for line in words:
        said = person.types(*line)
        assert said.code == 0, said
        assert [char for char in said.out + said.err if unicodedata.category(char)[0] == "C" and char != "\n"] == [], (
            line
        )
