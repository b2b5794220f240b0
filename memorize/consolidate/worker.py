"""Run an extractor over open windows and hand each answer, whole, to the log.

One worker a project at a time (the caller holds an OS lock). Each window's memories and claim are one strict batch, so
that a crash leaves either nothing or everything, and the next run sees the window open or closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from memorize.consolidate import rules
from memorize.consolidate.windows import Found, Window, answer
from memorize.ids import random_id
from memorize.model import Draft

Extractor = Callable[[Window], Sequence[Found]]
Append = Callable[[Sequence[Draft]], object]


class Report(NamedTuple):
    """What one run did: windows closed, memories formed, windows left open because they were too small."""

    windows: int = 0
    memories: int = 0
    small: int = 0

    def plus(self, memories: int) -> Report:
        """Return the report after one more closed window."""
        return self._replace(windows=self.windows + 1, memories=self.memories + memories)


def run(
    windows: Iterable[Window],
    append: Append,
    observations_min: int = 1,
    extractor: Extractor = rules.extract,
    name: str = rules.NAME,
) -> Report:
    """Close every window of at least ``observations_min`` sources. ``append`` returns when a batch is durable."""
    report = Report()
    for window in windows:
        if len(window.sources) < observations_min:
            report = report._replace(small=report.small + 1)
            continue
        found = extractor(window)
        append(answer(window, found, name, random_id()))
        report = report.plus(len(found))
    return report
