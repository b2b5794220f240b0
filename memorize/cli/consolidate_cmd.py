"""``memorize consolidate``: turn what was observed into memories, now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memorize.cli.console import app, document, json_option, say, tell
from memorize.consolidate.login import Choice
from memorize.consolidate.windows import Window
from memorize.consolidate.worker import Report
from memorize.counted import counted

if TYPE_CHECKING:
    from memorize.bootstrap import App

WAIT_S = 600.0


@click.command()
@click.option("--wait", is_flag=True, help="Wait for another worker; return when no window is open.")
@click.option(
    "--project", "directory", type=click.Path(exists=True, file_okay=False), help="Only the project of this directory."
)
@click.option("--dry-run", is_flag=True, help="Show what would be asked, with calls and tokens, and change nothing.")
@click.option("--again", is_flag=True, help="Let a model read once more what rules have read.")
@click.option("--retry-parked", is_flag=True, help="Try windows again that failed too often.")
@json_option
def command(wait: bool, directory: str | None, dry_run: bool, again: bool, retry_parked: bool, as_json: bool) -> None:
    """Form memories from every open window: what was observed and no consolidation has read yet."""
    parts = app()
    parts.ingest()
    project = parts.here(directory).project if directory else None
    if dry_run:
        _show(parts, parts.windows_again(project) if again else parts.windows_of(project), as_json)
        return
    retried = parts.models.attempts.retry_parked() if retry_parked else 0
    choice = parts.models.extractors.choose_anew()
    extractor = choice.name
    done = Report()
    if again:
        done = _again(parts, project, choice, WAIT_S if wait else 0.0)
    while not done.notice:
        report = parts.consolidate(project=project, wait_s=WAIT_S if wait else 0.0)
        counts = {
            name: getattr(report, name) for name in ("windows", "memories", "calls", "failed", "dropped", "unjudged")
        }
        left = {name: getattr(report, name) for name in ("wait", "parked", "notice")}
        done = done.plus(**counts)._replace(**left)
        # Another worker may have been at it, and sessions go on meanwhile.
        if not wait or not report.windows or report.notice:
            break
    if done.unjudged and not as_json:
        tell(f"{counted(done.unjudged, 'pair')} of memories look alike and were not judged: memorize conflicts")
    parts.changed("personal", "")
    if as_json:
        document({**done._asdict(), "extractor": extractor, "retried": retried})
        return
    made = f"{counted(done.memories, 'memory')} from {counted(done.windows, 'window')}, by {extractor}"
    say(made if done.windows else _nothing(done))
    if done.notice:
        tell(done.notice)


def _again(parts: App, project: str | None, choice: Choice, wait_s: float) -> Report:
    """Read again what rules have read; without a model there is nothing to gain."""
    if choice.model is None:
        return Report(notice=f"no model is at work, so nothing is read again: {choice.why}")
    return parts.close_windows(parts.windows_again(project), wait_s)


def _nothing(done: Report) -> str:
    if done.failed:
        return f"no answer that can be used, {counted(done.failed, 'time')}; the windows stay open and are tried again"
    if done.parked:
        return f"{counted(done.parked, 'window')} failed too often: memorize consolidate --retry-parked"
    return "nothing was consolidated" if done.notice else "no window is open"


def _show(parts: App, found: list[Window], as_json: bool) -> None:
    from memorize.consolidate.worker import estimate

    choice = parts.models.extractors.choose_anew()
    asked = choice.model is not None
    terms = parts.office.terms(by_hand=True)
    items: list[dict[str, Any]] = []
    for one in found:
        guess = estimate(one, parts.office.desk, choice.name, terms) if asked else None
        items.append(
            {
                "agent": one.agent,
                "session": one.session,
                "project": one.project,
                "observations": len(one.events),
                "lines": len(one.lines),
                "calls": len(guess.parts) if guess else 0,
                "tokens": guess.tokens if guess else 0,
                "prompts": [f"{part.system}\n\n{part.text}" for part in guess.parts] if guess else [],
            }
        )
    if as_json:
        document({"items": items, "total": len(items)})
        return
    for item in items:
        seen = f"{counted(item['observations'], 'observation')}, {counted(item['lines'], 'line')} of transcript"
        cost = f"{counted(item['calls'], 'model call')}, about {item['tokens']:,} tokens" if asked else "no model calls"
        say(f"{item['agent']} {str(item['session'])[:8]}  {seen}; {cost}")
        for prompt in item["prompts"]:
            say(prompt)
    if not items:
        say("no window is open")
