"""Secrets out, everything else untouched: the filter that every string passes before it may become part of an event.

The table is loose on purpose: a known prefix and a dozen characters are enough, because an erased commit message
costs less than a published key. What it must not touch is ordinary text: hashes, ids, paths, prose about passwords.

Nearly all text holds no secret, so the work is ordered by that. ``redact`` first looks for the three things without
which nothing below can match (a long run of token characters that begins like a key, a secret's name in front of a
separator, an ``@`` behind a scheme) with byte translations and memory searches, and runs a pattern only when one of
them is there. Every pattern starts at a literal and has no nested repetition, so the time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from memorize.log.placed import redact_placed
from memorize.log.secret_forms import (
    AUTHORIZATION,
    BEFORE,
    CLASSES,
    CODE,
    DASHED,
    DOTTED_NAME,
    EDGES,
    FLAG,
    FOLD,
    HEADER,
    HOOK,
    JOINT,
    LEADS,
    LINE_NAME,
    MENTION,
    NAME_CHARS_MAX,
    NAMED,
    NAMES,
    NOT_A_VALUE,
    PEM,
    RUN,
    SECRET_CAMEL,
    SECRET_KEY,
    SEPARATOR,
    SKIP_CHARS,
    SQUEEZED,
    STARTS,
    TOKEN,
    TOKENS,
    URL,
    USER,
    VALUE,
)

_PASSES_MAX: Final = 8
_MEMO_KEYS_MAX: Final = 4096
_SHORT_CHARS: Final = 80

PLACEHOLDER: Final = "[redacted:{}]"
_SECRET: Final = PLACEHOLDER.format("secret")
_HOLD_NO_TEXT: Final = frozenset({bool, int, bytes, type(None)})
_memo: dict[object, tuple[Any, bool]] = {}
_clean: set[str] = set()


def redact(text: str) -> str:
    """Return the text with every secret replaced by a typed placeholder such as ``[redacted:aws-key]``.

    Idempotent, total and linear in the length. Text without secrets comes back as the same object.
    """
    if text in _clean:
        return text
    for attempt in range(_PASSES_MAX):
        cleaned = _once(text)
        if cleaned is text or cleaned == text:
            return _remembered(text) if attempt == 0 else text
        text = cleaned
    return text


def _remembered(text: str) -> str:
    """Return a text without secrets; a short one is remembered: sessions, projects and branches come again."""
    if len(text) <= _SHORT_CHARS:
        if len(_clean) >= _MEMO_KEYS_MAX:
            _clean.clear()
        _clean.add(text)
    return text


def redact_value(value: Any) -> Any:
    """Return the value with every string in it redacted, at any depth of mappings, lists and tuples.

    A string under a secret's name (``password``, ``apiKey``, ``Authorization``) is replaced whatever it holds.
    Bytes, numbers and anything else stay as they are.
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        clean = {}
        for key, item in value.items():
            name, secret = _memo.get(key) or _name(key)
            if secret:
                item = _hide(item)
            elif type(item) is str:
                item = item if item in _clean else redact(item)
            elif type(item) not in _HOLD_NO_TEXT:
                item = redact_value(item)
            clean[name] = item
        return clean
    if isinstance(value, list | tuple):
        items = [redact_value(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def _hide(value: Any) -> Any:
    """Replace a value that stands under a secret's name; what is no text may still hold some."""
    if isinstance(value, str):
        return value if not value or value.startswith("[redacted:") else _SECRET
    if isinstance(value, list | tuple):
        return type(value)(_hide(item) for item in value)
    return redact_value(value)


def _name(key: object) -> tuple[Any, bool]:
    """Return a mapping's key, redacted, and whether it names a secret. Remembered: the same few keys come again."""
    if not isinstance(key, str):
        return key, False
    short = key[-80:]
    known = redact(key), SECRET_KEY.fullmatch(short) is not None or SECRET_CAMEL.fullmatch(short) is not None
    if len(_memo) < _MEMO_KEYS_MAX and len(key) <= _SHORT_CHARS:
        _memo[key] = known
    return known


def _key_like(raw: bytes) -> bool:
    """Tell whether some run of token characters is long enough and stands at a known prefix."""
    classes = raw.translate(CLASSES)
    start = classes.find(RUN)
    if start < 0:
        return False
    while start >= 0:
        end = classes.find(b" ", start)
        if end < 0:
            end = len(raw)
        if raw[start : start + 2] in LEADS and raw.startswith(STARTS, start):
            return True
        if raw[start - 2 : start] in EDGES and raw.endswith(BEFORE, 0, start):
            return True
        if JOINT.search(raw, start, end) or (raw.startswith(b"AA", start) and raw[start - 1 : start] == b":"):
            return True
        start = classes.find(RUN, end)
    if b"hooks" in raw and HOOK.search(raw) is not None:
        return True
    return b"-----BEGIN" in raw or b"earer" in raw or b"asic " in raw or b"EARER" in raw


def _named(raw: bytes) -> bool:
    """Tell whether a secret's name may stand before a separator or behind a dash."""
    folded = raw.translate(FOLD, SQUEEZED)
    return NAMED.search(folded) is not None or DASHED.search(folded) is not None


def _once(text: str) -> str:
    """Run every pattern that has a chance over the text."""
    if len(text) < 8:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    keys = _key_like(raw)
    named = ("=" in text or ":" in text or "-" in text) and _named(raw)
    if keys:
        text = PEM.sub(PLACEHOLDER.format("private-key"), text) if "-----BEGIN" in text else text
        text = HEADER.sub(_header, TOKEN.sub(_token, text))
    if "@" in text and "://" in text:
        text = URL.sub(_address, text)
    if named:
        text = USER.sub(lambda match: match["lead"] + _SECRET, text) if "curl" in text else text
        if "uthorization" in text or "UTHORIZATION" in text:
            text = AUTHORIZATION.sub(lambda match: match["lead"] + PLACEHOLDER.format("authorization"), text)
        text = _assignments(text)
    return redact_placed(text)


def _token(match: re.Match[str]) -> str:
    """Name the kind of key that was found."""
    return PLACEHOLDER.format(TOKENS[int((match.lastgroup or "t0")[1:])][0])


def _header(match: re.Match[str]) -> str:
    """Keep the scheme; "basic functionality" and the like have neither digits nor a mixture of cases."""
    scheme, value = match["scheme"], match["value"]
    mixed = not value.islower() and not value.isupper()
    if not (mixed or (scheme.lower() == "bearer" and any(char.isdigit() for char in value))):
        return match[0]
    return f"{scheme}{match['gap']}[redacted:{scheme.lower()}]"


def _address(match: re.Match[str]) -> str:
    """Keep the user, drop the password; a lone long word before the host is a token."""
    user, secret = match["user"], match["secret"]
    if secret is not None:
        return f"{user}:[redacted:url-password]@"
    if len(user) >= 12 and any(char.isdigit() for char in user):
        return "[redacted:url-token]@"
    return match[0]


def _assignments(text: str) -> str:
    """Replace the values of assignments to a secret's name, unless they are code, a reference or prose."""
    found: list[tuple[int, int]] = []
    done = 0
    for match in SEPARATOR.finditer(text):
        if match.start() < done:
            continue
        head = text[max(0, match.start() - NAME_CHARS_MAX) : match.start()].rstrip(" \t\"'\\]").rstrip("0123456789_-")
        if head.lower().endswith(NAMES):
            value = VALUE.match(text, match.start())
            if value is not None and _is_secret(value, head):
                found.append(value.span("quoted" if value["plain"] is None else "plain"))
                done = value.end()
            elif value is not None and value.end() - value.start() > SKIP_CHARS:
                done = value.end()  # keeps the time linear
    for match in FLAG.finditer(text):
        if ("-" + match["name"].lower()).endswith(NAMES):
            value = VALUE.match(text, match.end())
            if value is not None and _is_secret(value, ""):
                found.append(value.span("quoted" if value["plain"] is None else "plain"))
    pieces, done = [], 0
    for start, end in sorted(found):
        if start >= done:
            pieces += [text[done:start], _SECRET]
            done = end
    return "".join(pieces) + text[done:] if pieces else text


def _is_secret(match: re.Match[str], name: str) -> bool:
    """Decide by the form of the assignment and of the value. No name: the value follows a flag."""
    separator, value = match["sep"], match["quoted"] or match["plain"]
    if match["quoted"] is not None:
        spaced = " " in value.strip()
        return (
            len(value) >= 4
            and not _reference(value)
            and not (spaced and ":" in separator)
            and value.lower() not in NOT_A_VALUE
        )
    if match["after"] or len(value) < 6 or _reference(value) or value.lower().rstrip(".:") in NOT_A_VALUE:
        return False
    if DOTTED_NAME.fullmatch(value) or CODE.match(value) or (value.isdigit() and len(value) < 8 and name):
        return False
    if any(char.isdigit() or char in "!#@^~+=?/" for char in value.rstrip("?!.:")):
        return True
    if not name or name[-8:].isupper():
        return True
    return (separator == "=" or (":" in separator and _alone(match))) and MENTION.search(value) is None


def _alone(match: re.Match[str]) -> bool:
    """Tell whether the assignment is a whole line, as in YAML."""
    text, end = match.string, match.end()
    before = text[max(0, match.start() - 2 * NAME_CHARS_MAX) : match.start()].rpartition("\n")[2]
    return (end == len(text) or text[end] in "\r\n") and LINE_NAME.fullmatch(before) is not None


def _reference(value: str) -> bool:
    """Tell whether the value only points at a secret: a variable, a template, a mask, an earlier placeholder."""
    return value[0] in "$<{[%*" or "${" in value or "{{" in value or not value.strip("*.xX•- ")
