"""What it costs to be told a rule before a command, over what the same hook call costs when it only captures.

Run ``python -m bench.action [--memories N] [--rounds N] [--json]`` from the checkout. Three rules among N memories; the
hook calls are whole processes on a pipe, in turn: a capture after a tool, and before one a command that no rule is
about, ``git commit`` (its rules are told), and an edit of a file that another live session has just edited.
``ratio`` is over the capture; the aim is at most 1.5. ``told`` counts the calls that printed something, ``late`` those
that the daemon did not answer within 100 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.stores import Filler, new_project
from bench.timing import Case, Row, report, running, say, spawn, spread
from memorize.bootstrap import App
from memorize.clock import SystemClock
from memorize.consolidate.windows import Found
from memorize.log.spool import put_capture
from memorize.paths import Home
from memorize.recall.changes import formed, remembered

RULES = (
    "Commit subjects are one line with a conventional prefix.",
    "커밋 메시지에는 이모지를 쓰지 않는다.",
    "Run the linter before every commit.",
)
SHARED = "web/cart.ts"
UP_S = 300.0


class Plain(Filler):
    """Memories of which none is a rule for an action."""

    def _memory(self, sources: tuple[bytes, ...]) -> Found:
        return super()._memory(sources)._replace(triggers=())


def fill(home: Path, project: Path, memories: int) -> None:
    """Make a state directory with so many memories and three rules for ``git commit``."""
    filler = Plain(home, project)
    filler.memories(memories)
    app = filler.finish()
    remember(app, project)
    app.close()


def remember(app: App, project: Path) -> None:
    """Store the rules as a person does."""
    place = app.place(str(project))
    for text in RULES:
        rule = formed(text, "rule", "project", place.project, 8, triggers=["git-commit"])
        app.append(remembered(rule), place=place)
    app.changed("project", place.project)


def payload(project: Path, event: str, session: str, tool: str, given: Mapping[str, Any], **more: object) -> bytes:
    """Return what the agent hands to the hook, padded to 4 KiB."""
    call = {"session_id": session, "cwd": str(project), "hook_event_name": event, "tool_name": tool, **more}
    call["tool_input"] = {**given, "description": "x" * 3_700}
    return json.dumps(call, ensure_ascii=False).encode()


def cases(home: Path, project: Path) -> list[Case]:
    """Return what is to be timed, the capture first. The file is warned of in a new session each time."""
    program = str(home / "hook" / "memorize_hook.py")

    def call(name: str, event: str, tool: str, given: Mapping[str, Any], session: str) -> Case:
        words = [sys.executable, "-I", "-S", program, "claude", event]
        return Case(name, words, home, payload(project, event, session, tool, given))

    edit = {"file_path": str(project / SHARED), "content": "x"}
    return [
        call("capture after a tool", "PostToolUse", "Bash", {"command": "make x"}, "s"),
        call("before a command without a rule", "PreToolUse", "Bash", {"command": "make x"}, "s"),
        call("before git commit, 3 rules", "PreToolUse", "Bash", {"command": "git commit -m x"}, "s"),
        call("before an edit, warned of once", "PreToolUse", "Write", edit, "s"),
    ]


def other_session(home: Path, project: Path) -> None:
    """Let another session edit the file."""
    given = {"file_path": str(project / SHARED), "content": "x"}
    data = payload(project, "PostToolUse", "other", "Write", given, tool_response={"type": "create"})
    put_capture(Home(home), "claude", "PostToolUse", data, SystemClock())


def wait_until_told(case: Case, answer: str, late: Path) -> None:
    """Ask until the daemon is up, has taken in what waits and answers."""
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        spawn(case, answer)
        late.unlink(missing_ok=True)
        if Path(answer).stat().st_size:
            return
        time.sleep(0.2)
    raise SystemExit("the daemon does not answer")


def measure(memories: int, rounds: int) -> list[Row]:
    """Time every case ``rounds`` times, one after the other in each round."""
    with tempfile.TemporaryDirectory(prefix="mz") as folder, ExitStack() as stack:
        home, project = Path(folder) / "h", new_project(Path(folder) / "checkout")
        say(f"filling a store with {memories:,} memories")
        fill(home, project, memories)
        other_session(home, project)
        stack.enter_context(running([sys.executable, "-m", "memorize.daemon.serve", "serve"], home))
        prepared = cases(home, project)
        answer, late = str(Path(folder) / "answer"), home / "hook" / "late"
        wait_until_told(prepared[2], answer, late)
        times: dict[str, list[float]] = {case.name: [] for case in prepared}
        told, missed = dict.fromkeys(times, 0), dict.fromkeys(times, 0)
        for number in range(-2, rounds):  # twice, for the caches
            for case in prepared:
                spent = spawn(case, answer)
                if number >= 0:
                    times[case.name].append(spent)
                    told[case.name] += Path(answer).stat().st_size > 0
                    missed[case.name] += late.exists()
                late.unlink(missing_ok=True)  # or nobody would ask for half a minute
    base = statistics.median(times[prepared[0].name])
    counts = {name: {"told": told[name], "late": missed[name]} for name in times}
    return [{"case": name, **spread(spent, base), **counts[name]} for name, spent in times.items()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=60)
    report("action", parser, measure)


if __name__ == "__main__":
    main()
