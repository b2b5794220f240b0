"""Reading Codex's patch text: which files it touches, and how much."""

from __future__ import annotations

from typing import Final

from memorize.agents.turns import Change
from memorize.patterns import late

_FILE: Final = late(r"\*\*\* (Add|Update|Delete) File: (.+)$")
_MOVE: Final = late(r"\*\*\* Move to: (.+)$")
_BEGIN: Final = "*** Begin Patch"
_END: Final = "*** End Patch"
_OPS: Final = {"Add": "create", "Update": "edit", "Delete": "delete"}
# What Codex itself takes out of a shell command and applies, without ever reporting that the command ran:
# ``apply_patch <<'EOF'`` and ``cd somewhere && apply_patch <<'EOF'``.
_INTERCEPTED: Final = late(r"\s*(?:cd\s+(?P<dir>\S+|'[^']*'|\"[^\"]*\")\s*&&\s*)?apply_?patch\s*(?:<<|['\"])")


def changes(text: str) -> list[Change]:
    """Return the changes of a patch, in order; none when the text holds no patch. A cut patch gives what is there."""
    start = text.find(_BEGIN)
    if start < 0:
        return []
    found: list[Change] = []
    path, op, moved, lines = "", "", "", list[str]()
    for line in text[start:].splitlines()[1:]:
        head, move = _FILE.match(line), _MOVE.match(line)
        if head or line.startswith(_END):
            found.extend(_finish(path, op, moved, lines))
            if not head:
                break
            path, op, moved, lines = head.group(2).strip(), _OPS[head.group(1)], "", []
        elif move:
            moved = move.group(1).strip()
        else:
            lines.append(line)
    else:
        found.extend(_finish(path, op, moved, lines))
    return found


def intercepted(command: str) -> str | None:
    """Return the directory ("" for none) of a shell command that Codex takes for a patch, else None."""
    match = _INTERCEPTED.match(command)
    if match is None or _BEGIN not in command:
        return None
    return (match.group("dir") or "").strip("'\"")


def _finish(path: str, op: str, moved: str, lines: list[str]) -> list[Change]:
    if not path:
        return []
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    diff = "\n".join(line for line in lines if not line.startswith("*** "))
    if moved:
        return [Change(path, "delete", 0, 0, ""), Change(moved, "edit", added, removed, diff)]
    return [Change(path, op, added, removed, diff)]
