"""``memorize demo``: a recorded session played through the real hook into a temporary store."""

from __future__ import annotations

import json
import os
import shlex
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

import memorize
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
RULE: Final = "Commit subjects are one line of English."
CORRECTED: Final = "Commit subjects are one line of English, at most 60 characters."
_COMMIT: Final = "git add -A && git commit -m 'feat: partial refunds'"
_QUOTED: Final = "cat > notes.md <<'END'\nlater: git commit\nEND"
# A hook that has no daemon to ask waits so long for nobody, and on a machine that is too busy it says nothing.
_ASKED_MAX: Final = 20
# The program from where it lies, be it installed or a checkout; nothing else of the person's reaches it.
_PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from memorize.cli.main import main; main()"


class Device(NamedTuple):
    """A state directory, and where the project lies on that device."""

    home: Home
    project: Path


class Call(NamedTuple):
    """One recorded hook call."""

    event: str
    payload: dict[str, Any]


@click.command()
@click.option("--keep", is_flag=True, help="Keep the temporary store and say where it lies.")
def command(keep: bool) -> None:
    """Show the whole idea in a minute: a recorded session, what was kept of it, and who is told of it when.

    Everything runs for real, in a temporary directory: the hook, the store, a rule, and a second device.
    """
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
    device = _device(folder / "state", folder / "checkout")
    home, project = device

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
    _show_rule(device)
    _show_second_device(device, _device(folder / "second" / "state", folder / "second" / "checkout"))
    say(f"That took {time.monotonic() - started:.1f} s. Your own projects, in two commands:\n")
    say("   memorize setup       # wires the agents that it finds; undo with: memorize uninstall")
    say("   memorize status      # after the next session: what was kept")


def _device(root: Path, project: Path) -> Device:
    """Make a state directory with the hook in it, and the project."""
    for name, text in _PROJECT_FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    home = Home(root)
    home.root.mkdir(mode=0o700)
    put_hook_files(home, sys.executable)
    # A demo leaves nothing behind, so no daemon either.
    (home.hook / "nodaemon").touch(mode=0o600)
    return Device(home, project)


def _show_rule(device: Device) -> None:
    say("\n6. A rule comes right before what it is about, each time, and nowhere else\n")
    said = _types(device, "remember", "--on", "git-commit", RULE)
    _show_before(device, _COMMIT, RULE)
    _show_before(device, _QUOTED, "")
    say("   Corrected, only the new words are told from then on.\n")
    _types(device, "edit", said.split()[1], CORRECTED)
    _show_before(device, _COMMIT, CORRECTED)


def _show_second_device(first: Device, second: Device) -> None:
    say("7. A second device gets it: a state directory of its own, one folder between them, the same key\n")
    carried = first.home.root.parent / "carried"
    carried.mkdir()
    _types(first, "sync", "add", "folder", str(carried))
    _types(first, "sync")
    say('   On the second device, the line of "memorize key export" goes in first.\n')
    _types(second, "key", "import", given=_run(first, "key", "export"))
    _types(second, "sync", "add", "folder", str(carried))
    _types(second, "sync")
    _show_before(second, _COMMIT, CORRECTED)


def _show_before(device: Device, command: str, expected: str) -> None:
    """Show what the hook answers before a command; where it should say something it is asked until it does."""
    call = {"session_id": NEXT_SESSION, "hook_event_name": "PreToolUse", "cwd": str(device.project)}
    asked = Call("PreToolUse", {**call, "tool_name": "Bash", "tool_input": {"command": command}})
    answer = ""
    for _ in range(_ASKED_MAX if expected else 1):
        answer = answer or _hook(device.home, device.project, asked)[0]
    text = json.loads(answer)["hookSpecificOutput"]["additionalContext"] if answer else ""
    told = [line for line in text.splitlines() if line.startswith("- ")]
    nothing = "nothing, this machine is too busy now" if expected else "nothing, the text only speaks of it"
    say(f"   about to run  {_cut(command.replace(chr(10), ' ⏎ '))}")
    say(f"   told          {told[0] if told else nothing}\n")


def _types(device: Device, *words: str, given: str = "") -> str:
    """Run a verb as a person types it, show it with its output, and return that."""
    out = _run(device, *words, given=given)
    say(f"   $ memorize {shlex.join(words)}")
    say("".join(f"   {line}\n" for line in out.splitlines()))
    return out


def _run(device: Device, *words: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", _PROGRAM, str(Path(memorize.__file__).parents[1]), *words],
        input=given,
        cwd=device.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        encoding="utf-8",
        env={**_environ(device.home), "PYTHONUTF8": "1"},
    )
    return done.stdout


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
