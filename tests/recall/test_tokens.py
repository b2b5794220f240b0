"""The token estimate and the cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memorize.recall.tokens import estimate, shorten


def test_english_costs_about_a_third_and_korean_one_token_a_character():
    assert estimate("") == 0
    assert estimate("a" * 32) == 10
    assert estimate("한국어") == 3
    assert estimate("ab 가") == 2
    assert estimate("\U0001f600") == 2


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_parts_never_cost_less_than_the_whole(one, other):
    assert estimate(one) + estimate(other) >= estimate(one + other) >= max(estimate(one), estimate(other))


@given(st.text(max_size=200), st.integers(0, 60), st.none() | st.integers(0, 120))
def test_a_cut_text_keeps_to_both_bounds_and_says_that_it_was_cut(text, tokens, octets):
    cut = shorten(text, tokens, octets)
    assert estimate(cut) <= tokens
    assert octets is None or len(cut.encode("utf-8", "surrogatepass")) <= octets
    if cut and cut != text:
        assert cut.endswith(" ...")
        assert text.startswith(cut.removesuffix(" ..."))


def test_a_cut_prefers_a_sentence_end_and_never_splits_a_word():
    text = "PostgreSQL replaced SQLite on the server. Two writers locked each other for minutes."
    assert shorten(text, 16) == "PostgreSQL replaced SQLite on the server. ..."
    assert shorten(text, 24) == "PostgreSQL replaced SQLite on the server. Two writers locked each other ..."
    assert shorten("마이그레이션은 db/migrations 폴더에 둔다. 그리고 되돌릴 수 있게 쓴다.", 20).endswith("...")


def test_a_text_that_fits_stays_as_it_is_and_no_room_gives_nothing():
    assert shorten("결제 금액은 정수다.", 50) == "결제 금액은 정수다."
    assert shorten("anything", 0) == ""
