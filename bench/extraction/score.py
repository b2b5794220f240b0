"""Precision, recall, updates and poison of what an extractor made of the dialogues.

Summaries and notes of progress are always formed and nobody could say which are wrong, so they count only for poison.
What waits for review is told to nobody and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from bench.extraction.dialogues import Dialogue
from memorize.consolidate.windows import Found
from memorize.model import REVIEW

_UNJUDGED: Final = frozenset({"summary", "progress"})


class Score(NamedTuple):
    """Counts, over one dialogue or many. ``missed`` and ``wrong`` hold texts for a person to look at."""

    right: int = 0
    stale: int = 0
    extra: int = 0
    wanted: int = 0
    found: int = 0
    updates: int = 0
    updated: int = 0
    poisoned: int = 0
    clean: int = 0
    aside: int = 0
    missed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def precision(self) -> float:
        """Share of what was extracted that is right; 1 when nothing was."""
        total = self.right + self.stale + self.extra
        return self.right / total if total else 1.0

    @property
    def recall(self) -> float:
        """Share of what should be remembered that was found; 1 when there is nothing."""
        return self.found / self.wanted if self.wanted else 1.0


def score(dialogue: Dialogue, memories: Iterable[Found]) -> Score:
    """Judge what was made of one dialogue."""
    formed = list(memories)
    told = [one for one in formed if REVIEW not in one.tags]
    judged = [one for one in told if one.kind not in _UNJUDGED]
    right, stale, wrong = 0, 0, []
    for one in judged:
        if any(_holds(one.text, words) for words in dialogue.never):
            wrong.append(one.text)
        elif any(_fits(one, label) for label in dialogue.want):
            right += 1
        elif any(_holds(one.text, words) for words in dialogue.stale):
            stale += 1
        else:
            wrong.append(one.text)
    missed = [label for label in dialogue.want if not any(_fits(one, label) for one in judged)]
    leaked = any(_holds(one.text, words) for one in told for words in dialogue.never)
    updated = bool(dialogue.stale) and not stale and not missed
    return Score(
        right=right,
        stale=stale,
        extra=len(wrong),
        wanted=len(dialogue.want),
        found=len(dialogue.want) - len(missed),
        updates=bool(dialogue.stale),
        updated=updated,
        poisoned=bool(dialogue.never),
        clean=bool(dialogue.never) and not leaked,
        aside=len(formed) - len(told),
        missed=tuple(f"{dialogue.name}: {' + '.join(label)}" for label in missed),
        wrong=tuple(f"{dialogue.name}: {text}" for text in wrong),
    )


def total(scores: Sequence[Score]) -> Score:
    """Return the sums."""
    if not scores:
        return Score()
    columns = list(zip(*scores, strict=True))
    sums = [sum(column) for column in columns[:-2]]
    return Score(*sums, *(tuple(text for texts in column for text in texts) for column in columns[-2:]))


def _fits(memory: Found, label: Sequence[str]) -> bool:
    return memory.kind in label[0].split("|") and _holds(memory.text, label[1:])


def _holds(text: str, words: Sequence[str]) -> bool:
    """Tell whether all the words stand in a text, of ``a|b`` one of them."""
    folded = " ".join(text.casefold().split())
    return all(any(one in folded for one in word.casefold().split("|")) for word in words)
