"""The lexers of PowerShell and of cmd: a line or script in simple commands, for agents on Windows.

As the POSIX one they are one pass over a stack, never raise, and read no text as commands: not what stands in quotes,
here-strings and comments. Commands in script blocks, in parentheses and in ``$(...)`` are commands.
"""

from __future__ import annotations

from typing import Final

from memorize.patterns import late
from memorize.recall.words import Simple, Split, Word

_PS_PLAIN: Final = late(r"[^'\"`$@ \t\r\n;&|(){}<>#]+")
_PS_QUOTED: Final = late(r"[^\"`$]+")
_PS_NAME: Final = late(r"\$(?:\{[^}]{0,200}\}|[\w:]+|[?^$])")
_PS_TEXT: Final = late(r"'[^']*+(?:''[^']*+)*'")
_PS_HERE: Final = late(r"@(['\"])[ \t]*\r?\n")
_PS_REDIRECTION: Final = late(r">>?(?:&[1-6])?")
_PS_ASSIGNMENT: Final = late(r"\$[\w:{}]+(?:\[[^\]]*\])?[+-]?=")
_PS_KEYWORDS: Final = frozenset({"return", "else", "try", "finally", "do", "begin", "process", "end", "throw", "."})
_NOTHING: Final = frozenset({"$null", "nul"})
_CMD_PLAIN: Final = late(r"[^\"^%! \t\r\n&|()<>]+")
_CMD_NAME: Final = late(r"%(?:[^%\s]{1,80}%|~?\w{1,8})|![^!\r\n\s]{1,80}!")
_CMD_BLOCKS: Final = frozenset({"if", "for", "else", "do"})


class _Part:
    """Commands up to a closing bracket (``close``, "" for the whole line), or a text in double quotes."""

    def __init__(self, close: str) -> None:
        self.close = close
        self.words: list[Word] = []
        self.word: list[str] | None = None
        self.dynamic = self.quoted = self.target = self.writes = False
        self.at = self.start = 0


class _Reading:
    """What both lexers share: words and commands in the making."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.done: list[Simple] = []
        self.parts = [_Part("")]
        self.complete = True

    def add(self, text: str, *, quoted: bool = False, dynamic: bool = False) -> None:
        """Add to the word in the making, or begin one."""
        part = next(one for one in reversed(self.parts) if one.close != '"')
        if part.word is None:
            part.word = []
            part.start = self.at
        part.word.append(text)
        part.dynamic, part.quoted = part.dynamic or dynamic, part.quoted or quoted

    def end_word(self, part: _Part) -> None:
        """End the word in the making, if there is one."""
        if part.word is None:
            return
        text = "".join(part.word)
        if part.target:
            part.writes = part.writes or text.lower() not in _NOTHING
        else:
            if not part.words:
                part.at = part.start
            part.words.append(Word(text, part.dynamic, 0 if part.quoted else len(text)))
        part.word, part.dynamic, part.quoted, part.target = None, False, False, False

    def end_command(self, part: _Part) -> None:
        """End the command in the making, if there is one."""
        self.end_word(part)
        words = self.trimmed(part.words)
        if words or part.writes:
            self.done.append(Simple(tuple(words), part.writes, part.at))
        part.words, part.writes, part.target = [], False, False

    def trimmed(self, words: list[Word]) -> list[Word]:
        """Return the words from the program on."""
        raise NotImplementedError

    def result(self) -> Split:
        """Return what was read."""
        self.complete = self.complete and len(self.parts) == 1
        while self.parts:
            part = self.parts.pop()
            if part.close != '"':
                self.end_command(part)
        return Split(tuple(self.done), self.complete)


def split_powershell(line: str) -> Split:
    """Return the simple commands of a PowerShell line or script."""
    return _PowerShell(line).run()


class _PowerShell(_Reading):
    def run(self) -> Split:
        """Read to the end."""
        while self.at < len(self.text):
            part = self.parts[-1]
            if part.close == '"':
                self._quoted()
            else:
                self._step(part)
        return self.result()

    def _step(self, part: _Part) -> None:
        text, at = self.text, self.at
        char = text[at]
        if (found := _PS_PLAIN.match(text, at)) is not None:
            self.add(found[0])
            self.at = found.end()
        elif char in " \t\r":
            self.end_word(part)
            self.at += 1
        elif char in "'\"`@$":
            self._special(part, char)
        elif char == "#" or text.startswith("<#", at):
            self._comment(part, char)
        elif char in "(){}":
            self._bracket(part, char)
        elif char in "<>":
            self._redirection(part)
        elif char == "&" and not part.words and part.word is None:  # the call operator
            self.at += 1
        else:
            self.end_command(part)
            self.at += 2 if text.startswith(("&&", "||"), at) else 1

    def _special(self, part: _Part, char: str) -> None:
        text, at = self.text, self.at
        if char == "'":
            found = _PS_TEXT.match(text, at)
            self.add(found[0][1:-1].replace("''", "'") if found else "", quoted=True)
            self.complete = self.complete and found is not None
            self.at = found.end() if found else len(text)
        elif char == '"':
            self.add("", quoted=True)
            self.parts.append(_Part('"'))
            self.at += 1
        elif char == "`":
            self._escape()
        elif char == "@" and (found := _PS_HERE.match(text, at)) is not None:
            end = text.find(f"\n{found[1]}@", found.end() - 1)
            self.add("$", quoted=True, dynamic=found[1] == '"')
            self.complete = self.complete and end >= 0
            self.at = end + 3 if end >= 0 else len(text)
        elif char == "$" and (found := _PS_NAME.match(text, at)) is not None:
            self.add(found[0], dynamic=True)
            self.at = found.end()
        else:
            self.add(char)
            self.at += 1

    def _escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following in ("\r", "\n"):  # the line goes on; white space stands between words there
            self.end_word(self.parts[-1])
            self.at += 3 if self.text.startswith("\r\n", self.at + 1) else 2
            return
        self.add(following, quoted=True)
        self.at += 2

    def _quoted(self) -> None:
        text, at = self.text, self.at
        char = text[at]
        if (found := _PS_QUOTED.match(text, at)) is not None:
            self.add(found[0], quoted=True)
            self.at = found.end()
        elif text.startswith('""', at):
            self.add('"', quoted=True)
            self.at += 2
        elif char == '"':
            self.parts.pop()
            self.at += 1
        elif char == "`":
            self.add(text[at + 1 : at + 2], quoted=True)
            self.at += 2
        elif text.startswith("$(", at):
            self._open(")", 2)
        else:
            found = _PS_NAME.match(text, at)
            self.add(found[0] if found else char, quoted=True, dynamic=found is not None)
            self.at = found.end() if found else at + 1

    def _comment(self, part: _Part, char: str) -> None:
        if char == "<":
            end = self.text.find("#>", self.at)
            self.at = end + 2 if end >= 0 else len(self.text)
        elif part.word is not None:
            self.add("#")
            self.at += 1
        else:
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)

    def _open(self, close: str, width: int) -> None:
        self.add("$", dynamic=True)
        self.parts.append(_Part(close))
        self.at += width

    def _bracket(self, part: _Part, char: str) -> None:
        if char in "({":
            self._open(")" if char == "(" else "}", 1)
            return
        self.end_command(part)
        self.at += 1
        if part.close == char:
            self.parts.pop()

    def _redirection(self, part: _Part) -> None:
        if (
            part.word is not None
            and "".join(part.word[-1:]) in ("1", "2", "3", "4", "5", "6", "*")
            and len(part.word) == 1
        ):
            part.word = None
        self.end_word(part)
        found = _PS_REDIRECTION.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at + 1
        part.target = found is not None and "&" not in found[0]

    def trimmed(self, words: list[Word]) -> list[Word]:
        """Return the words behind assignments and keywords."""
        at = 0
        while at < len(words):
            first = words[at]
            assigned = _PS_ASSIGNMENT.match(first.text) if first.plain else None
            if first.dynamic and at + 1 < len(words) and words[at + 1].text in ("=", "+=", "-="):
                at += 2
            elif assigned is not None:
                rest = first.text[assigned.end() :]
                if rest:
                    return [Word(rest, "$" in rest, len(rest)), *words[at + 1 :]]
                at += 1
            elif first.bare and first.text.lower() in _PS_KEYWORDS:
                at += 1
            else:
                break
        return words[at:]


def split_cmd(line: str) -> Split:
    """Return the simple commands of a line or batch file of cmd."""
    return _Cmd(line).run()


class _Cmd(_Reading):
    def run(self) -> Split:
        """Read to the end."""
        part = self.parts[0]
        while self.at < len(self.text):
            self._step(part)
        return self.result()

    def _step(self, part: _Part) -> None:
        text, at = self.text, self.at
        char = text[at]
        if (found := _CMD_PLAIN.match(text, at)) is not None:
            self._plain(part, found[0])
        elif char in " \t\r":
            self.end_word(part)
            self.at += 1
        elif char == '"':
            self._quoted()
        elif char == "^":
            following = text[at + 1 : at + 3]
            width = 3 if following == "\r\n" else 2
            if following[:1] not in ("\r", "\n"):
                self.add(following[:1], quoted=True)
            self.at += width
        elif char in "%!":
            found = _CMD_NAME.match(text, at)
            self.add("$" if found else char, dynamic=found is not None)
            self.at = found.end() if found else at + 1
        elif char in "<>":
            self._redirection(part)
        else:
            self._separator(part, char)

    def _quoted(self) -> None:
        """Take a text in double quotes; the end of the line closes it, too."""
        close = self.text.find('"', self.at + 1)
        line = self.text.find("\n", self.at, close if close >= 0 else len(self.text))
        end = next((place for place in (line, close) if place >= 0), len(self.text))
        self.complete = self.complete and end == close
        self.add(self.text[self.at + 1 : end], quoted=True)
        self.at = end + (end == close)

    def _plain(self, part: _Part, text: str) -> None:
        first = not part.words and part.word is None
        if first and (text.lower() == "rem" or text.startswith("::")):
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)
            return
        self.add(text.lstrip("@") if first else text)
        self.at += len(text)

    def _separator(self, part: _Part, char: str) -> None:
        if char == "(" and part.words and part.words[0].text.lower() not in _CMD_BLOCKS:
            self.add(char)
            self.at += 1
            return
        self.end_command(part)
        self.at += 2 if self.text.startswith(("&&", "||"), self.at) else 1

    def _redirection(self, part: _Part) -> None:
        if part.word is not None and len(part.word) == 1 and part.word[0] in ("0", "1", "2"):
            part.word = None
        self.end_word(part)
        width = 2 if self.text.startswith(">>", self.at) else 1
        copies = self.text.startswith("&", self.at + width)
        part.target = self.text[self.at] == ">" and not copies
        self.at += width + (2 if copies else 0)

    def trimmed(self, words: list[Word]) -> list[Word]:
        """Return the words behind ``if`` and its condition, ``else``, ``do`` and ``call``."""
        at = 0
        while at < len(words) and words[at].plain:
            first = words[at].text.lower()
            if first in ("else", "do", "call"):
                at += 1
            elif first == "if":
                at = _after_condition(words, at + 1)
            elif first == "start":
                at += 1
                while at < len(words) and (words[at].text.startswith("/") or not words[at].plain):
                    at += 1
            else:
                break
        return words[at:]


def _after_condition(words: list[Word], at: int) -> int:
    """Return the place behind the condition of cmd's ``if``, which begins at ``at``."""
    while at < len(words) and words[at].text.lower() in ("/i", "not"):
        at += 1
    texts = [word.text for word in words[at : at + 2]]
    if not texts or texts[0].lower() in ("exist", "errorlevel", "defined", "cmdextversion"):
        return at + 2
    if "==" in texts[0]:
        return at + (2 if texts[0].endswith("==") else 1)
    return at + (2 if texts[1:] and texts[1].startswith("==") and texts[1] != "==" else 3)
