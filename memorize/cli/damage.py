"""What a verification found, in lines for a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from memorize.counted import counted
from memorize.log.chain_check import Gap
from memorize.log.hurt import Hurt
from memorize.log.verify import VerifyReport

_SHOWN_MAX: Final = 20


def report_lines(report: VerifyReport) -> list[str]:
    """Return one line a finding, the counts first, what was not checked last."""
    return list(_lines(report))


def loss_lines(report: VerifyReport, most: int = _SHOWN_MAX) -> list[str]:
    """Return one line a loss that nobody has taken note of."""
    found = [_loss(one) for one in report.fresh]
    found += [f"index ahead of {hurt.file} at {hurt.offset}: {hurt.what}" for hurt in report.ahead]
    return found[:most] + ([f"and {counted(len(found) - most, 'more place')}"] if len(found) > most else [])


def known_line(report: VerifyReport) -> str:
    """Return what was lost and noted earlier, "" when nothing was."""
    every: list[Hurt | Gap] = [*report.damages, *report.missing]
    known = [one for one in every if one.name in report.noted]
    if not known:
        return ""
    events = sum(one.cost if isinstance(one, Hurt) else one.last - one.first + 1 for one in known)
    since = datetime.fromtimestamp(max(report.noted[one.name] for one in known) / 1000, UTC).strftime("%Y-%m-%d")
    what = f"{counted(events, 'event')} lost" if events else counted(len(known), "damaged place")
    return f"{what}, noted on {since}"


def _loss(one: Hurt | Gap) -> str:
    if isinstance(one, Gap):
        return f"missing: {_numbers(one)}"
    lost = f"; lost: {_numbers(one.lost)}" if one.lost is not None else ""
    identity = f", id {one.id.hex()[:12]}" if one.id else ""
    return f"damaged {one.file} at {one.offset}, {counted(one.length, 'byte')}: {one.what}{lost}{identity}"


def _numbers(gap: Gap) -> str:
    if gap.first == gap.last:
        return f"event {gap.first} of writer {gap.writer.hex()[:8]}"
    return f"events {gap.first} to {gap.last} of writer {gap.writer.hex()[:8]}"


def _lines(report: VerifyReport) -> Iterator[str]:
    depth = "ids, bodies and chains" if report.deep else "frames and checksums"
    where = f"{counted(report.events, 'event')} in {counted(report.files, 'segment')}, {report.bytes / 1e6:.1f} MB"
    yield f"{where}: {depth} read"
    yield from loss_lines(report)
    if known := known_line(report):
        yield f"known: {known}"
    for hurt in report.forks[:_SHOWN_MAX]:
        yield f"fork in {hurt.file} at {hurt.offset}, {counted(hurt.length, 'byte')}: {hurt.what}"
    for unread in report.unread:
        yield f"could not be read: {unread.path}: {unread.why}"
    if report.torn:
        yield f"{counted(report.torn, 'byte')} of an append that a crash cut short; no event is lost by them"
    if report.bad:
        yield f"{counted(report.bad, 'capture')} that could not be read in spool/bad"
    if report.pending:
        yield f"{counted(report.pending, 'capture')} waiting in the spool"
    for done in report.repaired:
        yield f"repaired: {done}"
    for left in report.unchecked:
        yield f"not checked: {left}"
