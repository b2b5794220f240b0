"""The bytes by which a hook hands a text to an agent, never more than every agent takes in whole."""

from __future__ import annotations

import json
from typing import Final

from memorize import limits
from memorize.agents.payload import plain

_PLAIN: Final = frozenset({"SessionStart", "UserPromptSubmit"})
_JSON: Final = frozenset({"PreToolUse"})
_CLOSING: Final = "</memorize-context>"


def claude_style(event: str, text: str) -> bytes:
    """Answer as Claude Code and Codex understand it; empty when there is nothing to say or no way to say it."""
    text = plain(text)
    if not text.strip():
        return b""
    # A text that looks like JSON would be read as an answer of its own making.
    if event in _PLAIN and not text.lstrip().startswith(("{", "[")):
        return fit(text, limits.ANSWER_BYTES_MAX).encode("utf-8")
    if event not in _PLAIN | _JSON:
        return b""
    whole = _structured(event, text)
    if len(whole) <= limits.ANSWER_BYTES_MAX:
        return whole
    # Escapes make a text longer than its bytes, by how much is known only afterwards.
    low, high = 0, limits.ANSWER_BYTES_MAX
    while low < high:
        middle = (low + high + 1) // 2
        if len(_structured(event, fit(text, middle))) <= limits.ANSWER_BYTES_MAX:
            low = middle
        else:
            high = middle - 1
    return _structured(event, fit(text, low))


def _structured(event: str, text: str) -> bytes:
    content = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def fit(text: str, room: int) -> str:
    """Cut a text to ``room`` bytes of UTF-8, between characters; a wrapped context stays closed."""
    raw = text.encode("utf-8")
    if len(raw) <= room:
        return text
    closing = f"\n{_CLOSING}" if text.rstrip().endswith(_CLOSING) and room > 2 * len(_CLOSING) else ""
    return raw[: max(0, room - len(closing))].decode("utf-8", "ignore") + closing
