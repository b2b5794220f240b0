"""What quotes, escapes and substitutions of POSIX shells do to words: the lower half of the lexer.

A reading keeps a stack of open constructs. Those that hold commands make words; the others add to the word of the
nearest one that does.
"""

from __future__ import annotations

import re
from typing import Final

from memorize.patterns import late
from memorize.recall.words import Simple, Split, Word

# Backquotes are read as lines of their own; each level needs twice the backslashes, so nobody writes deep ones.
_BACKQUOTES_MAX: Final = 8
# What means nothing to a shell, taken in one step: in double quotes, in braces, in parentheses.
_IN_QUOTES: Final = late(r"[^\"\\`$]+")
_QUOTED: Final = late(r"\"([^\"\\`$]*)\"")
_IN_BRACES: Final = late(r"[^}'\"\\`$]+")
_IN_PARENS: Final = late(r"[^()'\"\\`$#]+")
_NAME: Final = late(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ANSI: Final = late(r"[^'\\]*+(?:\\.[^'\\]*+)*'", re.DOTALL)
_BACKQUOTED: Final = late(r"[^`\\]*+(?:\\.[^`\\]*+)*`", re.DOTALL)

# What the next word is: an argument, the target of a redirection, its source, a descriptor, the end of a document.
ARGUMENT, TARGET, SOURCE, COPY, DOCUMENT, TABBED = range(6)
# Where a case construct stands: before "in", among patterns, in the commands of one.
SUBJECT, PATTERN, BODY = range(3)
# Constructs: a whole line, commands in parentheses, double quotes, ``${...}``, ``$((...))``, what is skipped.
LINE, PARENS, QUOTES, BRACES, SUM, SKIPPED = range(6)


class Construct:
    """An open construct; only those that hold commands use more than the first three fields."""

    __slots__ = ("assigned", "at", "cases", "depth", "dynamic", "header", "kind", "naming", "plain", "role", "size",
                 "start", "substitutes", "test", "word", "words", "writes")  # fmt: skip

    def __init__(self, kind: int, *, substitutes: bool = False) -> None:
        self.kind = kind
        self.depth = 0
        self.substitutes = substitutes  # its end adds something unknown to a word of the construct around it
        self.cases: list[int] = []
        self.word: list[str] | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a command."""
        self.words: list[Word] = []
        self.at = self.start = 0
        self.writes = self.assigned = self.header = self.test = self.naming = False
        self.role = ARGUMENT
        self.drop()

    def drop(self) -> None:
        """Forget the word in the making."""
        self.word = None
        self.size = 0
        self.plain = -1
        self.dynamic = False

    @property
    def in_pattern(self) -> bool:
        """Whether what stands here are the words of a case construct, not commands."""
        return bool(self.cases) and self.cases[-1] != BODY


class Quoting:
    """One reading of a text. ``base`` is where the text begins in the whole line."""

    def __init__(self, text: str, level: int = 0, base: int = 0) -> None:
        """Nothing is read yet."""
        self.text, self.level, self.base = text, level, base
        self.at = 0
        self.done: list[Simple] = []
        self.open = [Construct(LINE)]
        self.lists = [self.open[0]]  # those that hold commands
        self.complete = True

    def run(self) -> Split:
        """Read to the end."""
        raise NotImplementedError

    def add(self, text: str, *, quoted: bool = False, dynamic: bool = False) -> None:
        """Add to the word in the making, or begin one."""
        into = self.lists[-1]
        if into.word is None:
            into.word = []
            into.start = self.at
        if quoted and into.plain < 0:
            into.plain = into.size
        into.word.append(text)
        into.size += len(text)
        into.dynamic = into.dynamic or dynamic

    def special(self, char: str, *, quotes: bool) -> None:
        r"""Take what begins with one of ``'"\`$``; inside double quotes (not ``quotes``) some of it is text."""
        if char == "\\":
            self._escape(quotes)
        elif char == "`":
            self._backquotes()
        elif char == "$":
            self._dollar(quotes)
        elif char == "'" and quotes:
            end = self.text.find("'", self.at + 1)
            self._until(end, self.text[self.at + 1 : end] if end >= 0 else "")
        elif char == '"' and (found := _QUOTED.match(self.text, self.at)) is not None:
            self.add(found[1], quoted=True)
            self.at = found.end()
        elif char == '"':
            self.add("", quoted=True)
            self.enter(Construct(QUOTES), 1)
        else:
            self.add(char)
            self.at += 1

    def _until(self, end: int, text: str) -> None:
        """Take a quoted text that ends at ``end``; -1: it never does."""
        self.add(text, quoted=True)
        self.complete = self.complete and end >= 0
        self.at = end + 1 if end >= 0 else len(self.text)

    def _escape(self, quotes: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "\r" and self.text.startswith("\n", self.at + 2):
            self.at += 1
            following = "\n"
        if following != "\n":  # a line that goes on in the next one is one line
            self.add(following if quotes or following in '$`"\\' else f"\\{following}", quoted=True)
        self.at += 2

    def _backquotes(self) -> None:
        found = _BACKQUOTED.match(self.text, self.at + 1)
        self.add("$", dynamic=True)
        if found is None or self.level >= _BACKQUOTES_MAX:
            self.complete = False
            self.at = len(self.text) if found is None else found.end()
            return
        inner = re.sub(r"\\([`\\$])", r"\1", found[0][:-1])
        said = type(self)(inner, self.level + 1, self.base + self.at + 1).run()
        self.done += said.commands
        self.complete = self.complete and said.complete
        self.at = found.end()

    def _dollar(self, quotes: bool) -> None:
        text, at = self.text, self.at
        if text.startswith("$((", at):
            self.enter(Construct(SUM), 3)
        elif text.startswith("$(", at):
            self.enter(Construct(PARENS, substitutes=True), 2)
        elif text.startswith("${", at):
            self.add("$", dynamic=True)
            self.enter(Construct(BRACES), 2)
        elif quotes and text.startswith("$'", at):
            found = _ANSI.match(text, at + 2)
            self._until(found.end() - 1 if found else -1, re.sub(r"\\(.)", r"\1", found[0][:-1]) if found else "")
        elif quotes and text.startswith('$"', at):
            self.at += 1
        else:
            found = _NAME.match(text, at + 1)
            self.add(f"${found[0]}" if found else "$", dynamic=found is not None)
            self.at = found.end() if found else at + 1

    def enter(self, inner: Construct, width: int) -> None:
        """Open a construct whose sign is that wide."""
        if inner.substitutes or inner.kind == SUM:
            self.add("$", dynamic=True)
        self.open.append(inner)
        if inner.kind == PARENS:
            self.lists.append(inner)
        self.at += width

    def leave(self, top: Construct) -> None:
        """Close the construct that was opened last."""
        self.open.pop()
        if top.kind == PARENS:
            self.lists.pop()

    def quotes(self, top: Construct) -> None:
        """Take what begins here, inside double quotes."""
        found = _IN_QUOTES.match(self.text, self.at)
        if found is not None:
            self.add(found[0], quoted=True)
            self.at = found.end()
        elif self.text[self.at] == '"':
            self.leave(top)
            self.at += 1
        else:
            self.special(self.text[self.at], quotes=False)

    def braces(self, top: Construct) -> None:
        """Take what begins here, inside ``${...}``: only substitutions in it matter."""
        found = _IN_BRACES.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        elif self.text[self.at] == "}":
            self.leave(top)
            self.at += 1
        else:
            self.special(self.text[self.at], quotes=self.open[-2].kind != QUOTES)

    def sum(self, top: Construct) -> None:
        """Take what begins here, inside ``$((...))``."""
        char = self.text[self.at]
        if (found := _IN_PARENS.match(self.text, self.at)) is not None:
            self.at = found.end()
        elif char == ")" and top.depth == 0:
            self.leave(top)
            if self.text.startswith("))", self.at):
                self.at += 1
            else:  # a substitution that began with a subshell
                self.open.append(inner := Construct(PARENS, substitutes=True))
                self.lists.append(inner)
            self.at += 1
        elif char in "()":
            top.depth += 1 if char == "(" else -1
            self.at += 1
        elif char in "#'":
            self.at += 1
        else:
            self.special(char, quotes=True)

    def skipped(self, top: Construct) -> None:
        """Take what begins here, in a list of values or a pattern: only substitutions in it matter."""
        char = self.text[self.at]
        if (found := _IN_PARENS.match(self.text, self.at)) is not None:
            self.at = found.end()
        elif char == ")" and top.depth == 0:
            self.leave(top)
            self.at += 1
        elif char in "()":
            top.depth += 1 if char == "(" else -1
            self.at += 1
        elif char == "#":
            end = self.text.find("\n", self.at) if self.text[self.at - 1].isspace() else self.at
            self.at = len(self.text) if end < 0 else end + 1
        else:
            self.special(char, quotes=True)
