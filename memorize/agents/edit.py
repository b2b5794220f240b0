"""Our hooks in an agent's JSON settings: put in, found again, taken out, with every other byte left alone.

Pure: text in, text out. The file must be strict JSON, as the agents that read it demand (a comment or a comma too many
makes Claude Code ignore the whole file without a word), so such a file is refused and named, never repaired.
"""

from __future__ import annotations

import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from memorize.agents.base import Edit, Entry, Piece
from memorize.agents.jsontext import Member, Node, scan
from memorize.errors import UnreadableSettings

MARK: Final = "memorize_hook.py"
_HOOKS: Final = "hooks"
_UNIT: Final = "  "
_REMOVALS_MAX: Final = 1_000

Owned = Callable[[str], bool]


class Inserted(NamedTuple):
    """What a receipt remembers of an edit: enough to take it back exactly, also when the file changed since.

    ``created``: there was no file. ``made``: the members that did not exist (``hooks``, or an event's name).
    """

    created: bool
    before: str
    after: str
    pieces: tuple[Piece, ...]
    made: tuple[str, ...]
    commands: tuple[str, ...]


class Undone(NamedTuple):
    """A file after an undo; ``text`` None: it is to be deleted. ``exact``: it is what it was before, byte for byte."""

    text: bytes | None
    exact: bool


def is_ours(command: str) -> bool:
    """Tell whether a hook's command is one of ours, of whatever home or version."""
    return MARK in command


def digest(text: bytes) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(text).hexdigest()


def install(text: bytes | None, entries: Sequence[Entry], path: str) -> Edit:
    """Return ``text`` with these hooks in it. Hooks of ours that are not among them are taken out.

    Raises ``UnreadableSettings`` naming ``path``.
    """
    mark, document = _decode(text or b"", path)
    if not document.strip(" \t\r\n"):
        whole = json.dumps({_HOOKS: _grouped(entries)}, indent=_UNIT, ensure_ascii=False)
        whole += "" if document else "\n"
        return _edit(text, mark, document, [(0, whole)])
    wanted = {(entry.event, entry.command): entry for entry in entries}
    stale = [
        handler for handler in _handlers(_root(document, path)) if is_ours(handler.command) and not handler.fits(wanted)
    ]
    if stale:
        document = _without(document, lambda handler: is_ours(handler.command) and not handler.fits(wanted), None, path)
    root = _root(document, path)
    present = {(handler.event, handler.command) for handler in _handlers(root)}
    missing = [entry for entry in entries if (entry.event, entry.command) not in present]
    return _edit(text, mark, document, _insertions(document, root, missing, path) if missing else [])


def uninstall(text: bytes | None, path: str, owned: Owned = is_ours, made: Sequence[str] | None = None) -> Edit:
    """Return ``text`` without our hooks. Members that are empty then go too: all, or those named in ``made``."""
    if not text:
        return Edit(text, text)
    mark, document = _decode(text, path)
    if not document.strip(" \t\r\n"):
        return Edit(text, text)
    return _edit(text, mark, _without(document, lambda handler: owned(handler.command), made, path), [])


def remember(edit: Edit, original: bytes | None) -> Inserted:
    """Return what a receipt must hold to undo ``edit``, which was made from ``original``."""
    after = _decode(edit.after or b"", "")[1]
    root, old = scan(after), _decode(original or b"", "")[1]
    before = scan(old).value if old.strip(" \t\r\n") else {}
    made = [event for event in root.value[_HOOKS] if event not in before.get(_HOOKS, {})]
    return Inserted(
        original is None,
        digest(original or b""),
        digest(edit.after or b""),
        edit.pieces,
        tuple(made if _HOOKS in before else [_HOOKS, *made]),
        tuple(handler.command for handler in _handlers(root) if is_ours(handler.command)),
    )


def adopt(text: bytes, path: str) -> Inserted:
    """Return what a receipt can say of hooks that are in a file already while no receipt tells how they came there."""
    root = _root(_decode(text, path)[1], path)
    ours = [handler for handler in _handlers(root) if is_ours(handler.command)]
    made = (_HOOKS, *dict.fromkeys(handler.event for handler in ours))
    return Inserted(False, "", digest(text), (), made, tuple(handler.command for handler in ours))


def undo(text: bytes, inserted: Inserted, path: str) -> Undone:
    """Take back what was inserted. Raises ``UnreadableSettings``.

    In a file that is as it was left, and in one where our text still stands as it was put in, the text itself is cut
    out, so that the rest is byte for byte what it was or became. Else only our hooks are taken out of the structure.
    """
    mark, document = _decode(text, path)
    if digest(text) == inserted.before and not inserted.created:  # setup stopped before it wrote
        return Undone(text, True)
    if digest(text) == inserted.after:
        for piece in sorted(inserted.pieces, reverse=True):
            document = document[: piece.offset] + document[piece.offset + len(piece.text) :]
        if digest(mark + document.encode()) == inserted.before:
            return Undone(None if inserted.created and not document else mark + document.encode(), True)
        document = _decode(text, path)[1]
    cut = _cut_pieces(document, inserted)
    if cut is None:
        owned = frozenset(inserted.commands)
        if not document.strip(" \t\r\n"):
            return Undone(text, False)
        cut = _without(document, lambda handler: handler.command in owned, inserted.made, path)
    if inserted.created and cut.strip(" \t\r\n") in ("", "{}"):
        return Undone(None, False)
    return Undone(mark + cut.encode(), False)


def _cut_pieces(document: str, inserted: Inserted) -> str | None:
    """Cut out every piece that stands exactly once, if that leaves a sound file without any hook of ours."""
    for piece in inserted.pieces:
        if document.count(piece.text) != 1:
            return None
        document = document.replace(piece.text, "")
    if not document.strip(" \t\r\n"):
        return document if inserted.created else None
    try:
        root = scan(document)
    except ValueError:
        return None
    return None if any(handler.command in inserted.commands for handler in _handlers(root)) else document


# --- reading ---------------------------------------------------------------------------------------------------------


class Handler(NamedTuple):
    """One hook in a settings file, with the members that lead to it."""

    event: str
    command: str
    settings: Any
    matcher: Any
    trail: tuple[tuple[Node, int], ...]  # (container, index) from the hooks member inwards

    def fits(self, wanted: dict[tuple[str, str], Entry]) -> bool:
        """Tell whether this is one of the wanted hooks as it should be."""
        entry = wanted.get((self.event, self.command))
        if entry is None:
            return False
        return bool(self.matcher == entry.matcher and self.settings == _handler(entry))


def commands(text: bytes, path: str) -> list[tuple[str, str]]:
    """Return (event, command) of every command hook in a settings file. Raises ``UnreadableSettings``."""
    document = _decode(text, path)[1]
    if not document.strip(" \t\r\n"):
        return []
    return [(handler.event, handler.command) for handler in _handlers(_root(document, path))]


def positions(text: bytes, path: str) -> Iterator[tuple[str, int, int, Entry]]:
    """Yield (event, group number, handler number, entry) of every hook of ours, as Codex counts them."""
    for handler in _handlers(_root(_decode(text, path)[1], path)):
        if is_ours(handler.command):
            timeout, matcher = handler.settings.get("timeout", 0), handler.matcher
            entry = Entry(handler.event, handler.command, timeout, matcher)
            yield handler.event, handler.trail[2][1], handler.trail[-1][1], entry


def _decode(text: bytes, path: str) -> tuple[bytes, str]:
    mark = BOM_UTF8 if text.startswith(BOM_UTF8) else b""
    try:
        return mark, text[len(mark) :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableSettings(path=path, detail=f"byte {error.start + len(mark)} is not UTF-8") from None


def _root(document: str, path: str) -> Node:
    try:
        root = scan(document)
    except ValueError as error:
        raise UnreadableSettings(path=path, detail=str(error)) from None
    if root.kind != "{":
        raise UnreadableSettings(path=path, detail="it holds no JSON object")
    return root


def _handlers(root: Node) -> Iterator[Handler]:
    """Yield every command hook. Whatever has not the form of a hook is somebody else's business."""
    for place, hooks in enumerate(root.members):
        if hooks.key != _HOOKS or hooks.node.kind != "{":
            continue
        for event_index, event in enumerate(hooks.node.members):
            for group_index, group in enumerate(event.node.members if event.node.kind == "[" else ()):
                inner = group.node.member(_HOOKS) if group.node.kind == "{" else None
                for index, handler in enumerate(inner.node.members if inner and inner.node.kind == "[" else ()):
                    value = handler.node.value
                    if inner and isinstance(value, dict) and isinstance(value.get("command"), str):
                        trail = (
                            (root, place),
                            (hooks.node, event_index),
                            (event.node, group_index),
                            (inner.node, index),
                        )
                        matcher = group.node.value.get("matcher")
                        yield Handler(event.key, value["command"], value, matcher, trail)


# --- putting in ------------------------------------------------------------------------------------------------------


def _handler(entry: Entry) -> dict[str, Any]:
    return {"type": "command", "command": entry.command, "timeout": entry.timeout}


def _group(entry: Entry) -> dict[str, Any]:
    return {**({} if entry.matcher is None else {"matcher": entry.matcher}), _HOOKS: [_handler(entry)]}


def _grouped(entries: Sequence[Entry]) -> dict[str, Any]:
    events: dict[str, Any] = {}
    for entry in entries:
        events.setdefault(entry.event, []).append(_group(entry))
    return events


def _insertions(document: str, root: Node, entries: Sequence[Entry], path: str) -> list[tuple[int, str]]:
    hooks = root.member(_HOOKS)
    layout = _Layout(document, root)
    if hooks is None:
        return [layout.append(root, [(_HOOKS, _grouped(entries))])]
    if hooks.node.kind != "{":
        raise UnreadableSettings(path=path, detail='"hooks" is not an object')
    found: list[tuple[int, str]] = []
    fresh: list[tuple[str, Any]] = []
    for event, groups in _grouped(entries).items():
        member = hooks.node.member(event)
        if member is None:
            fresh.append((event, groups))
        elif member.node.kind != "[":
            raise UnreadableSettings(path=path, detail=f'"{event}" is not a list')
        else:
            found.append(layout.append(member.node, [("", group) for group in groups]))
    return [*found, layout.append(hooks.node, fresh)] if fresh else found


class _Layout:
    """How the person, or the agent, wrote the file: line ends, indentation, or everything on one line."""

    def __init__(self, document: str, root: Node) -> None:
        self.document = document
        self.newline = "\r\n" if "\r\n" in document else "\n"
        indent = self._indent_of_members(root)
        self.one_line = bool(root.members) and indent is None
        self.unit = indent or _UNIT

    def append(self, container: Node, members: Sequence[tuple[str, Any]]) -> tuple[int, str]:
        """Return where to insert what, so that the container has these members at its end."""
        indent = self._indent_of_members(container)
        if indent is None and not container.members and not self.one_line:
            indent = self._indent_of_line(container.start) + self.unit
        written = [self._write(key, value, indent) for key, value in members]
        gap = " " if indent is None else self.newline + indent
        if container.members:
            return container.members[-1].node.end, "".join(f",{gap}{text}" for text in written)
        if indent is None:
            return container.start + 1, f",{gap}".join(written)
        close = self.newline + self._indent_of_line(container.start)
        return container.start + 1, gap + f",{gap}".join(written) + close

    def _write(self, key: str, value: Any, indent: str | None) -> str:
        name = f"{json.dumps(key)}: " if key else ""
        if indent is None:
            return name + json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self.unit).split("\n")
        return name + (self.newline + indent).join(lines)

    def _indent_of_members(self, container: Node) -> str | None:
        """Return the indentation of a container's members; None when they stand on its line, or there are none."""
        if not container.members:
            return None
        space = self.document[container.start + 1 : container.members[0].start]
        return space.rsplit("\n", 1)[1].strip("\r") if "\n" in space else None

    def _indent_of_line(self, at: int) -> str:
        line = self.document[self.document.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]


def _edit(before: bytes | None, mark: bytes, document: str, insertions: list[tuple[int, str]]) -> Edit:
    pieces: list[Piece] = []
    grown = 0
    for offset, text in sorted(insertions):
        at = offset + grown
        document = document[:at] + text + document[at:]
        pieces.append(Piece(at, text))
        grown += len(text)
    return Edit(before, mark + document.encode("utf-8"), tuple(pieces))


# --- taking out ------------------------------------------------------------------------------------------------------


def _without(document: str, unwanted: Callable[[Handler], bool], made: Sequence[str] | None, path: str) -> str:
    """Take every unwanted handler out of the text, and what it leaves empty, one after the other."""
    for _ in range(_REMOVALS_MAX):
        handler = next((found for found in _handlers(_root(document, path)) if unwanted(found)), None)
        if handler is None:
            break
        document = _remove(document, *_widest(handler, made))
    return document


def _widest(handler: Handler, made: Sequence[str] | None) -> tuple[Node, int]:
    """Return the outermost member that holds nothing but this handler and that may go with it."""
    root, hooks, event, inner = handler.trail
    if len(inner[0].members) > 1:
        return inner
    if len(event[0].members) > 1 or (made is not None and handler.event not in made):
        return event
    if len(hooks[0].members) > 1 or (made is not None and _HOOKS not in made):
        return hooks
    return root


def _remove(document: str, container: Node, index: int) -> str:
    """Cut out a member with the comma that separated it."""
    members: tuple[Member, ...] = container.members
    if index:
        start, end = members[index - 1].node.end, members[index].node.end
    elif len(members) > 1:
        start, end = members[0].start, members[1].start
    else:
        start, end = container.start + 1, container.end - 1
    return document[:start] + document[end:]
