"""Find the JSON in what a model said: alone, fenced, behind prose and footnotes, cut off in the middle. Pure.

Models wrap their answers in whatever they like, so the search is for things that look like the beginning of an
answer, a few of them at most, and time stays linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from memorize.patterns import late

ANSWER_CHARS_MAX: Final = 4 * 1024 * 1024
_TRIES_MAX: Final = 24
_NESTING_MAX: Final = 4
_ITEMS_MAX: Final = 2_000
_FENCE: Final = late(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n?(.*?)```", re.DOTALL)
# An object with a name, or an array of objects or arrays; "[1]" and "{x}" in prose are neither.
_START: Final = late(r'\{\s{0,200}"|\[(?:\s{0,40}\[){0,4}\s{0,200}\{\s{0,200}"')
_ITEM: Final = late(r'\{\s{0,200}"')
_EMPTY: Final = late(r"\[\s*\]|\{\s*\}")
_KEY: Final = "memories"
_DECODER: Final = json.JSONDecoder(strict=False)


def items_of(text: str) -> list[Any] | None:
    """Return the items of the answer that a text holds, whatever they are; None when it holds none.

    An empty list is an answer too, but only under its name or when there is no other text.
    """
    whole = text[:ANSWER_CHARS_MAX].lstrip("\ufeff").strip()
    for document in (whole, *(found[1].strip() for found in _FENCE.finditer(whole))):
        if _EMPTY.fullmatch(document):
            return []
    best: list[Any] | None = None
    for value in _values(whole):
        found = _items(value, 0)
        # Of several the fullest counts, of equals the last: models show an example first.
        if found is not None and (best is None or len(found) >= len(best)):
            best = found
    return best if best else (_salvaged(whole) or best)


def _values(text: str) -> Iterator[Any]:
    """Return the JSON values in a text, outermost ones only."""
    if text.startswith('"'):
        # An answer that was made a string of once more.
        inner = _decoded(text, 0)
        if inner is not None and isinstance(inner[0], str) and inner[1] == len(text):
            text = inner[0].strip()
    place, tries = 0, 0
    while tries < _TRIES_MAX and (start := _START.search(text, place)) is not None:
        tries += 1
        found = _decoded(text, start.start())
        if found is None:
            place = start.start() + 1
        else:
            yield found[0]
            place = found[1]


def _decoded(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _items(value: Any, depth: int) -> list[Any] | None:
    """Return the list of memories in a decoded value: under its name at any shallow depth, bare, or a single one."""
    if depth > _NESTING_MAX:
        return None
    if isinstance(value, dict):
        if _KEY in value:
            held = value[_KEY]
            return _flat(held, 0) if isinstance(held, list) else [held] if isinstance(held, dict) else None
        if "kind" in value and "text" in value:
            return [value]
        inner = (_items(one, depth + 1) for one in value.values() if isinstance(one, dict | list) and one)
        return next((found for found in inner if found is not None), None)
    if isinstance(value, list):
        flat = _flat(value, 0)
        if any(isinstance(one, dict) and _KEY in one for one in flat):
            return next((found for one in flat if (found := _items(one, depth + 1)) is not None), None)
        return flat if any(isinstance(one, dict) and ("text" in one or "kind" in one) for one in flat) else None
    return None


def _flat(items: list[Any], depth: int) -> list[Any]:
    """Return the items of nested lists in their order."""
    found: list[Any] = []
    for item in items[:_ITEMS_MAX]:
        if isinstance(item, list) and depth < _NESTING_MAX:
            found += _flat(item, depth + 1)
        else:
            found.append(item)
    return found[:_ITEMS_MAX]


def _salvaged(text: str) -> list[Any] | None:
    """Return the whole items of an answer that breaks off, or has a fault somewhere; None when there is none."""
    found: list[Any] = []
    place, failed = 0, 0
    while failed < _TRIES_MAX and len(found) < _ITEMS_MAX and (start := _ITEM.search(text, place)) is not None:
        decoded = _decoded(text, start.start())
        if decoded is None:
            failed += 1
            place = start.start() + 1
            continue
        if isinstance(decoded[0], dict) and "text" in decoded[0] and "kind" in decoded[0]:
            found.append(decoded[0])
        place = decoded[1]
    return found or None
