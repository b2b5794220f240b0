"""The same command is known again, however it is spaced, and whichever way the agent went to its directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.index import commands
from memorize.index.commands import normal, number

SAME = [
    ("make  test", "make test"),
    ("  make\ttest ; ", "make test"),
    ("make \\\n  test", "make test"),
    ("make a\r\n\r\n  make b", "make a\nmake b"),
    ("echo '가   나'   x", "echo '가   나' x"),
    ('echo "a  \\"  b"', 'echo "a  \\"  b"'),
    ("echo \\  x", "echo \\  x"),
    ('echo "never   closed', 'echo "never closed'),
    ("", ""),
]


@pytest.mark.parametrize(("given", "wanted"), SAME)
def test_white_space_between_words_is_folded_and_inside_quotes_kept(given: str, wanted: str) -> None:
    assert normal(given) == (wanted, "")


def test_a_command_in_a_directory_below_is_the_same_by_whatever_way() -> None:
    wanted = normal("npm test", "웹/ui")
    assert (
        normal("cd ui && npm test", "웹")
        == normal("cd 웹/ui; npm  test")
        == normal("cd 웹\ncd ./ui && npm test")
        == wanted
    )
    assert number("npm test", "웹/ui") == number("cd ui && npm test", "웹") != number("npm test", "웹")


def test_a_directory_above_the_checkout_or_an_absolute_one_stays_part_of_the_command() -> None:
    assert normal("cd .. && make") == ("cd .. && make", "")
    assert normal("cd /srv && make", "a") == ("cd /srv && make", "a")
    assert normal("cd .. && make", "a/b") == ("make", "a")


@given(st.text(alphabet="a b'\"\\\n;&cd/.$가", max_size=80), st.sampled_from(["", "a", "a/나"]))
def test_a_normal_form_is_its_own_normal_form(line: str, folder: str) -> None:
    once, inside = normal(line, folder)
    assert normal(once, inside)[0] == once or once.startswith("cd ")
    assert 0 <= number(line, folder) < 2**56


def test_a_long_line_takes_time_that_grows_with_it_and_no_more() -> None:
    for line in ('"' * 100_000, "'\"" * 50_000, "cd a && " * 20_000, "\\" * 99_999, " \n" * 50_000):
        normal(line)


@given(
    st.lists(st.sampled_from(["git", "가 나", " ", "  ", "\t", "\n", "'", '"', "\\", ";", "\xa0"]), max_size=12).map(
        "".join
    )
)
def test_a_line_that_needs_no_folding_is_what_folding_makes_of_it(line: str) -> None:
    assert normal(line)[0] == commands._folded(line).rstrip(" \n;")
