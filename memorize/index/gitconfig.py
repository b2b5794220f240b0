"""git's configuration files, read without git: their entries, and the aliases that hold in a repository."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from memorize.patterns import late

FILE_BYTES_MAX: Final = 1024 * 1024
_INCLUDED_MAX: Final = 8
_SECTION: Final = late(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_SPECIAL: Final = late(r"[\\\"#;]")


class Entry(NamedTuple):
    """One line: section and key in lower case; ``value`` is None for a key alone, which means true."""

    section: str
    name: str
    key: str
    value: str | None


def read_text(path: str, limit: int = FILE_BYTES_MAX) -> str | None:
    """Return a small file as text; bytes that are no UTF-8 survive as surrogates, for paths."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None


def entries(text: str) -> Iterator[Entry]:
    """Yield the entries of a file; lines that make no sense are passed over."""
    section = name = ""
    waiting = ""
    for raw in text.split("\n"):
        line = waiting + raw.strip()
        waiting = ""
        if line.startswith(("#", ";")):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:  # goes on in the next line
            waiting = line[:-1]
            continue
        found = _SECTION.match(line)
        if found is not None:
            section, name = found[1].lower(), re.sub(r"\\(.)", r"\1", found[2] or "")
            line = line[found.end() :].strip()
        key, equals, value = line.partition("=")
        if key.strip() and not key.startswith(("#", ";")):
            yield Entry(section, name, key.strip().lower(), _value(value) if equals else None)


def _value(raw: str) -> str:
    """Return a value as git reads it: quotes go, comments end it."""
    if _SPECIAL.search(raw) is None:
        return raw.strip()
    found: list[str] = []
    quoted = False
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "\\" and at + 1 < len(raw):
            at += 1
            found.append({"n": "\n", "t": "\t", "b": "\b"}.get(raw[at], raw[at]))
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            found.append(char)
        at += 1
    return "".join(found).strip()


def personal_files(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the person's own configuration files, the weaker one first; they need not exist."""
    if "GIT_CONFIG_GLOBAL" in environ:
        return (environ["GIT_CONFIG_GLOBAL"],)
    folder = environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
    return tuple(os.path.expanduser(path) for path in (os.path.join(folder, "git", "config"), "~/.gitconfig"))


def aliases(files: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return name (lower case) -> expansion of these files, later ones first heard, and every file that was looked at.

    Files that they include without a condition are read where they are named.
    """
    found: dict[str, str] = {}
    looked: dict[str, None] = {}
    for path in files:
        _read_aliases(path, found, looked)
    return found, tuple(looked)


def _read_aliases(path: str, found: dict[str, str], looked: dict[str, None]) -> None:
    if path in looked or len(looked) > _INCLUDED_MAX:
        return
    looked[path] = None
    for entry in entries(read_text(path) or ""):
        if entry.section == "include" and entry.key == "path" and entry.value:
            inner = os.path.join(os.path.dirname(path), os.path.expanduser(entry.value))
            _read_aliases(os.path.normpath(inner), found, looked)
        elif entry.section == "alias" and entry.value:
            name = entry.name.lower() if entry.name and entry.key == "command" else entry.key
            found[name] = entry.value
