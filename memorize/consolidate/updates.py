"""What can be said of two memories without a model: that they say the same, or that one value took another's place.

Nothing else. Words that are alike never make a contradiction: "uses PostgreSQL" and "uses MySQL" may both be true, and
"merge" and "never merge" are alike in all but what counts. Whatever is not plainly an update stays as it is. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from memorize.index.text import query_terms
from memorize.model import text_key
from memorize.patterns import late

SAME: Final = "same"
UPDATE: Final = "update"

_TOKENS_MIN: Final = 4
_PREFIX_MIN: Final = 2
_FRAME_SHARE: Final = 0.6
_MIDDLE_MAX: Final = 4
# Below this cosine, where one is known, two texts of one frame are about different things.
_COSINE_MIN: Final = 0.3
_TERMS_MAX: Final = 200
# What two texts must share to be looked at together.
_ALIKE_TERMS_MIN: Final = 2
# Korean pairs that only say that something is to be done or not: two orders at odds differ in just these.
_ENDINGS: Final = frozenset(
    (
        "해라 하라 하지 지마 마라 말라 마세 세요 하세 해요 십시 시오 하십 한다 는다 된다 않는 않다 지않 해야 야한 "
        "항상 절대 반드 드시 은 는 을 를 에 로"
    ).split()
)

_TOKEN: Final = late(r"[a-z0-9]+(?:[.+#'-][a-z0-9]+)*[+#]*|[가-힣]+|[ぁ-んァ-ヶー]+|[\u4e00-\u9fff]")
_ARTICLES: Final = frozenset({"a", "an", "the"})
# What may hold of several things at once; one more of them is no update.
_SEVERAL: Final = late(
    r"\b(?:uses?|using|used|knows?|speaks?|supports|includes?|contains?|has|have|had|owns?|depends?|requires?|needs?"
    r"|likes?|loves?|enjoys?|allergic|works? with|imports?|installs?|adds?|allows?|reads?|writes?|visited|tried"
    r"|consists?|provides?|offers?|talks? to|calls|also|too)\b"
    r"|사용|쓴다|쓰고|씁니다|안다|지원|포함|의존|좋아|필요|있다|있습니다|또한|使[いう用]|对|支持|包含|依赖|需要|喜欢",
    re.IGNORECASE,
)
# What has one value at a time, whatever the verb.
_ONE: Final = late(
    r"\b(?:primary|main|default|current(?:ly)?|favou?rite|only|sole|preferred|official|canonical|active|latest)\b"
    r"|기본|주된|주요|^주 |\b주 |현재|유일|선호|최신|メイン|デフォルト|現在|默认|主要|当前|首选",
    re.IGNORECASE,
)
_NEGATION: Final = frozenset(
    "not no never none nothing nobody neither nor without cannot don't doesn't didn't won't isn't aren't can't mustn't "
    "shouldn't avoid stop forbid forbidden 안 못 않는다 않다 말고 마라 말라 말것 금지 없이 없다".split()
)
_NEGATION_INSIDE: Final = late(r"지마|지말|지않|지못|않|마라|말라|ない|ません|ずに|禁止|[不没無无别別勿]")


class Stated(NamedTuple):
    """What the rules look at. ``at_ms``: when it was said. Subject, predicate and object are all there or all empty."""

    text: str
    at_ms: int
    subject: str = ""
    predicate: str = ""
    object: str = ""
    single: bool = False


@lru_cache(maxsize=4_096)
def tokens(text: str) -> tuple[str, ...]:
    """Return the lower-case words of a text; scripts are parted, so that a particle does not stick to a name."""
    return tuple(_TOKEN.findall(unicodedata.normalize("NFC", text).casefold().replace("\u2019", "'")))


def relation(older: Stated, newer: Stated, cosine: float | None = None) -> str:
    """Return ``same``, ``update`` (the newer value stands for the older one), or "" when nothing can be said.

    ``cosine`` is the likeness by an embedding model, where there is one; it can only forbid.
    """
    if text_key(older.text) == text_key(newer.text):
        return SAME
    bare = [tuple(word for word in tokens(one.text) if word not in _ARTICLES) for one in (older, newer)]
    if bare[0] and bare[0] == bare[1]:
        return SAME
    if older.predicate and newer.predicate:
        return _of_statements(older, newer)
    if newer.at_ms <= older.at_ms or (cosine is not None and cosine < _COSINE_MIN):
        return ""
    return UPDATE if _is_update(tokens(older.text), tokens(newer.text), f"{older.text}\n{newer.text}") else ""


def _of_statements(older: Stated, newer: Stated) -> str:
    """Compare two statements by subject, predicate and object. Of a predicate with several values both may hold."""
    about = [(text_key(one.subject), text_key(one.predicate).replace("_", " ")) for one in (older, newer)]
    if about[0] != about[1] or not (older.single and newer.single):
        return ""
    if text_key(older.object) == text_key(newer.object):
        # The same value, in other words: whether one of them says more is not for rules.
        return ""
    return UPDATE if newer.at_ms > older.at_ms else ""


def different_values(one: Stated, other: Stated) -> bool:
    """Tell whether two texts plainly name different values of something that may have several: no need to ask."""
    if one.predicate and other.predicate and text_key(one.subject) == text_key(other.subject):
        same = text_key(one.predicate) == text_key(other.predicate)
        return same and not one.single and not other.single and text_key(one.object) != text_key(other.object)
    left, right = tokens(one.text), tokens(other.text)
    frame = _middles(left, right)
    if frame is None or _negated(left, right):
        return False
    return bool(_SEVERAL.search(one.text)) and not _ONE.search(one.text) and all(frame)


def _is_update(old: Sequence[str], new: Sequence[str], both: str) -> bool:
    if min(len(old), len(new)) < _TOKENS_MIN:
        return False
    middles = _middles(old, new)
    if middles is None:
        return False
    was, now = middles
    if not was or not now or max(len(was), len(now)) > _MIDDLE_MAX or _negated(old, new):
        return False
    numeric = all(word.isdigit() for word in (*was, *now))
    ends_with_value = old[-len(was) :] == was and new[-len(now) :] == now
    if numeric and not ends_with_value:
        # "rule 0 of naming", "rule 1 of naming": numbers that tell things apart.
        return False
    return not _SEVERAL.search(both) or bool(_ONE.search(both))


def _middles(old: Sequence[str], new: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return what differs between a common beginning and a common end; None when the frame is too small."""
    prefix = suffix = 0
    shorter, longest = min(len(old), len(new)), max(len(old), len(new))
    while prefix < shorter and old[prefix] == new[prefix]:
        prefix += 1
    while suffix < shorter - prefix and old[-1 - suffix] == new[-1 - suffix]:
        suffix += 1
    if prefix < _PREFIX_MIN or not longest or (prefix + suffix) / longest < _FRAME_SHARE:
        return None
    return tuple(old[prefix : len(old) - suffix]), tuple(new[prefix : len(new) - suffix])


def _negated(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether one of two texts denies what the other one does not."""
    return negations(one) != negations(other)


def negations(words: Sequence[str]) -> int:
    """Return how many words of a text deny something."""
    return sum(word in _NEGATION or word.endswith("n't") or bool(_NEGATION_INSIDE.search(word)) for word in words)


@lru_cache(maxsize=8_192)
def terms(text: str) -> frozenset[str]:
    """Return what a text is recognised by: its telling words, CJK as pairs of characters."""
    # In lower case, so that the parts of a name in mixed case don't count besides the name.
    return frozenset(query_terms(text.casefold(), _TERMS_MAX))


def likeness(one: str, other: str) -> float:
    """Return the share of the shorter text's telling words that the other one has too; 0 when they share too few."""
    left, right = terms(one) - _ENDINGS or terms(one), terms(other) - _ENDINGS or terms(other)
    shared = len(left & right)
    least = min(len(left), len(right))
    return shared / least if shared >= min(_ALIKE_TERMS_MIN, least) and least else 0.0
