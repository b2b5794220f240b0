"""Find memories, and observations when asked, by words; score them; never be silent when somebody searches.

The full-text index proposes candidates; their coverage of the query is reckoned here with our own idf. A small store
is scored whole, so there the answer does not depend on the index's own ranking at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from memorize import model
from memorize.index.query import MEMORIES, OBSERVATIONS, Candidate, Query, Row, Scope
from memorize.index.text import query_units
from memorize.recall.rank import DEFAULT, Relevance, Score, Unit, Weights, coverage, saturated, score

# Up to here every match is scored; beyond, the candidates that the index ranks best.
SMALL_STORE: Final = 5_000
CANDIDATES_MAX: Final = 500
_ENOUGH: Final = 10
# On a large store a term in more than this share of the documents is dropped: it costs most and tells least.
COMMON_SHARE: Final = 0.2
# A whole page pasted as a query is read as far as this.
TERMS_MAX: Final = 64
# An observation is raw material; it never outranks a memory that fits as well.
OBSERVATION_GRADE: Final = 3
# For the query of a session start: rarer terms only, and not many of them, since nobody waits for a session to start.
_RARE_DOCUMENTS_MIN: Final = 3
_RARE_DOCUMENTS_MAX: Final = 100
_RARE_TERMS_MAX: Final = 8
_RARE_LOOKED_AT_MAX: Final = 24


class Hit(NamedTuple):
    """What was found, with its score."""

    row: Row
    score: Score


class Results(NamedTuple):
    """The best hits and how many memories there are in what was searched."""

    hits: tuple[Hit, ...]
    total: int


class _Found(NamedTuple):
    """A candidate with its score, before its row is read."""

    table: str
    candidate: Candidate
    score: Score

    @property
    def order(self) -> tuple[float, float, float, bytes]:
        relevance = self.score.relevance
        return (-self.score.total, -relevance, -self.candidate.recency, self.candidate.id)


def search(
    query: Query,
    text: str,
    projects: Sequence[str],
    scopes: Sequence[str] = model.SCOPES,
    now_ms: int = 0,
    limit: int = 10,
    *,
    include_observations: bool = False,
    kinds: Collection[str] | None = None,
    include_dead: bool = False,
    include_review: bool = False,
    floor: float = 0.0,
    weights: Weights = DEFAULT,
) -> Results:
    """Return the best hits for a text, or the memories in order of rank when the text has no words.

    Every hit is shown however weak, unless the caller sets a ``floor`` for the coverage of the words. ``projects`` are
    keys; ``include_dead`` adds superseded, forgotten and expired memories, ``include_review`` those that wait for a
    person.
    """
    scope = Scope(tuple(projects), tuple(scopes), tuple(sorted(kinds or ())), include_dead, include_review, now_ms)
    total = query.count(scope)
    units = query_units(text)[:TERMS_MAX]
    if not units:
        rows = query.ranked(scope, limit)
        return Results(
            tuple(Hit(row.at(now_ms), score(row.importance, row.recency, now_ms, None, weights)) for row in rows), total
        )
    tables = (MEMORIES, OBSERVATIONS) if include_observations else (MEMORIES,)
    found: list[_Found] = []
    for table in tables:
        hits = _lexical(query, table, units, scope)
        found += _scored(table, hits, now_ms, weights)
    if not found and not floor:
        # Somebody asked: a word that begins like the one asked for is better than nothing.
        prefixes = query_units(text, prefix=True)[:TERMS_MAX]
        for table in tables:
            found += _scored(table, _lexical(query, table, prefixes, scope), now_ms, weights)
    found = [one for one in found if one.score.fit is None or one.score.fit.words >= floor]
    found.sort(key=lambda one: one.order)
    read = _read(query, found[: max(0, limit)])
    return Results(tuple(hit._replace(row=hit.row.at(now_ms)) for hit in read), total)


def related(
    query: Query, text: str, projects: Sequence[str], now_ms: int, limit: int, weights: Weights = DEFAULT
) -> list[Hit]:
    """Return the best hits among a project's memories for a made-up query, at the cost of a session start.

    Terms that many memories hold are left out, whatever the size of the store; the rest are few.
    """
    size = query.size(MEMORIES)
    most = max(_RARE_DOCUMENTS_MIN, min(_RARE_DOCUMENTS_MAX, int(size * COMMON_SHARE)))
    counted = [(query.frequency(MEMORIES, unit, most + 1), unit) for unit in query_units(text)[:_RARE_LOOKED_AT_MAX]]
    rare = sorted((df, unit) for df, unit in counted if 0 < df <= most)[:_RARE_TERMS_MAX]
    if not rare:
        return []
    scope = Scope(tuple(projects), model.SCOPES, (), dead=False, now_ms=now_ms)
    units = [unit for _, unit in rare]
    candidates = query.best(MEMORIES, units, scope, CANDIDATES_MAX // 4)
    covered = _coverage(query, MEMORIES, rare, size, [one.doc for one in candidates])
    found = _scored(MEMORIES, [(one, covered[one.doc]) for one in candidates if one.doc in covered], now_ms, weights)
    found.sort(key=lambda one: one.order)
    return list(_read(query, found[:limit]))


def _lexical(query: Query, table: str, units: Sequence[str], scope: Scope) -> list[tuple[Candidate, float]]:
    """Return the candidates of one table with their coverage of the query."""
    size = query.size(table)
    counted = [(query.frequency(table, unit), unit) for unit in units]
    small = size <= SMALL_STORE
    kept = counted
    if not small:
        kept = [(df, unit) for df, unit in counted if df <= size * COMMON_SHARE] or counted
    if not any(df for df, _ in kept):
        kept = counted
    sought = [unit for df, unit in kept if df] if small else _rarest(kept)
    if not sought:
        return []
    candidates = query.best(table, sought, scope, None if small else CANDIDATES_MAX)
    documents = [one.doc for one in candidates]
    covered = _coverage(query, table, kept, size, documents)
    return [(one, covered[one.doc]) for one in candidates if one.doc in covered]


def _rarest(counted: Sequence[tuple[int, str]]) -> list[str]:
    """Return the rarest terms, as many as it takes to have documents enough to choose from.

    The common ones still count when what was found is scored; looking up everything that holds them is what costs.
    """
    chosen: list[str] = []
    documents = 0
    for df, unit in sorted(pair for pair in counted if pair[0]):
        if documents >= _ENOUGH * CANDIDATES_MAX:
            break
        chosen.append(unit)
        documents += df
    return chosen


def _coverage(
    query: Query, table: str, counted: Sequence[tuple[int, str]], size: int, documents: Sequence[int]
) -> Mapping[int, float]:
    """Return how much of the query each of the documents covers."""
    among = documents if len(documents) <= CANDIDATES_MAX else None
    units = [
        Unit(df, {doc: saturated(rank, df, size) for doc, rank in query.weights(table, unit, among)} if df else {})
        for df, unit in counted
    ]
    return coverage(units, size)


def _scored(table: str, covered: Sequence[tuple[Candidate, float]], now_ms: int, weights: Weights) -> list[_Found]:
    """Return the candidates with their scores."""
    return [
        _Found(table, one, score(one.importance or OBSERVATION_GRADE, one.recency, now_ms, Relevance(words), weights))
        for one, words in covered
    ]


def _read(query: Query, found: Sequence[_Found]) -> list[Hit]:
    """Return the hits with their rows, in the same order."""
    rows: dict[tuple[str, int], Row] = {}
    for table in (MEMORIES, OBSERVATIONS):
        wanted = [one.candidate.doc for one in found if one.table == table]
        rows |= {(table, row.doc): row for row in query.documents(table, wanted)}
    return [
        Hit(rows[one.table, one.candidate.doc], one.score) for one in found if (one.table, one.candidate.doc) in rows
    ]
