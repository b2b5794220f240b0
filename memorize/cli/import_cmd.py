"""``memorize import``: read the transcripts of sessions that nobody captured."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from memorize.cli.console import app, document, json_option, progress, say, tell

if TYPE_CHECKING:
    from memorize.agents.base import Agent
    from memorize.bootstrap import App
    from memorize.consolidate.windows import Window
    from memorize.reading import Old

_WAIT_S = 600.0
# Rounds over one transcript: each reads on where the last one ended.
_ROUNDS_MAX = 1_000


class _Done(NamedTuple):
    """What became of one transcript: why it was left alone, or what it gave.

    ``failed`` counts windows that stay open, ``calls`` and ``tokens`` what models were asked (or would be);
    ``notice`` says why nothing more can be read now.
    """

    left: str = ""
    windows: int = 0
    lines: int = 0
    memories: int = 0
    failed: int = 0
    calls: int = 0
    tokens: int = 0
    notice: str = ""

    def plus(self, other: _Done) -> _Done:
        """Return the sums of both."""
        numbers = ("windows", "lines", "memories", "failed", "calls", "tokens")
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return _Done(notice=other.notice or self.notice, **sums)


@click.command()
@click.argument("agent_name", metavar="AGENT", type=click.Choice(["claude", "codex"]))
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only what was written on this day or later.")
@click.option("--limit", type=click.IntRange(1, 100_000), help="Stop after so many transcripts with something new.")
@click.option("--dry-run", is_flag=True, help="Show what would be read, and change nothing.")
@json_option
def command(agent_name: str, since: datetime | None, limit: int | None, dry_run: bool, as_json: bool) -> None:
    """Form memories from an agent's old transcripts, the newest first. What was read before is not read again."""
    from memorize import reading
    from memorize.agents import agent

    parts = app()
    parts.ingest()
    reader = agent(agent_name)
    root = reader.detect(os.environ, Path.home()).root
    found = reading.backlog(reader, root, int(since.timestamp() * 1000) if since else 0)
    running = _running(parts)
    counts: Counter[str] = Counter()
    sums = _Done()
    with progress("reading transcripts", quiet=as_json) as advance:
        for number, old in enumerate(found):
            advance(number, len(found))
            if (limit is not None and counts["read"] >= limit) or sums.notice:
                break
            done = _read(parts, reader, old, running, dry_run)
            counts[done.left or "read"] += 1
            sums = sums.plus(done)
    if not dry_run and sums.windows:
        parts.refresh_briefs()
    _report(len(found), counts, sums, dry_run, as_json)


def _read(parts: App, reader: Agent, old: Old, running: set[str], dry_run: bool) -> _Done:
    from memorize import reading

    head = reading.head_of(reader, old.path)
    if head is None or not head.session or not head.cwd:
        return _Done("unreadable")
    place = parts.place(head.cwd)
    if place.capture_off:
        return _Done("excluded")
    if head.session in running:
        return _Done("running")
    done = _Done()
    for _ in range(_ROUNDS_MAX):
        connection = parts.reader(drain=False).connection
        open_ones = reading.of_old(connection, reader, old.path, head, place.project, parts.may_remember)
        if not open_ones:
            break
        if dry_run:
            return _estimate(parts, open_ones)
        if told := parts.intake.projects(place):
            parts.append(told)
        report = parts.close_windows(open_ones, _WAIT_S)
        lines = sum(len(window.lines) for window in open_ones) if report.windows else 0
        left = len(open_ones) - report.windows
        done = done.plus(_Done("", report.windows, lines, report.memories, left, report.calls, 0, report.notice))
        if left:
            # What failed is asked again another time, not at once.
            break
    return done if done.windows or done.failed else _Done("known")


def _estimate(parts: App, found: list[Window]) -> _Done:
    """Return what reading these windows would take."""
    from memorize.consolidate.worker import estimate

    lines = sum(len(window.lines) for window in found)
    choice, terms = parts.models.extractors.choose_anew(), parts.office.terms(by_hand=True)
    if choice.model is None:
        return _Done("", len(found), lines)
    guesses = [estimate(window, parts.office.desk, choice.name, terms) for window in found]
    calls = sum(len(guess.parts) for guess in guesses)
    return _Done("", len(found), lines, calls=calls, tokens=sum(guess.tokens for guess in guesses))


def _running(parts: App) -> set[str]:
    """Return the sessions that hooks are capturing: their own boundaries will read them."""
    from memorize.bootstrap.app import DEAD_MS

    now = parts.clock.wall_ms()
    return {one.session for one in parts.reader().sessions() if one.closed is None and now - one.last < DEAD_MS}


def _report(total: int, counts: Counter[str], sums: _Done, dry_run: bool, as_json: bool) -> None:
    if as_json:
        facts = {name: counts[name] for name in ("read", "known", "running", "excluded", "unreadable")}
        gave = {name: value for name, value in sums._asdict().items() if name != "left"}
        document({"total": total, **facts, **gave, "dry_run": dry_run})
        return
    for name, reason in (
        ("known", "hold nothing new"),
        ("running", "belong to sessions that go on"),
        ("excluded", "lie where nothing is to be remembered"),
        ("unreadable", "cannot be read, or tell no directory"),
    ):
        if counts[name]:
            tell(f"{counts[name]} transcripts {reason}")
    if not counts["read"]:
        say("nothing to import")
    elif dry_run:
        asked = f"; {sums.calls} calls, about {sums.tokens:,} tokens" if sums.calls else ""
        say(f"{counts['read']} transcripts would be read: {sums.lines} messages in {sums.windows} windows{asked}")
    else:
        say(f"{sums.memories} memories from {counts['read']} transcripts ({sums.lines} messages)")
    if sums.failed:
        tell(f"{sums.failed} windows stay open; the same command reads them later")
    if sums.notice:
        tell(sums.notice)
