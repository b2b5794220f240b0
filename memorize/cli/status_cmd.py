"""``memorize status``: the memory of this project on five lines."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import click

from memorize import agents
from memorize.agents import wired
from memorize.bootstrap import App
from memorize.cli import extracting
from memorize.cli.console import app, document, here_option, json_option, say
from memorize.cli.rows import padded
from memorize.clock import ago
from memorize.counted import counted
from memorize.daemon import life
from memorize.errors import Problem, ReceiptDamaged
from memorize.recall.plain import one_line


@click.command()
@here_option
@json_option
def command(directory: str, as_json: bool) -> None:
    """Show what is remembered here, which agents are wired, what waits, and how large it all is."""
    parts = app()
    facts = _facts(parts, directory)
    if as_json:
        document(facts)
        return
    for line in _lines(parts, facts):
        say(line)


def _facts(parts: App, directory: str) -> dict[str, Any]:
    place = parts.here(directory)
    counts = parts.reader().counts(place.project)
    waiting = parts.open_sessions()
    running = life.look(parts.home)
    model = extracting.status(parts, place.project)
    return {
        "project": {"key": place.project, "name": place.name, "path": place.root},
        "memories": counts.memories,
        "rules": counts.rules,
        "disputed": counts.disputed,
        "review": counts.review,
        "observations": counts.observed,
        "last_ms": counts.last,
        "last_agent": counts.last_agent,
        "capture": _capture(parts),
        "consolidate": {
            **model,
            "sessions": len(waiting),
            "observations": sum(one.observations for one in waiting),
            "last_ms": counts.consolidated,
        },
        "sync": _sync(parts),
        "daemon": running._asdict() if running else None,
        "log_bytes": _size(parts.home.segments, parts.home.received),
        "index_bytes": _size(parts.home.index, parts.home.index.with_name(f"{parts.home.index.name}-wal")),
        "home": str(parts.home.root),
    }


def _capture(parts: App) -> list[dict[str, Any]]:
    try:
        found = wired.wired(parts.home, os.environ)
    except ReceiptDamaged as problem:
        return [{"agent": "setup", "path": "", "state": wired.UNREADABLE, "hooks": 0, "do": problem.remedy()}]
    return [
        {"agent": one.agent, "path": str(one.path), "state": one.state, "hooks": one.hooks, "do": one.do}
        for one in found
    ]


def _sync(parts: App) -> dict[str, Any] | None:
    """Return what is known of sync; None while nothing is set up, and then nothing of it is loaded."""
    if not any(path.exists() for path in (parts.home.sync, parts.home.peers, parts.home.visits)):
        return None
    from memorize.cli.sync_cmd import facts_of

    try:
        facts = facts_of(parts)
    except Problem as problem:  # what else there is to say is of more use than an error
        return {"problem": str(problem), "do": problem.remedy()}
    return facts if facts["targets"] or facts["peers"] or facts["visits"] else None


def _sync_words(facts: dict[str, Any] | None, now: int) -> str:
    if facts is None:
        return "not set up"
    if "problem" in facts:
        return f"{facts['problem']} {facts['do']}"
    places = [f"folder {one['where']}" if one["kind"] == "folder" else one["where"] for one in facts["targets"]]
    places += [f"{one['name']} (paired)" for one in facts["peers"]]
    places = places or ["reached by ssh"]
    others = [
        f"{one['name'] or one['id'][:8]} {ago(min(one['last_ms'], now), now)}"
        for one in facts["devices"]
        if not one["here"]
    ]
    state = f"converged (digest {facts['set'][:12]})"
    if not facts["converged"]:
        state = f"not converged: {'; '.join(facts['why'])}"
    return f"{', '.join(places)}: {', '.join(others) or 'no other device yet'}; {state}"


def _size(*paths: Path) -> int:
    """Return the octets of files, and of the files in directories, that are there."""
    total = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            total += sum(one.stat().st_size for one in (path.iterdir() if path.is_dir() else (path,)))
    return total


def _lines(parts: App, facts: dict[str, Any]) -> list[str]:
    now = parts.clock.wall_ms()
    name = one_line(facts["project"]["name"])
    last = "nothing captured yet"
    if facts["last_ms"]:
        last = f"last captured {ago(facts['last_ms'], now)} ({_title(facts['last_agent'])})"
    seen = f"{counted(facts['observations'], 'observation')}, {last}"
    wired = " · ".join(f"{_title(one['agent'])} {_said(one)}" for one in facts["capture"])
    waiting = facts["consolidate"]
    rules = f"{counted(facts['rules'], 'rule')}, {facts['disputed']} disputed"
    if facts["review"]:
        rules += f"; {facts['review']} for you to review: memorize review"
    daemon = facts["daemon"]
    up = (
        f"running for {daemon['since_s']} s, {daemon['memory_kib'] // 1024} MiB" if daemon else "on demand, not running"
    )
    waits = f"{counted(waiting['observations'], 'observation')} waiting; {_run_words(waiting, now)}"
    return [
        f"{padded(name, 11)} {counted(facts['memories'], 'memory')} ({rules}), {seen}",
        f"capture     {wired or 'no agent is wired: memorize setup'}",
        f"consolidate {waits}; {extracting.words(waiting)}",
        f"sync        {_sync_words(facts['sync'], now)}",
        f"daemon      {up} · log {_mb(facts['log_bytes'])}, index {_mb(facts['index_bytes'])} · {facts['home']}",
    ]


def _run_words(facts: dict[str, Any], now: int) -> str:
    failed = facts["failed"]
    if failed and failed["at_ms"] > facts["last_ms"]:
        return f"last try {ago(failed['at_ms'], now)} failed: {failed['detail'] or failed['kind']}"
    return f"last run {ago(facts['last_ms'], now)}" if facts["last_ms"] else "has not run yet"


def _title(agent: str) -> str:
    return agents.TITLES.get(agent, agent or "unknown")


def _said(one: dict[str, Any]) -> str:
    words = {
        wired.OK: "ok",
        wired.LACKING: "lacks hooks of ours",
        wired.UNREADABLE: "settings cannot be read",
        wired.DISABLED: "all hooks are switched off",
        wired.REFUSED: "reads nothing of its hooks file",
        wired.UNTRUSTED: "waits for your trust",
    }
    return words[one["state"]] + (f": {one['do']}" if one["do"] else "")


def _mb(octets: int) -> str:
    return f"{octets / 1e6:.1f} MB"
