"""The score and its parts."""

from __future__ import annotations

import math
import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.recall.rank import Relevance, Unit, Weights, coverage, explain, idf, saturated, score

DAY = 86_400_000
NOW = 1_796_000_000_000
GRADES = st.integers(1, 10)
SHARES = st.floats(0, 1)


def test_the_explanation_looks_as_promised():
    result = score(8, NOW - 3 * DAY, NOW, Relevance(0.84, 0.95))
    assert explain(result) == (
        "0.62 = importance 8/10 x recency 0.86 (3 d) x relevance 0.90 (words 0.84, meaning 0.95)"
    )
    assert explain(score(10, NOW - 5 * 3_600_000, NOW, Relevance(0.5))) == (
        "0.49 = importance 10/10 x recency 0.99 (5 h) x relevance 0.50 (words 0.50)"
    )
    assert explain(score(5, NOW, NOW)) == "0.50 = importance 5/10 x recency 1.00 (now) x relevance 1.00"


@given(
    GRADES,
    st.integers(0, 400 * DAY),
    SHARES,
    st.none() | SHARES,
    st.floats(0.1, 3),
    st.floats(0.1, 3),
    st.floats(0.1, 3),
)
def test_the_parts_multiply_to_the_score(grade, age, words, meaning, first, second, third):
    weights = Weights(importance=first, recency=second, relevance=third)
    result = score(grade, NOW - age, NOW, Relevance(words, meaning), weights)
    assert result.total == result.importance * result.recency * result.relevance
    assert 0 <= result.total <= 1
    blended = words if meaning is None else 0.5 * words + 0.5 * meaning
    assert math.isclose(result.importance, (grade / 10) ** first)
    assert math.isclose(result.recency, 0.5 ** (age / DAY / 14 * second), abs_tol=1e-300)
    assert math.isclose(result.relevance, blended**third, abs_tol=1e-12)


def test_the_printed_factors_multiply_to_the_printed_score():
    for grade in range(1, 11):
        for days in (0, 1, 3, 14, 40):
            text = explain(score(grade, NOW - days * DAY, NOW, Relevance(0.84, 0.95)))
            total, half, fresh, fit = _numbers(text)
            assert abs(total - half * fresh * fit) < 0.02


def _numbers(text: str) -> tuple[float, float, float, float]:
    found = re.match(r"([\d.]+) = importance (\d+)/10 x recency ([\d.]+) \(.*?\) x relevance ([\d.]+)", text)
    assert found
    total, grade, fresh, fit = (float(part) for part in found.groups())
    return total, grade / 10, fresh, fit


def test_two_weeks_halve_and_the_half_life_can_be_set():
    assert score(10, NOW - 14 * DAY, NOW).total == pytest.approx(0.5)
    assert score(10, NOW - 14 * DAY, NOW, weights=Weights(half_life_days=7)).total == pytest.approx(0.25)


def test_a_time_in_the_future_counts_as_now_and_an_impossible_one_only_as_very_old():
    assert score(10, NOW + 30 * DAY, NOW).total == 1.0
    assert score(10, 0, NOW).total == 0.0
    assert score(10, -(10**18), NOW).recency == 0.0


def test_an_importance_out_of_range_is_clamped():
    assert score(99, NOW, NOW).grade == 10
    assert score(-3, NOW, NOW).grade == 1


@given(GRADES, GRADES, st.integers(0, 60 * DAY), st.integers(0, 60 * DAY), st.integers(0, 60 * DAY))
def test_the_logarithmic_order_is_the_order_of_the_product_at_any_time(one, other, age, later, now):
    """log2(importance) + t / 14 days is what the index sorts by."""

    def key(grade: int, at: int) -> float:
        return math.log2(grade) + at / DAY / 14

    first, second = score(one, -age, now), score(other, -later, now)
    if not math.isclose(first.total, second.total, rel_tol=1e-9):
        assert (first.total > second.total) == (key(one, -age) > key(other, -later))


def test_idf_is_positive_in_a_store_of_one_document():
    assert idf(1, 1) == idf(1, 50) > 3
    assert idf(50, 50) > 0
    assert idf(0, 10_000) > idf(1, 10_000) > idf(9_000, 10_000) > 0


def test_a_document_that_holds_every_word_covers_the_query():
    units = [Unit(1, {7: 1.0}), Unit(2, {7: 1.3, 9: 1.0}), Unit(0, {})]
    covered = coverage(units[:2], 100)
    assert covered[7] == 1.0
    assert covered[9] == pytest.approx(idf(2, 100) / (idf(1, 100) + idf(2, 100)))
    assert coverage(units, 100)[7] < 0.8, "a word that nothing holds lowers the coverage"
    assert coverage([], 100) == {}


def test_the_full_text_rank_gives_back_its_term_frequency_part():
    texts = [
        "lock lock lock file",
        "lock",
        "other words here",
        "잠금 파일",
        "more",
        "one lock among several other words",
    ]
    base = sqlite3.connect(":memory:")
    base.execute("create virtual table f using fts5(t, tokenize='porter unicode61')")
    base.executemany("insert into f(t) values (?)", [(text,) for text in texts])
    average = sum(len(text.split()) for text in texts) / len(texts)
    rows = base.execute("select rowid, bm25(f) from f where f match 'lock'").fetchall()
    assert len(rows) == 3
    for row, rank in rows:
        words = texts[row - 1].split()
        frequency = words.count("lock")
        part = frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * len(words) / average))
        assert saturated(rank, 3, len(texts)) == pytest.approx(part)
    base.close()
