"""Sets of event numbers by writer, as few intervals as possible: what is held, what is carried, what is missing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from memorize.sync.port import Span


class Intervals:
    """Numbers of many writers; adding, asking and subtracting cost a binary search each."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        """Begin with the union of these spans."""
        self._of: dict[bytes, tuple[list[int], list[int]]] = {}
        for span in spans:
            self.add(span.writer, span.low, span.high)

    def add(self, writer: bytes, low: int, high: int) -> None:
        """Add ``low`` to ``high``, both included."""
        lows, highs = self._of.setdefault(writer, ([], []))
        if not lows or low > highs[-1] + 1:  # in order, as nearly always
            lows.append(low)
            highs.append(high)
            return
        first = bisect_left(highs, low - 1)
        after = bisect_right(lows, high + 1)
        if first < after:
            low, high = min(low, lows[first]), max(high, highs[after - 1])
        lows[first:after] = [low]
        highs[first:after] = [high]

    def covers(self, writer: bytes, low: int, high: int) -> bool:
        """Tell whether all of ``low`` to ``high`` are in the set."""
        lows, highs = self._of.get(writer, ((), ()))
        at = bisect_right(lows, low) - 1
        return at >= 0 and highs[at] >= high

    def meets(self, writer: bytes, low: int, high: int) -> bool:
        """Tell whether any of ``low`` to ``high`` is in the set."""
        lows, highs = self._of.get(writer, ((), ()))
        at = bisect_left(highs, low)
        return at < len(lows) and lows[at] <= high

    def without(self, writer: bytes, low: int, high: int) -> Iterator[Span]:
        """Return what of ``low`` to ``high`` is not in the set."""
        lows, highs = self._of.get(writer, ((), ()))
        at = bisect_left(highs, low)
        while low <= high:
            if at == len(lows) or lows[at] > high:
                yield Span(writer, low, high)
                return
            if lows[at] > low:
                yield Span(writer, low, lows[at] - 1)
            low = highs[at] + 1
            at += 1

    def spans(self) -> list[Span]:
        """Return the set, by writer and number."""
        return [
            Span(writer, low, high)
            for writer, (lows, highs) in sorted(self._of.items())
            for low, high in zip(lows, highs, strict=True)
        ]
