"""The normal form of a command line, by which the same command is known again in another checkout or session. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from blake3 import blake3

from memorize.patterns import late

# What is quoted or escaped keeps its spaces. A text in quotes that are never closed is taken character by character.
_PARTS: Final = late(
    r"[^'\"\\ \t\r\f\v\n]+|'[^']*'|\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"|(?P<join>\\\r?\n)|\\.|(?P<space>[ \t\r\f\v\n]+)|.",
    re.DOTALL,
)
# Without any of these all white space is folded already, whatever is quoted.
_UNFOLDED: Final = late(r"[\t\r\f\v\n\\]|  ")
# ``cd sub && command``: what runs in a directory below is the same as when the agent had gone there before.
_CD: Final = late(r"cd (?P<to>[\w.@%+,/-]+) ?(?:&&|;|\n) ?(?P<rest>.+)", re.DOTALL)
_CDS_MAX: Final = 8


def normal(command: str, folder: str = "") -> tuple[str, str]:
    """Return the command with its white space folded, and the directory, relative to the checkout, it runs in."""
    line = (_folded(command) if _UNFOLDED.search(command) else command.lstrip(" ")).rstrip(" \n;")
    for _ in range(_CDS_MAX):
        went = _CD.fullmatch(line)
        if went is None or went["to"].startswith(("/", "-")):
            break
        inside = posixpath.normpath(posixpath.join(folder, went["to"]))
        if inside.startswith(".."):
            break
        line, folder = went["rest"], "" if inside == "." else inside
    return line, folder


def _folded(command: str) -> str:
    pieces: list[str] = []
    gap = ""
    for found in _PARTS.finditer(command):
        if found["join"] or found["space"]:
            gap = "\n" if gap == "\n" or "\n" in (found["space"] or "") else " "
            continue
        if gap and pieces:
            pieces.append(gap)
        pieces.append(found[0])
        gap = ""
    return "".join(pieces)


def number(command: str, folder: str = "") -> int:
    """Return 56 bits that stand for the normal form."""
    text = "\0".join(reversed(normal(command, folder)))
    return int.from_bytes(blake3(text.encode("utf-8", "surrogatepass")).digest(7), "big")
