"""The score of a memory: importance x recency x relevance, each part kept so that it can be shown.

Pure. Times are milliseconds since 1970; ages are days. Words are counted by a BM25 whose idf is our own, because the
one of the full-text index is zero in a small store.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from memorize import limits

_DAY_MS: Final = 86_400_000
# A store with fewer documents is treated as one of this size: with three notes every word would be "common".
_STORE_SIZE_MIN: Final = 50
# What the full-text index puts in place of an idf that is not positive.
_FTS_IDF_MIN: Final = 1e-6


class Weights(NamedTuple):
    """How the parts of the score are weighed; configuration. ``lexical`` is the words' share beside a model."""

    half_life_days: float = limits.HALF_LIFE_DAYS
    importance: float = 1.0
    recency: float = 1.0
    relevance: float = 1.0
    lexical: float = 0.5


class Relevance(NamedTuple):
    """How well a memory fits a query: by its words, and by its meaning when a model is there."""

    words: float
    meaning: float | None = None


class Score(NamedTuple):
    """The product and its factors, exponents applied; ``fit`` is None when there was no query."""

    total: float
    importance: float
    recency: float
    relevance: float
    grade: int
    age_days: float
    fit: Relevance | None


DEFAULT: Final = Weights()
_LOG2: Final = (0.0, *(math.log2(grade) for grade in range(1, 11)))


class Unit(NamedTuple):
    """One searched term: how many documents hold it, and for each its saturated frequency (BM25 without idf)."""

    df: int
    weights: Mapping[int, float]


def age_days(recency_ms: int, now_ms: int) -> float:
    """Return the age in days, never negative: a time in the future counts as now."""
    return max(0, now_ms - recency_ms) / _DAY_MS


def score(grade: int, recency_ms: int, now_ms: int, fit: Relevance | None = None, weights: Weights = DEFAULT) -> Score:
    """Return the score of a memory of importance ``grade`` (1-10, clamped); without a query relevance is 1."""
    grade = min(10, max(1, grade))
    age = age_days(recency_ms, now_ms)
    importance = (grade / 10) ** weights.importance
    fresh = float(0.5 ** (age / weights.half_life_days)) ** weights.recency
    relevance = (1.0 if fit is None else _blend(fit, weights)) ** weights.relevance
    return Score(importance * fresh * relevance, importance, fresh, relevance, grade, age, fit)


def standing_order(grade: int, recency_ms: int, weights: Weights = DEFAULT) -> float:
    """Return what orders memories as their scores without a query do, at any time: half-lives since 1970 and log2."""
    half_lives = recency_ms / (_DAY_MS * weights.half_life_days)
    return weights.importance * _LOG2[min(10, max(1, grade))] + weights.recency * half_lives


def _blend(fit: Relevance, weights: Weights) -> float:
    """Return the relevance: words alone without a model, else the weighted sum."""
    if fit.meaning is None:
        return _unit_interval(fit.words)
    share = _unit_interval(weights.lexical)
    return _unit_interval(share * fit.words + (1 - share) * fit.meaning)


def _unit_interval(value: float) -> float:
    return min(1.0, max(0.0, value))


def explain(result: Score, weights: Weights = DEFAULT) -> str:
    """Return the score with its factors, for example ``0.62 = importance 8/10 x recency 0.86 (3 d) x ...``."""
    power = "" if weights.importance == 1 else f"^{weights.importance:g}"
    parts = [
        f"importance {result.grade}/10{power}",
        f"recency {result.recency:.2f} ({_age(result.age_days)})",
        f"relevance {result.relevance:.2f}{_fit(result.fit)}",
    ]
    return f"{result.total:.2f} = " + " x ".join(parts)


def _fit(fit: Relevance | None) -> str:
    if fit is None:
        return ""
    meaning = "" if fit.meaning is None else f", meaning {fit.meaning:.2f}"
    return f" (words {fit.words:.2f}{meaning})"


def _age(days: float) -> str:
    """Return an age in the largest unit that is not zero: days, hours, or now."""
    if days >= 1:
        return f"{int(days)} d"
    hours = int(days * 24)
    return f"{hours} h" if hours else "now"


def idf(df: int, size: int) -> float:
    """Return ln(1 + (N - df + .5) / (df + .5)), with N at least 50 and at least df."""
    size = max(size, _STORE_SIZE_MIN, df)
    return math.log(1 + (size - df + 0.5) / (df + 0.5))


def saturated(fts_rank: float, df: int, size: int) -> float:
    """Return the term-frequency part of the full-text index's own bm25 for a single term.

    That rank is -(idf x part) with idf = ln((N - df + .5) / (df + .5)), or 1e-6 when that is not positive; k1 = 1.2
    and b = 0.75 as we want them. The part of a term that a document of average length holds once is 1.
    """
    theirs = math.log((size - df + 0.5) / (df + 0.5)) if 0 < df <= size else 0.0
    return -fts_rank / (theirs if theirs > 0 else _FTS_IDF_MIN)


def coverage(units: Iterable[Unit], size: int) -> dict[int, float]:
    """Return for every document ``min(1, bm25 / sum of idf of all terms)``; 1 = holds everything that was asked."""
    total = 0.0
    sums: dict[int, float] = {}
    for unit in units:
        weight = idf(unit.df, size)
        total += weight
        for document, part in unit.weights.items():
            sums[document] = sums.get(document, 0.0) + weight * part
    return {document: min(1.0, value / total) for document, value in sums.items()} if total else {}
