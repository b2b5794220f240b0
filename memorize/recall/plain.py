"""Make a stored text harmless to show: one line, nothing invisible, no way out of the wrapper.

What a memory says was written by somebody else, perhaps by a web page that an agent read. It must not be able to end
the wrapper it is shown in, to draw over the terminal, or to carry characters that a person cannot see.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from memorize.patterns import late

# Terminal control sequences go whole, so that no "[31m" is left behind.
_ANSI: Final = late(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|[\x1b]\\][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?|\x1b[ -/]*[0-~]"
)
_SPACES: Final = late(r"\s+")
# Everything that cannot be seen or draws over its neighbours: controls, formats, surrogates, private use; and what is
# invisible although it counts as a letter or a mark (Hangul fillers, the grapheme joiner, variation selectors).
_UNSEEN: Final = late(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]+"
)
# Tags that wrap data in a prompt, ours first. The opening bracket may be written wide, the name with spaces before it.
_TAGS: Final = late(
    r"[<\uff1c\ufe64](?=[\s/\uff0f|!]*(?:memorize|system|assistant|human|user|tool|function|antml|command|im_))",
    re.IGNORECASE,
)
_TAG_STARTS: Final = late("[<\uff1c\ufe64]")
_ATTRIBUTE: Final = late(r"[\"'<>&`\\]+")


def one_line(text: str) -> str:
    """Return the text in NFC on one line, without control, zero-width, direction-changing or private characters."""
    if text.isprintable() and "  " not in text and (text.isascii() or not _UNSEEN.search(text)):
        return unicodedata.normalize("NFC", text).strip()
    folded = _SPACES.sub(" ", _ANSI.sub("", text))
    return _SPACES.sub(" ", unicodedata.normalize("NFC", _UNSEEN.sub("", folded))).strip()


def harmless(text: str) -> str:
    """Return ``one_line(text)`` with the opening bracket of every wrapper-like tag escaped."""
    line = one_line(text)
    if not _TAG_STARTS.search(line):
        return line
    return _TAGS.sub("&lt;", line)


def attribute(text: str, chars: int = 60) -> str:
    """Return a text that can stand between the quotes of a tag's attribute."""
    return _SPACES.sub(" ", _ATTRIBUTE.sub("", one_line(text)))[:chars].strip()
