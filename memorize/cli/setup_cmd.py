"""``memorize setup``: wire the agents that are here. Running it twice changes nothing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from memorize import agents
from memorize.agents import hookfiles, install
from memorize.agents.base import Found
from memorize.agents.install import Plan
from memorize.bootstrap import App
from memorize.cli import extracting
from memorize.cli.console import app, document, json_option, say, tell
from memorize.config import EXTRACTORS
from memorize.counted import counted
from memorize.daemon import life


@click.command()
@click.option(
    "--agent", "--agents", "names", multiple=True, help="Wire this agent, also when its program is not found."
)
@click.option("--project", "local", is_flag=True, help="Write this project's local settings instead of yours.")
@click.option("--dry-run", is_flag=True, help="Show what would be changed and change nothing.")
@click.option(
    "--extractor",
    type=click.Choice(EXTRACTORS),
    help="What turns observations into memories, written to config.toml; by default the agent that is logged in.",
)
@json_option
def command(names: tuple[str, ...], local: bool, dry_run: bool, extractor: str | None, as_json: bool) -> None:
    """Put the hooks into the settings of the agents that are found, or of those named with --agent.

    Switches on the agent that is logged in as what reads sessions and writes memories, within the caps of a day;
    --extractor rules refuses that, --extractor off forms no memories at all.
    """
    parts = app()
    wanted = tuple(name for given in names for name in given.split(",") if name)
    project = Path.cwd() if local else None
    plan = install.plan(parts.home, sys.executable, wanted, os.environ, project, windows=os.name == "nt")
    told = [] if dry_run else install.apply(plan, parts.home)
    if not dry_run:
        hookfiles.follow_start(parts.home, parts.config.daemon)
        life.look(parts.home)  # an older one has to leave
        parts.ingest()
    config, choice = extracting.switch(parts, extractor, dry_run=dry_run)
    if as_json:
        chosen = {"name": choice.name, "why": choice.why}
        caps = {"calls_per_day": config.calls_per_day, "tokens_per_day": config.tokens_per_day}
        document({**_facts(plan, told, dry_run), "extractor": {**chosen, **caps}})
    else:
        _say(parts, plan, told, dry_run, extracting.line(choice, config))
    if plan.problems:
        raise plan.problems[0]


def _facts(plan: Plan, told: list[str], dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "agents": [{"agent": one.agent, "program": one.program, "settings": str(one.root)} for one in plan.found],
        "edits": [
            {
                "agent": one.agent,
                "path": str(one.path),
                "changes": one.edit.changes,
                "hooks": len(one.inserted.commands),
            }
            for one in plan.edits
        ],
        "notes": list(plan.notes),
        "problems": [str(one) for one in plan.problems],
        "transcripts": dict(plan.transcripts),
        "told": told,
    }


def _say(parts: App, plan: Plan, told: list[str], dry_run: bool, extractor: str) -> None:
    if not plan.found:
        say("no agent was found")
        say(f"{'extractor':12} {extractor}")
        tell(f"hint: name one to wire it all the same: memorize setup --agent {agents.names()[0]}")
        return
    _say_edits(plan, dry_run)
    for line in told:
        if "changed while" in line:
            say(f"{'left alone':12} {line}")
    for problem in plan.problems:
        say(f"{'left alone':12} {problem}")
    for note in plan.notes:
        say(f"{'note':12} {note}")
    for name, count in plan.transcripts.items():
        if count:
            say(f"{'history':12} {counted(count, 'old session')} of {agents.TITLES[name]} on this machine")
    if not any(plan.transcripts.values()):
        say(f"{'history':12} no old sessions on this machine")
    say(f"{'extractor':12} {extractor}")
    if not dry_run:
        say(f"{'state':12} {parts.home.root} (private); memorize status shows it, memorize uninstall undoes this")
    if shutil.which("memorize") is None:
        say(f"{'note':12} the command memorize is not on your PATH; the hooks do not need it")


def _say_edits(plan: Plan, dry_run: bool) -> None:
    for one in plan.found:
        say(f"{agents.TITLES[one.agent]:12} {_where(one)}")
    for planned in plan.edits:
        state = counted(len(planned.inserted.commands), "hook") if planned.edit.changes else "is up to date"
        say(f"{'would write' if dry_run and planned.edit.changes else 'settings':12} {planned.path}: {state}")
        if dry_run and planned.edit.changes:
            for hook in planned.inserted.commands[:1]:
                say(f"{'':12} such as: {hook}")


def _where(found: Found) -> str:
    return found.program or "its program was not found; its settings are looked after all the same"
