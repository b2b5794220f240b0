"""The steps by which the lexer takes several words at once give what word after word gives."""

from __future__ import annotations

import random

import pytest

from memorize.recall import lexer, quoting
from memorize.recall.quoting import Construct
from tests.counts import count
from tests.recall.command_lines import POSIX

_PIECES = (
    *(" ", " ", " ", "  ", "\t", "\r", "\n", "\xa0", "\\", "'", '"', "<<E", "E\n", "한글"),
    *("; && || | & ( ) $( ` # $x ${ } { < > 2> 2>&1 &> if then fi for in do done case esac ;;".split()),
    *("time function f() [[ ]] (( )) $(( select ! git push -x -p x=1 = ?(".split()),
)


class _Slowly(lexer._Lexer):
    """Takes one word after the other."""

    def _arguments(self, top: Construct) -> None:
        """Leave them."""


class _NoText:
    def match(self, text: str, at: int) -> None:
        """Match nothing."""


def _same(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = lexer.split(line)
    with monkeypatch.context() as patch:
        patch.setattr(quoting, "_QUOTED", _NoText())
        assert _Slowly(line).run() == quick, line


def test_lines_that_people_write_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for line in POSIX:
        _same(line if isinstance(line, str) else line[0], monkeypatch)


def test_lines_that_nobody_writes_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(20260731)
    for _ in range(count("lines read in two ways", 2_000, 40_000)):
        pieces = [chance.choice(_PIECES) + " " * (chance.random() < 0.4) for _ in range(chance.randrange(1, 14))]
        _same("".join(pieces), monkeypatch)
