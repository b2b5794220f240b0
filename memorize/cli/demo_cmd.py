"""``memorize demo``: a recorded session played through the real hook into a temporary store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from memorize.agents.hookfiles import put_hook_files
from memorize.bootstrap import App, open_app
from memorize.cli.console import say
from memorize.counted import counted
from memorize.paths import Home, adapters_dir
from memorize.recall.rank import explain, score

AGENT: Final = "claude"
RECORDING: Final = Path("claude", "sessions", "refund.jsonl")
NEXT_SESSION: Final = "5f2c0002-0000-4000-8000-000000000002"
_PROJECT_FILES: Final = {
    ".git/HEAD": "ref: refs/heads/refund-api\n",
    ".git/config": '[remote "origin"]\n\turl = https://git.example.com/shop/checkout.git\n',
}
_LINE: Final = 76


class Call(NamedTuple):
    """One recorded hook call."""

    event: str
    payload: dict[str, Any]


@click.command()
@click.option("--keep", is_flag=True, help="Keep the temporary store and say where it lies.")
def command(keep: bool) -> None:
    """Show the whole idea in a minute: a recorded session, what was kept, what the next one is told."""
    with _folder(keep) as folder:
        _play(folder)
        if keep:
            say(f"\nkept: MEMORIZE_HOME={folder / 'state'}")


@contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memorize-demo-"))
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _play(folder: Path) -> None:
    started = time.monotonic()
    project = folder / "checkout"
    for name, text in _PROJECT_FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    home = Home(folder / "state")
    home.root.mkdir(mode=0o700)
    put_hook_files(home, sys.executable)
    # A demo leaves nothing behind, so no daemon either.
    (home.hook / "nodaemon").touch(mode=0o600)

    calls = _recording(project)
    say(f"1. A recorded Claude Code session, played through the real hook into {home.root}")
    spent = [_hook(home, project, call)[1] for call in calls]
    for call in calls:
        if told := _told(call):
            say(f"   {told[0]:7} {_cut(told[1])}")
    say(f"   {len(calls)} hook calls, {sorted(spent)[len(spent) // 2] * 1000:.0f} ms each (median), no model call")

    app = open_app(_environ(home))
    app.ingest()
    counts = app.reader().counts()
    say(f"\n2. Captured: {counts.observed} observations in {counts.events} append-only events, named by their content")
    report = app.consolidate()
    made = f"{counted(report.memories, 'memory')} from {counted(report.windows, 'window')}"
    say(f"\n3. Consolidated by rules, no model: {made}")
    app.refresh_briefs()

    say("\n4. What the next session is told at its start (the hook's own answer)\n")
    start = Call("SessionStart", {"session_id": NEXT_SESSION, "hook_event_name": "SessionStart", "source": "startup"})
    answer, seconds = _hook(home, project, start._replace(payload={**start.payload, "cwd": str(project)}))
    say(answer.rstrip("\n"))
    say(f"\n   answered in {seconds * 1000:.0f} ms. Why each line is there:\n")
    _scores(app, project)
    say('\n5. Found again later: memorize search --explain "멱등 키"\n')
    for hit in app.search("멱등 키", app.place(str(project)).project, limit=1).hits:
        say(f"   {hit.row.kind[0]} {hit.row.id.hex()[:6]}  {hit.row.text}")
        say(f"   {explain(hit.score)}")
    say(f"\nThat took {time.monotonic() - started:.1f} s. Your own projects, in two commands:\n")
    say("   memorize setup       # wires the agents that it finds; undo with: memorize uninstall")
    say("   memorize status      # after the next session: what was kept")


def _recording(project: Path) -> list[Call]:
    text = (adapters_dir() / RECORDING).read_text(encoding="utf-8")
    inside = json.dumps(str(project))[1:-1]
    lines = [json.loads(line.replace("@PROJECT@", inside)) for line in text.splitlines()]
    return [Call(line["event"], line["payload"]) for line in lines]


def _hook(home: Home, project: Path, call: Call) -> tuple[str, float]:
    """Run the hook program as an agent would; return what it printed and how long it took."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(home.hook_program), AGENT, call.event],
        input=json.dumps(call.payload).encode(),
        cwd=project,
        capture_output=True,
        check=True,
        env=_environ(home),
    )
    return done.stdout.decode("utf-8", "replace"), time.monotonic() - started


def _environ(home: Home) -> dict[str, str]:
    """Return the caller's environment with the demo's state directory and without what switches hooks off."""
    left_out = ("MEMORIZE_GUARD", "MEMORIZE_DISABLED")
    return {
        **{name: value for name, value in os.environ.items() if name not in left_out},
        "MEMORIZE_HOME": str(home.root),
    }


def _told(call: Call) -> tuple[str, str] | None:
    """Return who did what, for the calls that a person would notice."""
    given = call.payload
    if call.event == "UserPromptSubmit":
        return "user", given["prompt"]
    if call.event == "Stop":
        return "agent", given["last_assistant_message"]
    tool = given.get("tool_input", {})
    if call.event == "PostToolUseFailure":
        return "failed", tool.get("command", "")
    if call.event == "PostToolUse" and "file_path" in tool:
        return given["tool_name"].lower(), Path(tool["file_path"]).name
    if call.event == "PostToolUse" and "git commit" in tool.get("command", ""):
        return "ran", tool["command"]
    return None


def _scores(app: App, project: Path) -> None:
    context = app.context(app.place(str(project)), NEXT_SESSION)
    query, now = app.query(), app.clock.wall_ms()
    rows = {row.id: row for row in query.rows([item[0] for item in context.items])}
    for identity, reason, _ in context.items:
        row = rows[identity]
        parts = score(row.importance, row.recency, now, None, app.weights)
        say(f"   {row.kind:10} {identity.hex()[:6]}  {explain(parts, app.weights)}, {reason}")


def _cut(line: str) -> str:
    folded = " ".join(line.split())
    return folded if len(folded) <= _LINE else folded[: _LINE - 1] + "…"
