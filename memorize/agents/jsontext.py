"""Where the members of a strict JSON text lie, so that an edit can leave every other byte alone."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple, NoReturn

from memorize.patterns import late

_SPACE: Final = late(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


class Member(NamedTuple):
    """A member of an object, or an element of an array (then without a key). ``start`` is that of its key."""

    key: str
    start: int
    node: Node


class Node(NamedTuple):
    """A value and its place: ``text[start:end]``. ``kind`` is ``{``, ``[`` or empty for a scalar."""

    kind: str
    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        """Return the last member with this key, which is the one that counts for every reader."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def scan(text: str) -> Node:
    """Return the tree of a strict JSON text. Raises ``ValueError`` that tells what is wrong, and where."""
    try:
        json.loads(text, parse_constant=_refuse)
        node, _ = _value(text, _skip(text, 0))
    except json.JSONDecodeError as error:
        raise ValueError(_explain(text, error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return node


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _explain(text: str, error: json.JSONDecodeError) -> str:
    """Name the two mistakes that people make in settings files by their names."""
    at = error.pos
    before = text[:at].rstrip(" \t\r\n")
    what = error.msg.lower()
    if text[at : at + 2] in ("//", "/*") or text[at : at + 1] == "#":
        what = "a comment, which strict JSON does not allow"
    elif before.endswith(",") or text[at : at + 1] == ",":
        what = "a comma too many"
    return f"line {error.lineno}, column {error.colno}: {what}"


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[Node, int]:
    """Read the value at ``at`` of a text that is known to be JSON."""
    char = text[at]
    if char in "{[":
        node = _container(text, at)
        return node, node.end
    value, end = _DECODER.raw_decode(text, at)
    return Node("", at, end, value), end


def _container(text: str, start: int) -> Node:
    is_object = text[start] == "{"
    members: list[Member] = []
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        begin, key = at, ""
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        node, at = _value(text, at)
        members.append(Member(key, begin, node))
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    value: Any = {m.key: m.node.value for m in members} if is_object else [m.node.value for m in members]
    return Node(text[start], start, at + 1, value, tuple(members))
