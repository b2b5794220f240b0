"""Reading what a hook was given: bytes to a mapping, tolerantly; and taking out what must not be remembered.

Hook payloads come from programs that change weekly and may be cut at the size bound, so nothing is trusted to be there
or to have its type. What cannot be read at all raises ``Unreadable``; the ingester then sets the file aside.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from typing import Any, Final

from memorize import limits
from memorize.log.redact import redact
from memorize.log.spool import Unreadable
from memorize.model import Capture
from memorize.patterns import late

_TOKEN: Final = late(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|[{}\[\],:]|"', re.DOTALL)
_PRIVATE: Final = late(r"<\s{0,9}(/?)\s{0,9}private(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_OWN: Final = late(r"<\s{0,9}(/?)\s{0,9}memorize-context\b[^<>]*>", re.IGNORECASE)
_SURROGATE: Final = late("[\ud800-\udfff]")
# Text beyond the kept part that is still redacted with it, so that no cut falls inside a secret and hides its start.
_REDACT_MARGIN: Final = 64 * 1024
# Raw line breaks inside texts are taken. Made once: that costs as much as reading a payload.
_JSON: Final = json.JSONDecoder(strict=False)
_GAP: Final = "\n[... {} characters left out ...]\n"


def read(capture: Capture) -> dict[str, Any]:
    """Return the payload's mapping; nothing said is an empty one, a cut one is closed where it ends.

    Raises ``Unreadable``.
    """
    text = _decode(capture.data).strip("\0 \t\r\n")
    if not text:
        return {}
    try:
        value, end = _JSON.raw_decode(text)  # nothing but the text is stripped already
        if end < len(text):
            raise ValueError(f"something follows it at {end}")
    except RecursionError:
        raise Unreadable("the payload is nested too deeply") from None
    except ValueError as error:
        if not capture.cut:
            raise Unreadable(f"the payload is not JSON: {error}") from None
        value = _salvage(text)
    if not isinstance(value, dict):
        raise Unreadable("the payload is not a JSON object")
    return value


def _decode(data: bytes) -> str:
    """Decode by the byte order mark; bytes that are no UTF-8 become replacement characters."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.removeprefix(BOM_UTF8).decode("utf-8", "replace")


def _salvage(text: str) -> Any:
    """Read the beginning of a cut JSON text: close the open string and containers, or drop the unfinished member."""
    closers: list[str] = []
    safe: tuple[int, int] = (0, 0)  # the end of the last whole member and how many containers were open there
    value_next = True
    position = 0
    for match in _TOKEN.finditer(text):
        token = match.group()
        position = match.end()
        if token in "{[":
            closers.append("}" if token == "{" else "]")
            value_next = token == "["
            safe = (position, len(closers))
        elif token in "}]":
            if closers:
                closers.pop()
            safe = (position, len(closers))
        elif token == ",":
            value_next = bool(closers) and closers[-1] == "]"
            safe = (match.start(), len(closers))
        elif token == ":":
            value_next = True
        elif token == '"':  # a string that never ends
            if value_next:
                return _close(_trim_escape(text) + '"', closers)
            break
        else:
            if value_next:
                safe = (position, len(closers))
            value_next = False
    end, depth = safe
    return _close(text[:end], closers[:depth])


def _trim_escape(text: str) -> str:
    r"""Drop an escape that the cut left unfinished (``\`` or ``\u12``)."""
    partial = re.search(r"u[0-9a-fA-F]{0,3}$", text[-4:])
    stem = text[: len(text) - len(partial.group())] if partial else text
    escaping = (len(stem) - len(stem.rstrip("\\"))) % 2
    return stem[:-1] if escaping else text


def _close(text: str, closers: list[str]) -> Any:
    try:
        return _JSON.decode(text + "".join(reversed(closers)))
    except (ValueError, RecursionError):
        raise Unreadable("the payload was cut and nothing of it can be read") from None


def text_of(mapping: Mapping[str, Any], *keys: str) -> str:
    """Return the first of these values that is a string which says something, else an empty one."""
    for key in keys:
        value = mapping.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def map_of(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the mapping at ``key``, or an empty one."""
    value = mapping.get(key)
    return value if isinstance(value, dict) else {}


def plain(text: str) -> str:
    """Return the text as valid UTF-8 can hold it: lone surrogates become replacement characters."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def clean(text: str, *, fragment: bool = False) -> str:
    """Take out private parts and what memorize itself injected; an unclosed part reaches to the end.

    ``fragment``: the text is a piece of something larger (a diff, the tail of an output), so a closing mark without an
    opening one closes a part that began before the piece.
    """
    return _without(_without(plain(text), _OWN, fragment), _PRIVATE, fragment)


def _without(text: str, mark: re.Pattern[str], fragment: bool) -> str:
    if "<" not in text:
        return text
    kept: list[str] = []
    position = depth = 0
    for match in mark.finditer(text):
        closing = bool(match.group(1))
        if not closing:
            if depth == 0:
                kept.append(text[position : match.start()])
            depth += 1
        elif depth:
            depth -= 1
            position = match.end()
        elif fragment:
            kept.clear()
            position = match.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept)


def whole(text: str) -> str:
    """Clean a person's or an agent's words; of a very long text head and tail are kept, and the length of the gap."""
    text = clean(text).strip()
    most = limits.TEXT_CHARS_MAX
    if len(text) <= most:
        return text
    half = (most - 64) // 2
    if len(text) <= 2 * _REDACT_MARGIN:
        text = redact(text)
        first, last = text[:half], text[-half:]
    else:
        first, last = redact(text[: half + _REDACT_MARGIN])[:half], redact(text[-half - _REDACT_MARGIN :])[-half:]
    missing = len(text) - 2 * half
    return text if missing <= 0 else first + _GAP.format(missing) + last


def head(text: str, most: int) -> str:
    """Clean a text and keep its first ``most`` characters."""
    text = clean(text, fragment=True)
    if len(text) <= most:
        return text
    return redact(text[: most + _REDACT_MARGIN])[:most]


def tail(text: str, most: int) -> str:
    """Clean a text and keep its last ``most`` characters, from the beginning of a line where there is one."""
    text = clean(text, fragment=True).rstrip()
    if len(text) <= most:
        return text.lstrip("\r\n")
    kept = redact(text[-most - _REDACT_MARGIN :])[-most:]
    cut = kept.find("\n")
    return kept[cut + 1 :] if 0 <= cut < most // 2 else kept
