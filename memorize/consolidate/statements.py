"""Find what a person stated in so many words: decisions, constraints, preferences, open questions, failed tries.

Pattern tables for English and Korean, applied sentence by sentence. They are strict on purpose: a sentence that is
not clearly a statement of the person is left to the model-driven extractor. Nothing is rephrased.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

SENTENCE_CHARS_MIN: Final = 8
SENTENCE_CHARS_MAX: Final = 400
# A prompt above this is mostly pasted text; a person's own words stand at its start and its end.
OWN_WORDS_CHARS: Final = 3_000

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# A dot inside a number, a path, a version or an abbreviation does not end a sentence: white space must follow.
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])(?=\s)|\n+")
_NOT_PROSE = re.compile(r"^\s*(?:[>$#|]|at\s+\S+\(|File \"|Traceback|[{}<\[]|\d{4}-\d\d-\d\dT)")
_LEADING = re.compile(
    r"^\s*(?:[-*•]\s+|\d+[.)]\s+)?(?:(?:ok(?:ay)?|so|also|and|but|please|note|well|right|yes|no)[,:]\s+)?", re.I
)
_QUESTION = re.compile(
    r"[?？]\s*$|^(?:can|could|should|would|do (?:we|you|i|they)|does|did|is|are|what|why|how|which|where|when|who)\b",
    re.I,
)
_KO_QUESTION = re.compile(r"(?:까요|나요|을까|ㄹ까|할까|는지 (?:알려|확인)|인가요|니)\s*[.?？]?\s*$")


class Statement(NamedTuple):
    """A sentence of the person and what it is. ``scope`` is ``personal`` for what holds in every project."""

    kind: str
    text: str
    importance: int
    scope: str = "project"


class _Rule(NamedTuple):
    kind: str
    importance: int
    pattern: re.Pattern[str]
    scope: str = "project"


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


# First match wins, so the more telling kinds stand first.
_TABLE: Final = (
    _Rule(
        "failure",
        5,
        _any(
            r"\b(?:we|i) (?:already )?tried\b.*"
            r"\b(?:but|fail\w*|didn'?t|did not|doesn'?t|does not|never|broke|because)\b",
            r"\b(?:didn'?t|did not|doesn'?t|does not|won'?t) work\b.*\b(?:because|since|as|:)",
            r"\bdo(?:n'?t| not) (?:re)?try\b",
            r"(?:시도|해)\s?(?:했|봤|보았)(?:지만|는데|으나).*(?:실패|안 (?:됐|되|돼)|불가|막혀|오류|에러)",
            r"다시 시도하지 (?:마|말)",
        ),
    ),
    _Rule(
        "question",
        4,
        _any(
            r"\bopen question\b",
            r"\b(?:still|have yet) (?:need )?to (?:decide|be decided|figure out)\b",
            r"\b(?:not|never) (?:been )?decided yet\b",
            r"\bundecided\b",
            r"아직 (?:안 |못 )?(?:정하지|결정하지|정해지지|결정되지|정했|결정했|미정)",
            r"(?:나중에|추후) (?:결정|정하)",
            r"\b미정\b",
        ),
    ),
    _Rule(
        "preference",
        5,
        _any(
            r"\b(?:answer|reply|respond|write to me|talk to me)\b.*"
            r"\bin (?:korean|english|japanese|chinese|german|french|spanish)\b",
            r"\bcode comments? in (?:korean|english)\b",
            r"\bi (?:always |generally |strongly )?(?:prefer|dislike|hate|would rather|'d rather)\b",
            r"\bmy (?:preference|style) (?:is|:)",
            r"(?:한국어|영어|일본어|중국어)로 (?:답|대답|설명|말|작성해|해 )",
            r"(?:저는|나는|난|전) .*(?:선호|좋아|싫어|편해|편합)",
        ),
        "personal",
    ),
    _Rule(
        "decision",
        6,
        _any(
            r"\bwe(?:'ve| have)? (?:decided|agreed|settled|chosen|chose|picked)\b",
            r"\bi(?:'ve| have)? (?:decided|settled|chosen|chose|picked)\b",
            r"\bdecision\s*:",
            r"\blet'?s (?:use|go with|stick (?:with|to)|switch to|move to|keep|adopt|store|make)\b",
            r"\bwe(?:'ll| will|'re going to| are going to|'re| are) "
            r"(?:use|using|go(?:ing)? with|stick\w* (?:with|to)|switch\w* to|mov\w+ to|keep\w*|adopt\w*)\b",
            r"\b(?:use|choose|take|prefer) \S+(?: \S+){0,4} (?:instead of|rather than|over)\b",
            r"\b(?:replaced?|replacing) \S+(?: \S+){0,4} (?:with|by)\b",
            r"기로 (?:했|결정|하자|합의|정했|하겠)",
            r"결정\s*[:：]|결정했|결정하였|으로 정했|로 정했|확정",
            r"(?:으로|로) (?:가자|갑시다|가겠|바꾸자|바꿉시다|바꾸겠|전환하자|교체하자|교체했|바꿨|전환했)",
            r"(?:을|를|은|는) (?:쓰자|씁시다|사용하자|사용합시다|쓰겠|사용하겠)",
            r"대신 .*(?:쓰자|씁시다|사용하자|사용합니다|쓴다|사용한다|쓰기로)",
        ),
    ),
    _Rule(
        "constraint",
        6,
        _any(
            r"\bnever\b",
            r"\balways\b",
            r"\bmust(?:n'?t| not)?\b",
            r"\bonly (?:use|ever|with)\b|^only \S+",
            r"\b(?:is|are) (?:not allowed|forbidden|prohibited|required|mandatory)\b",
            r"\bno \S+(?: \S+){0,3} (?:allowed|anywhere|in this (?:repo\w*|project|codebase))\b",
            r"\bdo(?:n'?t| not) (?:ever )?"
            r"(?:use|commit|push|add|edit|touch|change|rename|install|log|store|call|depend)\b",
            r"\bmake sure (?:that |to )?.*\b(?:every|all|each|any)\b",
            r"절대|반드시|무조건|항상|언제나",
            r"(?:하지|쓰지|넣지|건드리지|바꾸지|올리지|커밋하지|사용하지) (?:마|말|않)",
            r"금지|허용하지 않|안 됩니다|안 된다|안돼|안 돼",
            r"만 (?:사용|써야|쓰세요|써|씁니다|사용해야|허용)",
            r"해야 (?:한다|합니다|해|함|돼|된다|됩니다)",
        ),
    ),
    _Rule(
        "fact",
        5,
        _any(
            r"\b(?:please )?remember(?: that|:)",
            r"^(?:note|fyi|for the record|keep in mind)\b",
            r"기억해|잊지 (?:마|말)|참고로",
        ),
    ),
)


def own_words(prompt: str) -> str:
    """Return the part of a prompt that the person typed rather than pasted, as well as one can tell."""
    text = _FENCE.sub("\n", prompt)
    if len(text) > 2 * OWN_WORDS_CHARS:
        return text[:OWN_WORDS_CHARS] + "\n" + text[-OWN_WORDS_CHARS:]
    return text


def sentences(text: str) -> list[str]:
    """Split into sentences that are worth looking at: prose of a sensible length."""
    found = []
    for part in _SENTENCE_END.split(text):
        sentence = " ".join(_LEADING.sub("", part, count=1).split())
        if SENTENCE_CHARS_MIN <= len(sentence) <= SENTENCE_CHARS_MAX and not _NOT_PROSE.match(part):
            found.append(sentence)
    return found


def classify(sentence: str) -> Statement | None:
    """Return what the sentence states, or None when it states nothing clearly (what it asks is no statement)."""
    asks = bool(_QUESTION.search(sentence) or _KO_QUESTION.search(sentence))
    for rule in _TABLE:
        # "Open question: should a refund ...?" asks and states at once.
        if (rule.kind == "question" or not asks) and rule.pattern.search(sentence):
            return Statement(rule.kind, sentence[:1].upper() + sentence[1:], rule.importance, rule.scope)
    return None


def statements(prompt: str) -> list[Statement]:
    """Return the statements of one prompt, in its order."""
    return [found for sentence in sentences(own_words(prompt)) if (found := classify(sentence)) is not None]
