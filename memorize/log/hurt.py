"""Damaged places of the log, and what can be told of the events that they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from memorize.counted import counted
from memorize.ids import event_id
from memorize.log.chain_check import Gap
from memorize.log.codec import Bad
from memorize.log.frames import Frame
from memorize.log.segments import SegmentScan, frame_event, make_footer
from memorize.model import Event


class Hurt(NamedTuple):
    """A damaged place: ``length`` bytes at ``offset`` of a file (``segments/...``, ``received/...``).

    ``lost`` are the numbers of the events that it cost, as far as the events around it tell; ``id`` the id of the one
    that was lost, which the event behind it names.
    """

    file: str
    offset: int
    length: int
    what: str
    lost: Gap | None = None
    id: bytes = b""

    @property
    def name(self) -> str:
        """The name by which a loss is noted."""
        return f"{self.file}@{self.offset}"

    @property
    def cost(self) -> int:
        """How many events are known to be lost here."""
        return 0 if self.lost is None else self.lost.last - self.lost.first + 1


def named(hurt: Hurt, found: SegmentScan, events: Sequence[Frame]) -> Hurt:
    """Return the damage with the numbers of the events that it cost: those between the whole events around it."""
    before = _readable(frame for frame in reversed(events) if frame.offset < hurt.offset)
    after = _readable(frame for frame in events if frame.offset >= hurt.offset + hurt.length)
    known = before or after
    if known is None and found.header is None:
        return hurt
    writer = known.header.writer if known is not None else found.header.writer if found.header is not None else b""
    if before is not None:
        first = before.header.seq + 1
    elif found.header is not None:
        first = found.header.first_seq
    else:
        return hurt
    if after is not None:
        last = after.header.seq - 1
    elif found.footer is not None:
        last = found.footer.last_seq
    else:
        last = first  # nothing behind it tells how many there were
    there = _readable(frame for frame in events if frame.offset == hurt.offset)
    if hurt.length <= 0 or first > last or there is not None:
        return hurt
    identity = after.header.prev if after is not None and first == last else b""
    return hurt._replace(lost=Gap(writer, first, last), id=identity)


def _readable(frames: Iterable[Frame]) -> Event | None:
    for frame in frames:
        with suppress(Bad):
            return frame_event(frame)
    return None


def between(name: str, frames: Sequence[Frame], damages: Sequence[Hurt]) -> list[Hurt]:
    """Count the numbers between the first and the last event of a file; damage accounts for some."""
    first, last = _readable(frames), _readable(reversed(frames))
    if first is None or last is None:
        return []
    lost = last.header.seq - first.header.seq + 1 - len(frames)
    lost -= sum(hurt.cost for hurt in damages if hurt.lost and hurt.lost.last < last.header.seq)
    if lost <= 0:
        return []
    return [Hurt(name, frames[0].offset, 0, f"{counted(lost, 'event')} missing between its first and its last")]


def against_footer(name: str, found: SegmentScan, events: Sequence[Frame], told: int) -> list[Hurt]:
    """Compare a sealed file with what its footer promised; ``told`` lost events are accounted for."""
    if found.footer_at < 0:
        return []
    footer = found.footer
    if footer is None:
        return [Hurt(name, found.footer_at, 0, "its footer cannot be read")]
    before = [frame for frame in events if frame.offset < found.footer_at]
    sums = make_footer((event_id(frame.header) for frame in before), footer.first_seq, footer.last_seq)
    if sums.events < footer.events:
        lost = footer.events - sums.events
        if lost <= told:
            return []
        return [Hurt(name, found.footer_at, 0, f"{lost} of {footer.events} events that its footer counts are missing")]
    return [] if sums == footer else [Hurt(name, found.footer_at, 0, "its events are not those that its footer counts")]
