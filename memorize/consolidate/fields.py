"""The single fields of an answered item, read with a tolerance that never invents. Pure.

``None`` stands for "not there, or not to be understood"; the caller decides what that costs the item.
"""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from memorize.patterns import late
from memorize.recall.deeds import BUILT_IN
from memorize.recall.triggers import EDIT, GLOB_CHARS_MAX, is_name, normal_name

_NUMBER: Final = late(r"[-+]?\d{1,9}(?:\.\d{1,9})?")
_LABEL: Final = late(r"\[?[nN#]?(\d{1,6})\]?")
_UNSEEN: Final = late(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_ENDS: Final = (". ", "! ", "? ", "; ", "。", "！", "？")
_ELLIPSIS: Final = " ..."
# Of the room, so much at least is kept when a text is cut at the end of a sentence.
_SENTENCE_SHARE: Final = 0.5


def words(value: Any, chars: int) -> str:
    """Return a text on one line in NFC, cut at the end of a sentence or word beyond so many characters."""
    if not isinstance(value, str):
        return ""
    text = " ".join(_UNSEEN.sub(" ", unicodedata.normalize("NFC", value)).split())
    if len(text) <= chars:
        return text
    room = text[: chars - len(_ELLIPSIS)]
    end = max(room.rfind(mark) + len(mark.rstrip()) for mark in _ENDS)
    if end < _SENTENCE_SHARE * len(room):
        end = room.rfind(" ") if room.rfind(" ") > _SENTENCE_SHARE * len(room) else len(room)
    return room[:end].rstrip() + _ELLIPSIS


def number(value: Any) -> int | None:
    """Return a whole number; also of a text that is one, and of a fraction by rounding."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(value)


def share(value: Any) -> int | None:
    """Return a confidence as a whole number of percent; a fraction below 1 is a share of 1."""
    if isinstance(value, float) and 0 < value < 1:
        return round(100 * value)
    return number(value)


def true(value: Any) -> bool:
    """Tell whether a field is set, as a truth value or as the word."""
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("true", "yes"))


def texts(value: Any, most: int, chars: int) -> tuple[str, ...]:
    """Return the texts of a list, or a single one, each once; longer and empty ones are left out."""
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    found = (words(one, 10 * chars) for one in listed if isinstance(one, str))
    return tuple(dict.fromkeys(one for one in found if 0 < len(one) <= chars))[:most]


def triggers(value: Any, most: int) -> tuple[str, ...]:
    """Return the names of actions in a list: those that are built in, and globs of files."""
    found = (normal_name(one) for one in texts(value, 4 * most, len(EDIT) + GLOB_CHARS_MAX))
    known = (one for one in found if one in BUILT_IN or (one.startswith(EDIT) and is_name(one)))
    return tuple(dict.fromkeys(known))[:most]


def labels(value: Any, most: int) -> list[int]:
    """Return the numbers of a list of labels such as ``3``, ``"3"``, ``"[3]"``, ``"n3"``; also of a single one."""
    listed = value if isinstance(value, list) else [value]
    found: list[int] = []
    for one in listed[:most]:
        if isinstance(one, str) and (named := _LABEL.fullmatch(one.strip())):
            found.append(int(named[1]))
        elif (plain := number(one)) is not None and not isinstance(one, str):
            found.append(plain)
    return list(dict.fromkeys(found))


def day_end(value: Any) -> int | None:
    """Return the end (ms since 1970) of a day that is written YYYY-MM-DD, whatever time follows; in UTC."""
    if not isinstance(value, str):
        return None
    try:
        day = date.fromisoformat(value.strip()[:10])
        after = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return max(0, int(after.timestamp() * 1000))
