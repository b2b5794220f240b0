"""A pattern that is compiled late does what one does that was compiled at once."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import pytest

import memorize
from memorize.patterns import late

# What runs when it is imported.
_PROGRAMS = ("memorize.__main__", "memorize.capture.")
TEXT = "환불 refund 환불은 REFUND"


@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_every_method_answers_as_if_it_had_been_compiled(flags: int) -> None:
    for source, text in ((r"(?P<what>환불|refund)\S*", TEXT), (rb"(?P<what>refund)\S*", TEXT.encode())):
        made, soon = re.compile(source, flags), late(source, flags)
        assert [found.span() for found in soon.finditer(text)] == [found.span() for found in made.finditer(text)]
        for name in ("search", "match", "fullmatch"):
            ours, theirs = getattr(late(source, flags), name)(text), getattr(made, name)(text)
            assert (ours and ours.span()) == (theirs and theirs.span())
        for name in ("split", "findall"):
            assert getattr(late(source, flags), name)(text) == getattr(made, name)(text)
        for name in ("sub", "subn"):
            assert getattr(late(source, flags), name)(text[:0], text) == getattr(made, name)(text[:0], text)
        for name in ("pattern", "flags", "groups", "groupindex"):
            assert getattr(late(source, flags), name) == getattr(made, name)


def test_a_mistake_in_a_pattern_shows_at_the_first_use() -> None:
    wrong = late("(")
    with pytest.raises(re.error):
        wrong.search("")


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError):
        late("a").scan  # type: ignore[attr-defined]  # noqa: B018


def test_every_pattern_of_the_program_can_be_compiled() -> None:
    names = [found.name for found in pkgutil.walk_packages(memorize.__path__, "memorize.")]
    modules = [import_module(name) for name in names if not name.startswith(_PROGRAMS)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, type(late("")))]
    assert len(found) > 100
    for one in found:
        assert one.pattern
