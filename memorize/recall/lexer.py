"""The lexer of POSIX shells, with what bash and zsh add: a command line in simple commands.

One pass from left to right over a stack of open constructs, so time and space are linear in the line, however deep it
nests. It never raises: what a shell would refuse is read as far as it makes sense. Bodies of here-documents are text,
never commands. Commands inside substitutions, groups, conditions, loops and functions are commands like all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from memorize.patterns import late
from memorize.recall.quoting import (
    ARGUMENT,
    BODY,
    BRACES,
    COPY,
    DOCUMENT,
    LINE,
    PARENS,
    PATTERN,
    QUOTES,
    SKIPPED,
    SOURCE,
    SUBJECT,
    SUM,
    TABBED,
    TARGET,
    Construct,
    Quoting,
)
from memorize.recall.words import Simple, Split, Word

_PLAIN: Final = late(r"[^'\"\\`$ \t\r\n;&|()<>#]+")
_BLANKS: Final = late(r"[ \t\r]+")
# Plain words up to the next thing that is none; each ends where nothing can be added to it.
_ARGUMENTS: Final = late(r"(?:[^'\"\\`$ \t\r\n;&|()<>#]++(?:[ \t\r]++|(?=[\n;&|)]|\Z)))+")
_ARGUMENT: Final = late(r"[^ \t\r]+")
_NO_PARAMETERS: Final = late(r"\([ \t]*\)")
_ASSIGNMENT: Final = late(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_DESCRIPTOR: Final = late(r"\d{1,9}|\{\w{1,40}\}")
_REDIRECTION: Final = late(r"<<<|<<-|<<|<&|<>|<|>>|>&|>\||>")
_HARMLESS: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "nul", "NUL", "$null"})

# Words that are syntax where a command may begin; what follows them may be a command.
_KEYWORDS: Final = frozenset("if then else elif fi while until do done { } ! coproc always".split())
_LOOPS: Final = frozenset({"for", "select", "foreach"})
_DECLARES: Final = frozenset("declare typeset local export readonly".split())
# Words with which a command of several commands begins; bash lets "time" stand before it.
_COMPOUND: Final = frozenset("{ if while until case for select".split())


@lru_cache(maxsize=8)  # of one command line several things are asked, one after the other
def split(line: str) -> Split:
    """Return the simple commands of a line or script, those of substitutions included."""
    return _Lexer(line).run()


def _times(words: list[Word]) -> bool:
    return words[0].bare and words[0].text == "time" and all(word.text == "-p" for word in words[1:])


class _Lexer(Quoting):
    """One reading: the grammar of commands."""

    def __init__(self, text: str, level: int = 0, base: int = 0) -> None:
        super().__init__(text, level, base)
        self.documents: list[tuple[str, bool]] = []

    def run(self) -> Split:
        steps: dict[int, Callable[[Construct], None]] = {
            LINE: self._command, PARENS: self._command, QUOTES: self.quotes, BRACES: self.braces,
            SUM: self.sum, SKIPPED: self.skipped,
        }  # fmt: skip
        while self.at < len(self.text):
            top = self.open[-1]
            steps[top.kind](top)
        self.complete = self.complete and len(self.open) == 1
        while self.lists:
            self._end_command(self.lists.pop())
        return Split(tuple(self.done), self.complete)

    def _end_word(self, top: Construct) -> None:
        if top.word is None:
            return
        text = "".join(top.word)
        word = Word(text, top.dynamic, len(text) if top.plain < 0 else top.plain)
        role, top.role = top.role, ARGUMENT
        top.drop()
        if role == ARGUMENT:
            self._take(top, word)
        elif role in (DOCUMENT, TABBED):
            self.documents.append((text, role == TABBED))
        elif role == TARGET:
            top.writes = top.writes or text not in _HARMLESS
        elif role == COPY:
            top.writes = top.writes or not (text.rstrip("-").isdigit() or text in ("-", *_HARMLESS))

    def _take(self, top: Construct, word: Word) -> None:
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
        else:
            if top.words and word.bare and word.text in _COMPOUND and _times(top.words):
                top.words.clear()  # "time" before a loop, a condition or a group
            if top.words or not self._is_syntax(top, word):
                if not top.words:
                    top.at = top.start
                top.words.append(word)

    @staticmethod
    def _take_in_case(top: Construct, word: Word) -> None:
        if top.cases[-1] == SUBJECT and word.bare and word.text == "in":
            top.cases[-1] = PATTERN
        elif top.cases[-1] == PATTERN and word.bare and word.text == "esac":
            top.cases.pop()

    @staticmethod
    def _is_syntax(top: Construct, word: Word) -> bool:
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
            top.cases.append(SUBJECT)
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

    def _end_command(self, top: Construct) -> None:
        self._end_word(top)
        if (top.words or top.writes or top.assigned) and not top.in_pattern:
            self.done.append(Simple(tuple(top.words), top.writes, self.base + top.at))
        top.begin()

    # -- where commands stand -------------------------------------------------------------------------------------

    def _command(self, top: Construct) -> None:
        """Take what begins here, where commands are."""
        found = _PLAIN.match(self.text, self.at)
        if found is not None:
            self.add(found[0])
            self.at = found.end()
            return
        char = self.text[self.at]
        if char in " \t\r":
            self._end_word(top)
            found = _BLANKS.match(self.text, self.at)
            self.at = found.end() if found is not None else self.at + 1
            self._arguments(top)
        elif char == "#":
            self._hash(top)
        elif char in "'\"\\`$":
            self.special(char, quotes=True)
        elif top.test and char in "&|()<>;\n":  # operators of a condition, unless its end stands right before
            self._end_word(top)
            self.at += top.test
        elif char in "<>":
            self._redirection(top)
        elif char == "(":
            self._opening(top)
        elif char == ")":
            self._closing(top)
        else:
            self._separator(top, char)

    def _arguments(self, top: Construct) -> None:
        """Take the plain arguments that begin here in one step: most words of most lines."""
        plain = not (top.test or top.header or top.naming or top.cases)
        if top.words and top.role == ARGUMENT and plain and not _times(top.words):
            found = _ARGUMENTS.match(self.text, self.at)
            if found is not None:
                top.words += [Word(text, False, len(text)) for text in _ARGUMENT.findall(found[0])]
                self.at = found.end()

    def _hash(self, top: Construct) -> None:
        if top.word is not None:
            self.add("#")
            self.at += 1
            return
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _separator(self, top: Construct, char: str) -> None:
        text, at = self.text, self.at
        if char == "&" and text.startswith(("&>", "&>>"), at):  # bash: both streams to a file
            self._end_word(top)
            top.role = TARGET
            self.at += 3 if text.startswith("&>>", at) else 2
            return
        if top.in_pattern:
            self._end_word(top)
        else:
            self._end_command(top)
            if char == ";" and text.startswith((";;", ";&"), at) and top.cases:
                top.cases[-1] = PATTERN
        self.at += 2 if text.startswith((";;", "&&", "||", "|&"), at) else 1
        if char == "\n":
            self._step_over_documents()

    def _step_over_documents(self) -> None:
        """Step over the bodies of the here-documents that were announced on the line that ends here."""
        for name, tabbed in self.documents:
            while self.at < len(self.text):
                if not tabbed:  # straight to the next line that begins with the name
                    found = self.text.find(f"\n{name}", self.at - 1)
                    self.at = found + 1 if found >= 0 else len(self.text)
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end].removesuffix("\r")
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if tabbed else line) == name:
                    break
        self.documents.clear()

    def _redirection(self, top: Construct) -> None:
        text = self.text
        if text.startswith(("<(", ">("), self.at):
            self.enter(Construct(PARENS, substitutes=True), 2)
            return
        if top.word is not None and len(top.word) == 1 and top.plain < 0 and _DESCRIPTOR.fullmatch(top.word[0]):
            top.drop()
        self._end_word(top)
        found = _REDIRECTION.match(text, self.at)
        operator = found[0] if found is not None else text[self.at]
        self.at += len(operator)
        roles = {"<<": DOCUMENT, "<<-": TABBED, ">&": COPY, "<&": COPY}
        top.role = roles.get(operator, TARGET if operator[0] == ">" else SOURCE)

    def _opening(self, top: Construct) -> None:
        """Take an opening parenthesis: a subshell, a list of values, a pattern, or a function's."""
        last = top.word[-1][-1:] if top.word and top.plain < 0 else ""
        first = not top.words and not top.assigned
        if top.in_pattern:
            self._end_word(top)
            self.at += 1
        elif (
            top.header
            or (last == "=" and (first or top.words[0].text in _DECLARES))
            or (last in "?*+@!" and last and not (first and top.size == 1))
        ):
            self.add("")
            self.enter(Construct(SKIPPED), 1)
        elif (found := _NO_PARAMETERS.match(self.text, self.at)) and len(top.words) + (top.word is not None) < 2:
            top.begin()  # the name of a function; its body are commands
            self.at = found.end()
        else:
            self._end_command(top)
            self.enter(Construct(PARENS), 1)

    def _closing(self, top: Construct) -> None:
        if top.cases and top.cases[-1] == PATTERN:
            top.begin()
            top.cases[-1] = BODY
            self.at += 1
            return
        self._end_command(top)
        if top.kind == PARENS:
            self.leave(top)
        self.at += 1
