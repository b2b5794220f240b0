"""``memorize consolidate``: turn what was observed into memories, now."""

from __future__ import annotations

import click

from memorize.cli.console import app, document, json_option, say
from memorize.consolidate.windows import Window
from memorize.counted import counted

WAIT_S = 600.0


@click.command()
@click.option("--wait", is_flag=True, help="Wait for another worker; return when no window is open.")
@click.option(
    "--project", "directory", type=click.Path(exists=True, file_okay=False), help="Only the project of this directory."
)
@click.option("--dry-run", is_flag=True, help="Show the open windows and change nothing.")
@json_option
def command(wait: bool, directory: str | None, dry_run: bool, as_json: bool) -> None:
    """Form memories from every open window: what was observed and no consolidation has read yet."""
    parts = app()
    parts.ingest()
    project = parts.here(directory).project if directory else None
    if dry_run:
        _show(parts.windows_of(project), as_json)
        return
    windows = memories = 0
    while True:
        report = parts.consolidate(project=project, wait_s=WAIT_S if wait else 0.0)
        windows, memories = windows + report.windows, memories + report.memories
        # Another worker may have been at it, and sessions go on meanwhile.
        if not wait or not report.windows:
            break
    parts.changed("personal", "")
    if as_json:
        document({"windows": windows, "memories": memories, "extractor": "rules"})
        return
    made = f"{counted(memories, 'memory')} from {counted(windows, 'window')}, by rules"
    say(made if windows else "no window is open")


def _show(found: list[Window], as_json: bool) -> None:
    items = [
        {"agent": one.agent, "session": one.session, "project": one.project, "observations": len(one.events)}
        for one in found
    ]
    if as_json:
        document({"items": items, "total": len(items)})
        return
    for item, one in ((item, len(window.events)) for item, window in zip(items, found, strict=True)):
        say(f"{item['agent']} {str(item['session'])[:8]}  {counted(one, 'observation')}, no model calls")
    if not items:
        say("no window is open")
