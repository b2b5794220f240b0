"""What a verification found, in lines for a person."""

from __future__ import annotations

from collections.abc import Iterator

from memorize.log.verify import VerifyReport

_SHOWN_MAX = 20


def report_lines(report: VerifyReport) -> list[str]:
    """Return one line a finding, the counts first, what was not checked last."""
    return list(_lines(report))


def _lines(report: VerifyReport) -> Iterator[str]:
    depth = "ids, bodies and chains" if report.deep else "frames and checksums"
    yield f"{report.events} events in {report.files} segments, {report.bytes / 1e6:.1f} MB: {depth} read"
    for what, hurts in (("damaged", report.damages), ("index ahead of", report.ahead), ("fork in", report.forks)):
        for hurt in hurts[:_SHOWN_MAX]:
            yield f"{what} {hurt.file} at {hurt.offset}, {hurt.length} bytes: {hurt.what}"
        if len(hurts) > _SHOWN_MAX:
            yield f"and {len(hurts) - _SHOWN_MAX} more"
    for gap in report.missing[:_SHOWN_MAX]:
        yield f"missing: events {gap.first} to {gap.last} of writer {gap.writer.hex()[:8]}"
    for unread in report.unread:
        yield f"could not be read: {unread.path}: {unread.why}"
    if report.torn:
        yield f"{report.torn} bytes of an append that a crash cut short; no event is lost by them"
    if report.bad:
        yield f"{report.bad} captures that could not be read lie in spool/bad"
    if report.pending:
        yield f"{report.pending} captures wait in the spool"
    for done in report.repaired:
        yield f"repaired: {done}"
    for left in report.unchecked:
        yield f"not checked: {left}"
