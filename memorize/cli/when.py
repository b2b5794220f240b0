"""How long ago something was, in a person's words."""

from __future__ import annotations

_STEPS = ((60, "s"), (60, "min"), (24, "h"), (365, "d"))


def ago(then_ms: int, now_ms: int) -> str:
    """Return ``4 min ago``; what lies in the future is ``now``."""
    amount = max(0, now_ms - then_ms) // 1000
    if amount < 2:
        return "now"
    for size, unit in _STEPS:
        if amount < size:
            return f"{amount} {unit} ago"
        amount //= size
    return f"{amount} y ago"
