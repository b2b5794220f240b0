"""A state directory with a hook in it, the daemon as a process of its own, and an agent that calls the hook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from memorize.agents.hookfiles import daemon_program, put_hook_files
from memorize.bootstrap import App, open_app
from memorize.capture.memorize_hook import spool_name
from memorize.clock import SystemClock
from memorize.daemon import life
from memorize.log.spool import put_capture
from memorize.model import Event
from memorize.paths import Home

# Generous: a machine may be busy, and nothing here is about speed.
PATIENCE_S = 180.0
# A machine that stalls for seconds makes a hook give up before it has started a daemon; the next one does.
WAKE_S = 20.0
DECISION = "환불은 결제의 멱등 키를 다시 쓰기로 했다"
PROMPT = f"{DECISION}. We decided to use pnpm for the checkout workspace. Never call npm in this repository."
QUESTION = "checkout workspace: pnpm or npm?"


def until(found: Callable[[], Any], what: str) -> Any:
    """Wait until something is found, and return it."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited in vain: {what}")


class Place:
    """One state directory and one project."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "h")
        self.project = root / "결제"
        self.project.mkdir()
        self.started: list[subprocess.Popen[bytes]] = []
        put_hook_files(self.home, sys.executable)

    # -- the daemon -------------------------------------------------------------------------------------------------

    def launch(self, code: str = "", **more: Any) -> subprocess.Popen[bytes]:
        """Start a daemon as ``life.spawn`` does, but keep hold of the process. ``code`` is put before its program."""
        program = daemon_program()
        if code:
            program = program.replace("from memorize.daemon.serve", f"{code}\nfrom memorize.daemon.serve")
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", program, "serve"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **more,
        )
        self.started.append(process)
        return process

    def serve(self, code: str = "", **more: Any) -> life.Running:
        """Start a daemon and wait for it."""
        self.launch(code, **more)
        return self.running()

    def running(self) -> life.Running:
        found = life.wait_until_up(self.home, PATIENCE_S)
        assert found is not None, "the daemon did not come up"
        return found

    def woken_by(self, call: Callable[[], object]) -> life.Running:
        """Have hooks start a daemon, and wait for it."""

        def woken() -> life.Running | None:
            (self.home.hook / "started").unlink(missing_ok=True)
            call()
            return life.wait_until_up(self.home, WAKE_S)

        found = until(woken, "a daemon that a hook starts")
        assert isinstance(found, life.Running)
        return found

    def end(self) -> None:
        """End whatever serves here; nothing may be left."""
        try:
            life.stop(self.home, PATIENCE_S)
        finally:
            for process in self.started:
                if process.poll() is None and not self._leaves(process):
                    process.kill()
                process.wait(PATIENCE_S)
        assert not life.is_locked(self.home), "a daemon outlived its test"

    @staticmethod
    def _leaves(process: subprocess.Popen[bytes]) -> bool:
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    # -- the agent --------------------------------------------------------------------------------------------------

    def payload(self, event: str, session: str, **fields: object) -> bytes:
        call = {"session_id": session, "cwd": str(self.project), "hook_event_name": event, **fields}
        return json.dumps(call, ensure_ascii=False).encode()

    def capture(self, event: str, session: str, **fields: object) -> None:
        """Drop a capture as the hook does, without asking anybody."""
        put_capture(self.home, "claude", event, self.payload(event, session, **fields), SystemClock())

    def ask(self, event: str, session: str, **fields: object) -> str:
        """Drop a capture and ask the daemon about it, as the hook does; return what it would print.

        Asked again when the answer came too late: then the daemon hangs up.
        """

        def reply() -> tuple[str] | None:
            found = self._reply(event, session, **fields)
            return None if found is None else (found.decode(),)

        return str(until(reply, f"a reply to {event}")[0])

    def _reply(self, event: str, session: str, **fields: object) -> bytes | None:
        data = self.payload(event, session, **fields)
        name = spool_name(time.monotonic_ns(), os.urandom(16), len(data), crc32(data), "claude", event)
        beside = self.home.spool / "tmp" / name
        beside.parent.mkdir(parents=True, exist_ok=True)
        beside.touch(0o600)
        beside.write_bytes(data)
        (self.home.spool / "new").mkdir(exist_ok=True)
        beside.replace(self.home.spool / "new" / name)
        return life.ask(self.home, b"A " + name.encode(), PATIENCE_S)

    def told(self, event: str, session: str, **fields: object) -> str:
        """Ask until something is said: on a busy machine an answer may come too late, and then it is not given."""
        return str(until(lambda: (self._reply(event, session, **fields) or b"").decode(), f"an answer to {event}"))

    def hook(self, event: str, session: str, **fields: object) -> str:
        """Run the real hook and return what it printed."""
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(self.home.hook_program), "claude", event],
            input=self.payload(event, session, **fields),
            cwd=self.project,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        assert done.stderr == b""
        return done.stdout.decode()

    def session(self, session: str, prompt: str = PROMPT) -> None:
        """A whole session in which something is decided and something fails."""
        self.capture("SessionStart", session, source="startup")
        self.capture("UserPromptSubmit", session, prompt=prompt)
        self.capture(
            "PostToolUseFailure",
            session,
            tool_name="Bash",
            tool_input={"command": "make check"},
            error="Exit code 2\nmake: *** no rule",
        )
        self.capture("Stop", session, last_assistant_message="pnpm이 정해졌다.")
        self.capture("SessionEnd", session, reason="other")

    # -- the memory -------------------------------------------------------------------------------------------------

    @contextmanager
    def app(self) -> Iterator[App]:
        parts = open_app(os.environ)
        try:
            yield parts
        finally:
            parts.close()

    def remember(self) -> None:
        """Have a session's decision remembered, without a daemon."""
        self.session("first")
        with self.app() as parts:
            parts.ingest()
            assert parts.consolidate().memories
            parts.refresh_briefs()

    def events(self, kind: str) -> list[Event]:
        with self.app() as parts:
            return parts.reader(drain=False).log(kind=kind, limit=100_000)

    def waiting(self) -> int:
        return sum(1 for _ in (self.home.spool / "new").glob("*"))

    def drained(self) -> None:
        """Wait until nothing lies in the spool."""
        until(lambda: self.waiting() == 0, "an empty spool")
