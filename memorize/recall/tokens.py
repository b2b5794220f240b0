"""How many model tokens a text may cost, without any tokenizer.

The estimate errs on the high side for prose, code and hexadecimal ids: a budget must hold for every model, and a
tokenizer costs more to load than a session start may take. It depends only on how many characters of which class a
text holds, so it never falls when a text grows, and the parts of a text never cost less than the whole.
"""

from __future__ import annotations

from typing import Final

# 16 ASCII characters count as 5 tokens: English prose measures about 4 characters a token, ids and code about 2.5.
_ASCII_TOKENS: Final = 5
_ASCII_CHARS: Final = 16
# A sentence end within this share of the room is taken before a word end further right.
_SENTENCE_SHARE: Final = 0.6
_ELLIPSIS: Final = " ..."
_SENTENCE_ENDS: Final = (". ", "! ", "? ", "; ", "。", "！", "？")


def estimate(text: str) -> int:
    """Return a cautious number of tokens: ASCII 3.2 characters a token, others one, beyond the base plane two."""
    if text.isascii():
        return -(-len(text) * _ASCII_TOKENS // _ASCII_CHARS)
    ascii_count = len(text.encode("ascii", "ignore"))
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    return -(-ascii_count * _ASCII_TOKENS // _ASCII_CHARS) + units - ascii_count


def shorten(text: str, tokens: int, octets: int | None = None) -> str:
    """Return the text, cut with an ellipsis at a sentence or word end when it costs more than that.

    ``octets`` bounds the UTF-8 length too. Returns an empty string when not even one word fits.
    """
    if _fits(text, tokens, octets):
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(text[:middle].rstrip() + _ELLIPSIS, tokens, octets):
            low = middle
        else:
            high = middle - 1
    room = text[:low]
    end = max((room.rfind(mark) + len(mark.rstrip()) for mark in _SENTENCE_ENDS if mark in room), default=0)
    if end < _SENTENCE_SHARE * low:
        end = _word_end(text, low)
    kept = text[:end].rstrip()
    return f"{kept}{_ELLIPSIS}" if kept else ""


def _fits(text: str, tokens: int, octets: int | None) -> bool:
    """Tell whether a text keeps to both bounds."""
    if estimate(text) > tokens:
        return False
    return octets is None or len(text.encode("utf-8", "surrogatepass")) <= octets


def _word_end(text: str, limit: int) -> int:
    """Return the last place at or before ``limit`` that does not split a word; ``limit`` in text without spaces."""
    if limit >= len(text) or text[limit] == " ":
        return limit
    space = text.rfind(" ", 0, limit)
    return space if space > 0 else limit
