"""What the lexers of command lines give: words, and simple commands made of them."""

from __future__ import annotations

from typing import Literal, NamedTuple

# Whose grammar a command line follows.
Shell = Literal["posix", "powershell", "cmd"]


class Word(NamedTuple):
    """One word of a command without its quotes.

    ``dynamic``: the shell puts something in that is not known before it runs; it stands in ``text`` as ``$name`` or
    ``$``. ``plain`` is the number of leading characters outside quotes: only those can be syntax.
    """

    text: str
    dynamic: bool = False
    plain: int = 0

    @property
    def bare(self) -> bool:
        """Whether it is written without any quote or escape and means itself."""
        return self.plain == len(self.text) and not self.dynamic


class Simple(NamedTuple):
    """One simple command: a program and its arguments, without redirections, assignments and keywords.

    ``writes``: it writes to a file by redirection. ``at`` is where it begins in the line. ``words`` is empty for a
    redirection or an assignment alone.
    """

    words: tuple[Word, ...]
    writes: bool = False
    at: int = 0


class Split(NamedTuple):
    """A command line in simple commands, in the order in which they end; not ``complete`` when a quote never closes."""

    commands: tuple[Simple, ...]
    complete: bool
