"""What the full-text index sees of a text, and which terms a query looks for.

SQLite's tokeniser knows neither identifiers nor languages without spaces, so both documents and queries pass through
here first: NFC, lower case, identifiers in parts and as one word (``getUserById`` and ``get_user_by_id`` both give
``get user by id getuserbyid``), runs of Hangul, Han and Kana as overlapping pairs, so that a Korean noun is found
whatever particle follows it. Stop words stay in documents, for queries of nothing else, and are dropped from others.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from memorize.patterns import late

# More terms than this make a query slower, not better: the rest of a pasted page is noise.
QUERY_TERMS_MAX: Final = 64

# Where an identifier has a seam: aB, 1B, ABc, a_b, a-b. The first character of every branch is one of few, so the
# regular expression engine skips ordinary prose at the speed of a character set.
_SEAM: Final = late(r"[A-Z](?:(?<=[a-z0-9].)|[A-Z][a-z])|[_-](?<=[A-Za-z0-9].)[_-]*[A-Za-z0-9]")
# An identifier with a seam.
_NAME: Final = late(
    r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]|(?<=[a-z0-9])[A-Z]|(?<=[A-Z])[A-Z][a-z]))"
    r"[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]+)*"
)
_PART: Final = late(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]|[0-9]+")
# An identifier of more parts than this is no name that somebody types (a UUID has five, a base64 text hundreds).
_JOINED_CHARS_MAX: Final = 64

# Longer words than this are hashes and the like, which never come again.
_KEPT_CHARS_MAX: Final = 48
_KEPT_MAX: Final = 16_384

# Letters of languages that put no spaces between words (Hangul has them, but glues particles to the noun).
_CJK: Final = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff\uff66-\uff9f\uffa0-\uffdc"
    "\U00020000-\U0002fa1f"
)
_RUN: Final = late(f"[{_CJK}]+")
_SURROGATE: Final = late("[\ud800-\udfff]")
_TOKEN: Final = late(r"[^\W_]+")

_STOP_WORDS: Final = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can cannot could did do does doing don down during each few for from further get got had has have having he her
here hers herself him himself his how i if in into is it its itself just let me more most my myself no nor not now of
off on once only or other our ours ourselves out over own please re s same shall she should so some such t than that
the their theirs them themselves then there these they this those through to too under until up us very was we were
what when where which while who whom why will with would you your yours yourself yourselves ve ll d m isn aren wasn
weren hasn haven hadn doesn didn won wouldn shouldn couldn
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


def document(text: str) -> str:
    """Return the text to be indexed for ``text``: words in lower case, apart by anything but letters and digits.

    The same words come again and again, so each is worked out once.
    """
    return " ".join(map(_words.__getitem__, text.split()))


def query_terms(text: str, limit: int = QUERY_TERMS_MAX) -> list[str]:
    """Return the distinct terms that a query looks for, in order of appearance.

    Stop words are left out, unless there is nothing else.
    """
    found = dict.fromkeys(_TOKEN.findall(document(text)))
    kept = [term for term in found if term not in STOP_WORDS]
    return (kept or list(found))[:limit]


def query_units(text: str, *, prefix: bool = False) -> list[str]:
    """Return the terms as expressions of FTS5, to be joined with OR; with ``prefix`` also longer words match."""
    mark = "*" if prefix else ""
    return [f'"{term}"{mark}' for term in query_terms(text)]


def _split(word: str) -> str:
    """Return what is indexed for a word, which is anything without white space."""
    if word.isascii():
        return _identifiers(word).lower()
    word = unicodedata.normalize("NFC", word)
    word = _RUN.sub(_pairs, _SURROGATE.sub(" ", word))
    # Folding the case may leave decomposed characters behind.
    return unicodedata.normalize("NFC", _identifiers(word).casefold())


class _Words(dict[str, str]):
    """What is indexed for a word, by word: looking up a whole text so needs no step of Python's for a known word."""

    def __missing__(self, word: str) -> str:
        found = _split(word)
        if len(word) <= _KEPT_CHARS_MAX:
            if len(self) >= _KEPT_MAX:
                self.clear()
            self[word] = found
        return found


_words: Final = _Words()


def _identifiers(text: str) -> str:
    """Put the parts and the whole in place of every identifier."""
    return text if _SEAM.search(text) is None else _NAME.sub(_parts, text)


def _parts(name: re.Match[str]) -> str:
    parts = _PART.findall(name[0])
    whole = "".join(parts)
    if len(parts) < 2 or len(whole) > _JOINED_CHARS_MAX:
        return f" {' '.join(parts)} "
    return f" {' '.join(parts)} {whole} "


def _pairs(found: re.Match[str]) -> str:
    run = found[0]
    if len(run) == 1:
        return f" {run} "
    return " " + " ".join([run[i : i + 2] for i in range(len(run) - 1)]) + " "
