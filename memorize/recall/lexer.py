"""The lexer of POSIX shells, with what bash and zsh add: a command line in simple commands.

One pass from left to right over a stack of open constructs, so time and space are linear in the line, however deep it
nests. It never raises: what a shell would refuse is read as far as it makes sense. Bodies of here-documents are text,
never commands. Commands inside substitutions, groups, conditions, loops and functions are commands like all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from memorize.recall.words import Simple, Split, Word

# Backquotes are read as lines of their own; each level needs twice the backslashes, so nobody writes deep ones.
_BACKQUOTES_MAX: Final = 8
# What means nothing to a shell, taken in one step: the rest of a word, of double quotes, and of what is skipped.
_PLAIN: Final = re.compile(r"[^'\"\\`$ \t\r\n;&|()<>#]+")
_IN_QUOTES: Final = re.compile(r"[^\"\\`$]+")
_IN_BRACES: Final = re.compile(r"[^}'\"\\`$]+")
_IN_PARENS: Final = re.compile(r"[^()'\"\\`$#]+")
_BLANKS: Final = re.compile(r"[ \t\r]+")
_NO_PARAMETERS: Final = re.compile(r"\([ \t]*\)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ANSI: Final = re.compile(r"(?:[^'\\]|\\.)*+'", re.DOTALL)
_BACKQUOTED: Final = re.compile(r"(?:[^`\\]|\\.)*+`", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_DESCRIPTOR: Final = re.compile(r"\d{1,9}|\{\w{1,40}\}")
_REDIRECTION: Final = re.compile(r"<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_HARMLESS: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "nul", "NUL", "$null"})

# Words that are syntax where a command may begin; what follows them may be a command.
_KEYWORDS: Final = frozenset("if then else elif fi while until do done { } ! coproc always".split())
_LOOPS: Final = frozenset({"for", "select", "foreach"})
# What the next word is: an argument, the target of a redirection, its source, a descriptor, the end of a document.
_ARGUMENT, _TARGET, _SOURCE, _COPY, _DOCUMENT, _TABBED = range(6)
# Where a case construct stands: before "in", among patterns, in the commands of one.
_SUBJECT, _PATTERN, _BODY = range(3)
_LINE, _PARENS, _QUOTES, _BRACES, _SUM, _SKIPPED = range(6)


class _Open:
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
        self.role = _ARGUMENT
        self.drop()

    def drop(self) -> None:
        """Forget the word in the making."""
        self.word = None
        self.size = 0
        self.plain = -1
        self.dynamic = False

    @property
    def in_pattern(self) -> bool:
        return bool(self.cases) and self.cases[-1] != _BODY


def split(line: str) -> Split:
    """Return the simple commands of a line or script, those of substitutions included."""
    return _Lexer(line, 0, 0).run()


class _Lexer:
    """One reading. ``base`` is where the text begins in the whole line."""

    def __init__(self, text: str, level: int, base: int) -> None:
        self.text, self.level, self.base = text, level, base
        self.at = 0
        self.done: list[Simple] = []
        self.open = [_Open(_LINE)]
        self.lists = [self.open[0]]  # those that hold commands
        self.documents: list[tuple[str, bool]] = []
        self.complete = True

    def run(self) -> Split:
        steps: dict[int, Callable[[_Open], None]] = {
            _LINE: self._command, _PARENS: self._command, _QUOTES: self._quotes, _BRACES: self._braces,
            _SUM: self._sum, _SKIPPED: self._skipped,
        }  # fmt: skip
        while self.at < len(self.text):
            top = self.open[-1]
            steps[top.kind](top)
        self.complete = self.complete and len(self.open) == 1
        while self.lists:
            self._end_command(self.lists.pop())
        return Split(tuple(self.done), self.complete)

    # -- words ----------------------------------------------------------------------------------------------------

    def _add(self, text: str, *, quoted: bool = False, dynamic: bool = False) -> None:
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

    def _end_word(self, top: _Open) -> None:
        if top.word is None:
            return
        text = "".join(top.word)
        word = Word(text, top.dynamic, len(text) if top.plain < 0 else top.plain)
        role, top.role = top.role, _ARGUMENT
        top.drop()
        if role == _ARGUMENT:
            self._take(top, word)
        elif role in (_DOCUMENT, _TABBED):
            self.documents.append((text, role == _TABBED))
        elif role == _TARGET:
            top.writes = top.writes or text not in _HARMLESS
        elif role == _COPY:
            top.writes = top.writes or not (text.rstrip("-").isdigit() or text in ("-", *_HARMLESS))

    def _take(self, top: _Open, word: Word) -> None:
        """Take a word as what the grammar says it is."""
        if top.in_pattern:
            self._take_in_case(top, word)
        elif top.naming:
            top.naming = False
        elif top.test:
            top.words.append(word)
            top.test = not (word.bare and word.text == "]]")
        elif top.header:
            return
        elif top.words or not self._is_syntax(top, word):
            if not top.words:
                top.at = top.start
            top.words.append(word)

    @staticmethod
    def _take_in_case(top: _Open, word: Word) -> None:
        if top.cases[-1] == _SUBJECT and word.bare and word.text == "in":
            top.cases[-1] = _PATTERN
        elif top.cases[-1] == _PATTERN and word.bare and word.text == "esac":
            top.cases.pop()

    @staticmethod
    def _is_syntax(top: _Open, word: Word) -> bool:
        """Tell whether the first word of a command is a keyword or an assignment, and act on it."""
        found = _ASSIGNMENT.match(word.text) if "=" in word.text else None
        if found is not None and found.end() <= word.plain:
            top.assigned = True
            return True
        if not word.bare or top.assigned:
            return False
        if word.text in _LOOPS:
            top.header = True
        elif word.text == "case":
            top.cases.append(_SUBJECT)
        elif word.text == "esac" and top.cases:
            top.cases.pop()
        elif word.text == "function":
            top.naming = True
        elif word.text == "[[":
            top.test = True
            return False
        else:
            return word.text in _KEYWORDS
        return True

    def _end_command(self, top: _Open) -> None:
        self._end_word(top)
        if (top.words or top.writes or top.assigned) and not top.in_pattern:
            self.done.append(Simple(tuple(top.words), top.writes, self.base + top.at))
        top.begin()

    # -- where commands stand -------------------------------------------------------------------------------------

    def _command(self, top: _Open) -> None:
        """Take what begins here, where commands are."""
        found = _PLAIN.match(self.text, self.at)
        if found is not None:
            self._add(found[0])
            self.at = found.end()
            return
        char = self.text[self.at]
        if char in " \t\r":
            self._end_word(top)
            self.at = _after(_BLANKS, self.text, self.at)
        elif char == "#":
            self._hash(top)
        elif char in "'\"\\`$":
            self._special(char, quotes=True)
        elif top.test and char in "&|()<>;\n":  # operators of a condition
            self._end_word(top)
            self.at += 1
        elif char in "<>":
            self._redirection(top)
        elif char == "(":
            self._opening(top)
        elif char == ")":
            self._closing(top)
        else:
            self._separator(top, char)

    def _hash(self, top: _Open) -> None:
        if top.word is not None:
            self._add("#")
            self.at += 1
            return
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _separator(self, top: _Open, char: str) -> None:
        text, at = self.text, self.at
        if char == "&" and text.startswith(("&>", "&>>"), at):  # bash: both streams to a file
            self._end_word(top)
            top.role = _TARGET
            self.at += 3 if text.startswith("&>>", at) else 2
            return
        if top.in_pattern:
            self._end_word(top)
        else:
            self._end_command(top)
            if char == ";" and text.startswith((";;", ";&"), at) and top.cases:
                top.cases[-1] = _PATTERN
        self.at += 2 if text.startswith((";;", "&&", "||", "|&"), at) else 1
        if char == "\n":
            self._step_over_documents()

    def _step_over_documents(self) -> None:
        """Step over the bodies of the here-documents that were announced on the line that ends here."""
        for name, tabbed in self.documents:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end].removesuffix("\r")
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if tabbed else line) == name:
                    break
        self.documents.clear()

    def _redirection(self, top: _Open) -> None:
        text = self.text
        if text.startswith(("<(", ">("), self.at):
            self._enter(_Open(_PARENS, substitutes=True), 2)
            return
        if top.word is not None and len(top.word) == 1 and top.plain < 0 and _DESCRIPTOR.fullmatch(top.word[0]):
            top.drop()
        self._end_word(top)
        found = _REDIRECTION.match(text, self.at)
        operator = found[0] if found is not None else text[self.at]
        self.at += len(operator)
        roles = {"<<": _DOCUMENT, "<<-": _TABBED, ">&": _COPY, "<&": _COPY}
        top.role = roles.get(operator, _TARGET if operator[0] == ">" else _SOURCE)

    def _opening(self, top: _Open) -> None:
        """Take an opening parenthesis: a subshell, a list of values, a pattern, or a function's."""
        last = top.word[-1][-1:] if top.word and top.plain < 0 else ""
        first = not top.words and not top.assigned
        if top.in_pattern:
            self._end_word(top)
            self.at += 1
        elif top.header or (last == "=" and first) or (last in "?*+@!" and last and not (first and top.size == 1)):
            self._add("")
            self._enter(_Open(_SKIPPED), 1)
        elif (found := _NO_PARAMETERS.match(self.text, self.at)) and len(top.words) + (top.word is not None) < 2:
            top.begin()  # the name of a function; its body are commands
            self.at = found.end()
        else:
            self._end_command(top)
            self._enter(_Open(_PARENS), 1)

    def _closing(self, top: _Open) -> None:
        if top.cases and top.cases[-1] == _PATTERN:
            top.begin()
            top.cases[-1] = _BODY
            self.at += 1
            return
        self._end_command(top)
        if top.kind == _PARENS:
            self._leave(top)
        self.at += 1

    # -- quotes and substitutions ---------------------------------------------------------------------------------

    def _special(self, char: str, *, quotes: bool) -> None:
        """Take what begins with one of ``'"\\`$``; inside double quotes (not ``quotes``) some of it is text."""
        if char == "\\":
            self._escape(quotes)
        elif char == "`":
            self._backquotes()
        elif char == "$":
            self._dollar(quotes)
        elif char == "'" and quotes:
            end = self.text.find("'", self.at + 1)
            self._until(end, self.text[self.at + 1 : end] if end >= 0 else "")
        elif char == '"':
            self._add("", quoted=True)
            self._enter(_Open(_QUOTES), 1)
        else:
            self._add(char)
            self.at += 1

    def _until(self, end: int, text: str) -> None:
        """Take a quoted text that ends at ``end``; -1: it never does."""
        self._add(text, quoted=True)
        self.complete = self.complete and end >= 0
        self.at = end + 1 if end >= 0 else len(self.text)

    def _escape(self, quotes: bool) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "\r" and self.text.startswith("\n", self.at + 2):
            self.at += 1
            following = "\n"
        if following != "\n":  # a line that goes on in the next one is one line
            self._add(following if quotes or following in '$`"\\' else f"\\{following}", quoted=True)
        self.at += 2

    def _backquotes(self) -> None:
        found = _BACKQUOTED.match(self.text, self.at + 1)
        self._add("$", dynamic=True)
        if found is None or self.level >= _BACKQUOTES_MAX:
            self.complete = False
            self.at = len(self.text) if found is None else found.end()
            return
        inner = re.sub(r"\\([`\\$])", r"\1", found[0][:-1])
        said = _Lexer(inner, self.level + 1, self.base + self.at + 1).run()
        self.done += said.commands
        self.complete = self.complete and said.complete
        self.at = found.end()

    def _dollar(self, quotes: bool) -> None:
        text, at = self.text, self.at
        if text.startswith("$((", at):
            self._enter(_Open(_SUM), 3)
        elif text.startswith("$(", at):
            self._enter(_Open(_PARENS, substitutes=True), 2)
        elif text.startswith("${", at):
            self._add("$", dynamic=True)
            self._enter(_Open(_BRACES), 2)
        elif quotes and text.startswith("$'", at):
            found = _ANSI.match(text, at + 2)
            self._until(found.end() - 1 if found else -1, re.sub(r"\\(.)", r"\1", found[0][:-1]) if found else "")
        elif quotes and text.startswith('$"', at):
            self.at += 1
        else:
            found = _NAME.match(text, at + 1)
            self._add(f"${found[0]}" if found else "$", dynamic=found is not None)
            self.at = found.end() if found else at + 1

    def _enter(self, inner: _Open, width: int) -> None:
        if inner.substitutes or inner.kind == _SUM:
            self._add("$", dynamic=True)
        self.open.append(inner)
        if inner.kind == _PARENS:
            self.lists.append(inner)
        self.at += width

    def _leave(self, top: _Open) -> None:
        self.open.pop()
        if top.kind == _PARENS:
            self.lists.pop()

    def _quotes(self, top: _Open) -> None:
        """Take what begins here, inside double quotes."""
        found = _IN_QUOTES.match(self.text, self.at)
        if found is not None:
            self._add(found[0], quoted=True)
            self.at = found.end()
        elif self.text[self.at] == '"':
            self._leave(top)
            self.at += 1
        else:
            self._special(self.text[self.at], quotes=False)

    def _braces(self, top: _Open) -> None:
        """Take what begins here, inside ``${...}``: only substitutions in it matter."""
        found = _IN_BRACES.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        elif self.text[self.at] == "}":
            self._leave(top)
            self.at += 1
        else:
            self._special(self.text[self.at], quotes=self.open[-2].kind != _QUOTES)

    def _sum(self, top: _Open) -> None:
        """Take what begins here, inside ``$((...))``."""
        char = self.text[self.at]
        if (found := _IN_PARENS.match(self.text, self.at)) is not None:
            self.at = found.end()
        elif char == ")" and top.depth == 0:
            self._leave(top)
            if self.text.startswith("))", self.at):
                self.at += 1
            else:  # a substitution that began with a subshell
                self.open.append(inner := _Open(_PARENS, substitutes=True))
                self.lists.append(inner)
            self.at += 1
        elif char in "()":
            top.depth += 1 if char == "(" else -1
            self.at += 1
        elif char in "#'":
            self.at += 1
        else:
            self._special(char, quotes=True)

    def _skipped(self, top: _Open) -> None:
        """Take what begins here, in a list of values or a pattern: only substitutions in it matter."""
        char = self.text[self.at]
        if (found := _IN_PARENS.match(self.text, self.at)) is not None:
            self.at = found.end()
        elif char == ")" and top.depth == 0:
            self._leave(top)
            self.at += 1
        elif char in "()":
            top.depth += 1 if char == "(" else -1
            self.at += 1
        elif char == "#":
            end = self.text.find("\n", self.at) if self.text[self.at - 1].isspace() else self.at
            self.at = len(self.text) if end < 0 else end + 1
        else:
            self._special(char, quotes=True)


def _after(run: re.Pattern[str], text: str, at: int) -> int:
    found = run.match(text, at)
    return at + 1 if found is None else found.end()
