"""Counts in a person's words: ``1 rule``, ``2 rules``, ``3 memories``."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, which ends in ``s`` (``ies`` after a consonant and y) unless there is one."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        noun = noun[:-1] + "ie"
    return f"{number:,} {noun}s"
