"""Globs over paths below a repository's root, as ``.gitignore`` means them. Pure, without backtracking."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

_ALTERNATIVES_MAX: Final = 64
_One = TypeVar("_One")
_Other = TypeVar("_Other")


def matches(glob: str, path: str) -> bool:
    r"""Tell whether a path, or a directory above it, fits the glob.

    A glob without ``/`` (but for one at its end) fits a name in any directory, another one counts from the root. ``*``
    and ``?`` stop at ``/``, ``**`` does not; ``[...]`` are one character of a set, ``{a,b}`` alternatives, ``\`` takes
    the next character as it is. A ``/`` at the end: only what lies below.
    """
    parts = [part for part in _normal(path).replace("\\", "/").split("/") if part not in ("", ".")]
    return any(_fits(segments, below, parts) for segments, below in _compiled(_normal(glob)))


def literals(glob: str) -> tuple[str, ...]:
    """Return, for each alternative of a glob, the longest text that every path which fits it contains."""
    found = []
    for segments, _ in _compiled(_normal(glob)):
        runs = [run for tokens in segments for run in _runs(tokens)]
        found.append(max(runs, key=len, default=""))
    return tuple(dict.fromkeys(found))


class _Token(NamedTuple):
    """One step inside a name: ``*`` (many), any one character, one of a set, or exactly this one."""

    many: bool = False
    any: bool = False
    exact: str = ""
    chars: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    def fits(self, char: str) -> bool:
        if self.any or self.exact:
            return self.any or self.exact == char
        inside = char in self.chars or any(low <= char <= high for low, high in self.ranges)
        return inside is not self.negated


# A name of a path; an empty one is "**": any number of names.
_Segment = tuple[_Token, ...]


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@lru_cache(maxsize=512)
def _compiled(glob: str) -> tuple[tuple[tuple[_Segment, ...], bool], ...]:
    """Return (segments, whether only what lies below fits) of each alternative."""
    found = []
    for one in _alternatives(glob):
        below = one.endswith("/")
        body = one.strip("/")
        if not body:
            continue
        names = [name for name in body.split("/") if name not in ("", ".")]
        if len(names) == 1 and not one.startswith("/"):
            names.insert(0, "**")
        segments = tuple(() if name == "**" else _tokens(name) for name in names)
        found.append((segments, below or names[-1] == "**"))
    return tuple(found)


def _alternatives(glob: str) -> list[str]:
    """Return what a glob with ``{a,b}`` stands for; braces that never close are letters."""
    waiting, done = [glob], list[str]()
    while waiting and len(waiting) + len(done) <= _ALTERNATIVES_MAX:
        one = waiting.pop(0)
        span = _braces(one)
        if span is None:
            done.append(one)
            continue
        start, end, commas = span
        edges = [start, *commas, end]
        waiting += [one[:start] + one[low + 1 : high] + one[end + 1 :] for low, high in pairwise(edges)]
    return done + waiting


def _braces(glob: str) -> tuple[int, int, list[int]] | None:
    """Return where the first pair of braces with a comma in it begins and ends, and its own commas."""
    start, depth, commas, at = -1, 0, list[int](), 0
    while at < len(glob):
        char = glob[at]
        if char == "\\":
            at += 1
        elif char == "{":
            start, depth, commas = (at, 1, []) if depth == 0 else (start, depth + 1, commas)
        elif char == "," and depth == 1:
            commas.append(at)
        elif char == "}" and depth:
            depth -= 1
            if depth == 0 and commas:
                return start, at, commas
        at += 1
    return None


def _tokens(name: str) -> _Segment:
    found: list[_Token] = []
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        if char == "*":
            if not (found and found[-1].many):
                found.append(_Token(many=True))
        elif char == "?":
            found.append(_Token(any=True))
        elif char == "[" and (end := name.find("]", at + 1 + (name[at : at + 1] in ("!", "^")))) > 0:
            found.append(_set(name[at:end]))
            at = end + 1
        else:
            if char == "\\" and at < len(name):
                char = name[at]
                at += 1
            found.append(_Token(exact=char))
    return tuple(found)


def _set(text: str) -> _Token:
    negated = text.startswith(("!", "^"))
    text = text[1:] if negated else text
    chars, ranges, at = set[str](), [], 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            ranges.append((text[at], text[at + 2]))
            at += 3
        else:
            chars.add(text[at])
            at += 1
    return _Token(chars=frozenset(chars), ranges=tuple(ranges), negated=negated)


def _fits(segments: Sequence[_Segment], below: bool, parts: Sequence[str]) -> bool:
    """Tell whether the path or a directory above it fits: an end that is left over is as good as ``**``."""
    pattern = [*segments, ()] if not segments or segments[-1] else segments
    if below and segments and segments[-1]:
        pattern = [*segments, (_Token(many=True),), ()]
    return _wild(pattern, parts, lambda segment: not segment, _name_fits)


def _name_fits(tokens: _Segment, name: str) -> bool:
    return _wild(tokens, name, lambda token: token.many, lambda token, char: token.fits(char))


def _wild(
    pattern: Sequence[_One], text: Sequence[_Other], many: Callable[[_One], bool], fits: Callable[[_One, _Other], bool]
) -> bool:
    """Match with steps that take any number of items; only the last such step is ever widened, so no backtracking."""
    at = place = 0
    star, mark = -1, 0
    while place < len(text):
        if at < len(pattern) and many(pattern[at]):
            star, mark = at, place
            at += 1
        elif at < len(pattern) and fits(pattern[at], text[place]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return all(many(step) for step in pattern[at:])


def _runs(tokens: _Segment) -> list[str]:
    """Return the runs of exact characters of a name."""
    found, run = [], ""
    for token in tokens:
        if token.exact:
            run += token.exact
        else:
            found.append(run)
            run = ""
    return [*found, run]
