"""Lay items out in blocks within a budget of tokens and bytes. Pure.

Each block has a share of the budget and each item a cap within it, so a long record is cut instead of pushing others
out. What a block leaves unused goes to the items that found no place, in the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from memorize.recall.plain import harmless
from memorize.recall.tokens import estimate, shorten

Placed = tuple[bytes, str, float]

# Fewer tokens than this show nothing of a sentence; the item is then left out instead.
_TEXT_TOKENS_MIN: Final = 12
# No cap is below this, so that a small share still shows whole sentences.
_ITEM_TOKENS_MIN: Final = 48
# At most this many items are reckoned with when a block's share is parted; short ones leave room for more.
_PARTS_MAX: Final = 3


class Item(NamedTuple):
    """One line: ``head`` and ``tail`` stand as they are (ours), ``text`` is made harmless and may be cut.

    ``placed`` names the memories that the line shows: (id, reason, score).
    """

    head: str
    text: str
    tail: str
    placed: tuple[Placed, ...]


class Block(NamedTuple):
    """A titled list; ``share`` is its part of the budget, relative to the other blocks' shares."""

    title: str
    share: int
    items: Sequence[Item]


class Laid(NamedTuple):
    """A block as it is shown: the title, the lines, and the memories they show."""

    title: str
    lines: tuple[str, ...]
    placed: tuple[Placed, ...]


class _Room:
    """What is left of the budget."""

    def __init__(self, tokens: int, octets: int) -> None:
        self.tokens = tokens
        self.octets = octets

    def take(self, line: str) -> None:
        """Spend what a line costs, its line end included."""
        self.tokens -= _cost(line)
        self.octets -= _octets(line)

    def holds(self, line: str) -> bool:
        """Tell whether the line fits."""
        return _cost(line) <= self.tokens and _octets(line) <= self.octets


def _cost(line: str) -> int:
    return estimate(line + "\n")


def _octets(line: str) -> int:
    return len(line.encode("utf-8", "replace")) + 1


def lay_out(blocks: Sequence[Block], tokens: int, octets: int) -> list[Laid]:
    """Return the blocks that have something to show, within both bounds, items in their given order."""
    room = _Room(tokens, octets)
    wanted = sum(block.share for block in blocks if block.items) or 1
    shown: list[dict[int, str]] = [{} for _ in blocks]
    shares = [max(0, tokens) * block.share // wanted for block in blocks]
    for number, block in enumerate(blocks):
        _fill(block, shown[number], room, shares[number], shares[number])
    for number, block in enumerate(blocks):
        _fill(block, shown[number], room, shares[number], room.tokens)
    return [
        Laid(
            block.title,
            tuple(lines[place] for place in sorted(lines)),
            tuple(mark for place in sorted(lines) for mark in block.items[place].placed),
        )
        for block, lines in zip(blocks, shown, strict=True)
        if lines
    ]


def _fill(block: Block, shown: dict[int, str], room: _Room, share: int, left: int) -> None:
    """Put those of the block's items that have no place yet into ``shown``, spending at most ``left`` tokens."""
    if len(shown) == len(block.items):
        return
    left = min(left, room.tokens)
    cap = max(_ITEM_TOKENS_MIN, share // min(len(block.items), _PARTS_MAX))
    for place, item in enumerate(block.items):
        if place in shown:
            continue
        title = "" if shown else block.title
        line = _line(item, min(cap, left - (_cost(title) if title else 0)), room.octets - _octets(title))
        if line is None or not room.holds(f"{title}\n{line}" if title else line):
            continue
        before = room.tokens
        if title:
            room.take(title)
        room.take(line)
        left -= before - room.tokens
        shown[place] = line


def _line(item: Item, tokens: int, octets: int) -> str | None:
    """Return the item's line within the bounds, its text cut if need be, or None when nothing useful fits."""
    text = harmless(item.text)
    whole = f"- {item.head}{text}{item.tail}"
    if _cost(whole) <= tokens and _octets(whole) <= octets:
        return whole
    frame = f"- {item.head}{item.tail}"
    room = tokens - _cost(frame)
    if not text or room < _TEXT_TOKENS_MIN:
        return None
    text = shorten(text, room, octets - _octets(frame))
    return f"- {item.head}{text}{item.tail}" if text else None


Frame = Callable[[int, int], tuple[str, str]]


def compose(blocks: Sequence[Block], frame: Frame, tokens: int, octets: int) -> tuple[str, tuple[Placed, ...], int]:
    """Return (text, memories shown, tokens) of the blocks inside ``frame(items, tokens)`` -> (head, foot).

    Both bounds hold for the whole text. Nothing to show, or no room for one item, gives an empty text.
    """
    head, foot = frame(999, 99_999)
    frame_tokens = estimate(head) + estimate(foot)
    frame_octets = len((head + foot).encode("utf-8", "replace"))
    laid = lay_out(blocks, tokens - frame_tokens, octets - frame_octets)
    if not laid:
        return "", (), 0
    placed = _united(laid)
    body = "".join(
        f"{line}\n" for block in laid for line in ((block.title, *block.lines) if block.title else block.lines)
    )
    count = len(placed)
    total = estimate(head + body + foot)
    # The number stands inside the text it counts; its width settles it after a step or two.
    for _ in range(4):
        head, foot = frame(count, total)
        again = estimate(head + body + foot)
        if again == total:
            break
        total = again
    return head + body + foot, placed, total


def _united(laid: Sequence[Laid]) -> tuple[Placed, ...]:
    """Return the memories shown, each once, in the order of their first line."""
    seen: dict[bytes, Placed] = {}
    for block in laid:
        for mark in block.placed:
            seen.setdefault(mark[0], mark)
    return tuple(seen.values())
