"""``memorize sessions``: who is at work, who was, on which files; also while it changes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.children import environ, hear
from tests.cli.kit import Person

PATIENCE_S = 120


def edits(person: Person, session: str, name: str) -> None:
    path = str(person.project / name)
    person.hook(
        "PostToolUse",
        {
            "session_id": session,
            "tool_name": "Write",
            "tool_input": {"file_path": path, "content": "가\n나\n"},
            "tool_response": {"type": "create", "filePath": path},
        },
    )


def opens(person: Person, session: str) -> None:
    person.hook("SessionStart", {"session_id": session, "source": "startup"})


def test_sessions_are_listed_with_state_checkout_and_files(person: Person) -> None:
    opens(person, "하나-first")
    edits(person, "하나-first", "web/장바구니.ts")
    call = {"session_id": "하나-first", "tool_name": "Bash", "tool_input": {"command": "make 배포"}}
    person.hook("PostToolUseFailure", {**call, "error": "Exit code 2\nno"})
    opens(person, "second")
    person.hook("SessionEnd", {"session_id": "second", "reason": "other"})
    found = {one["session"]: one for one in person.gets("sessions")["items"]}
    assert (found["하나-first"]["state"], found["second"]["state"]) == ("active", "closed")
    [file] = found["하나-first"]["files"]
    assert (file["path"], file["op"], file["added"]) == ("web/장바구니.ts", "create", 2)
    assert found["하나-first"]["root"] == str(person.project)
    assert found["second"]["device_name"] == ""
    assert (found["하나-first"]["ran"], found["second"]["ran"]) == ("make 배포", "")
    said = person.types("sessions").out
    assert "edited web/장바구니.ts" in said
    assert "ran make 배포" in said
    assert max(len(line) for line in said.splitlines()) <= 100
    assert person.gets("sessions", "--all")["total"] == 2


def test_watch_and_json_are_for_different_readers(person: Person) -> None:
    said = person.types("sessions", "--watch", "--json")
    assert said.code == 2
    assert "--watch" in said.err


def test_watch_shows_what_comes_until_it_is_interrupted(person: Person, tmp_path: Path) -> None:
    opens(person, "first")
    output = tmp_path / "seen"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-c", "from memorize.cli.main import main; main()", "sessions", "--watch"],
            cwd=person.project,
            stdout=sink,
            stdin=subprocess.DEVNULL,
            env=environ(),
            preexec_fn=hear,
        )
        try:
            await_text(output, "first")
            edits(person, "second", "나중.txt")
            await_text(output, "edited 나중.txt")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0


def await_text(path: Path, text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while text not in path.read_text("utf-8"):
        assert time.monotonic() < deadline, f"waited in vain for {text}"
        time.sleep(0.1)
