"""Whether a prompt deserves an answer at all, and which few memories are worth saying then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from memorize import model
from memorize.index.query import Query
from memorize.recall.rank import DEFAULT, Weights
from memorize.recall.search import Hit, search

# Below this share of the prompt's weighted words a hit is chance: of prompts put to another store 5 % reach .39.
COVERAGE_MIN: Final = 0.36
ANSWERS_MAX: Final = 3


def answers(
    query: Query,
    prompt: str,
    projects: Sequence[str],
    now_ms: int,
    delivered: Collection[bytes] = (),
    weights: Weights = DEFAULT,
) -> list[Hit]:
    """Return at most three memories that a prompt is about; ``delivered`` ones were said in this session already.

    A rule that an action brings up is said before that action, not at a prompt that speaks of it.
    """
    if not prompt.strip():
        return []
    most = ANSWERS_MAX + len(delivered)
    found = search(query, prompt, projects, model.SCOPES, now_ms, most, floor=COVERAGE_MIN, weights=weights)
    fits = [hit for hit in found.hits if hit.score.fit and hit.row.id not in delivered]
    bound = query.bound(hit.row.id for hit in fits)
    return [hit for hit in fits if hit.row.id not in bound][:ANSWERS_MAX]
