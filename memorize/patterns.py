"""Regular expressions that are compiled when they are first used.

To compile one takes as long as to load a module, and a verb uses few of those that the modules it needs define.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, Final, Generic, cast

_NAMES: Final = (
    *("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"),
    *("pattern", "flags", "groups", "groupindex"),
)


class _Late(Generic[AnyStr]):
    """A pattern to be. Its methods lie in slots, so that once they are there a call costs what it always does."""

    __slots__ = ("_source", *_NAMES)

    def __init__(self, source: tuple[AnyStr, int]) -> None:
        self._source: tuple[AnyStr, int] = source

    def __getattr__(self, name: str) -> Any:
        """Compile, at the first use of any method: it is reached only while the slots are empty."""
        if name not in _NAMES:
            raise AttributeError(name)
        compiled = re.compile(*self._source)
        for each in _NAMES:
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)


def late(pattern: AnyStr, flags: int | re.RegexFlag = 0) -> re.Pattern[AnyStr]:
    """Return what ``re.compile`` returns, as far as its methods go; a mistake in the pattern shows at the first use."""
    return cast("re.Pattern[AnyStr]", _Late((pattern, flags)))
