"""A person at the command line: runs verbs in this process against the test's own state directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memorize.cli.main import main
from memorize.paths import Home, adapters_dir

RECORDING = adapters_dir() / "claude" / "sessions" / "refund.jsonl"


class Said(NamedTuple):
    """What a verb printed and how it left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


class Person:
    """Types verbs in a project directory."""

    def __init__(self, home: Home, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self.project = project
        self._capsys = capsys

    def types(self, *words: str) -> Said:
        """Run a verb and return everything about it."""
        self._capsys.readouterr()
        try:
            main(list(words))
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        printed = self._capsys.readouterr()
        return Said(code, printed.out, printed.err)

    def gets(self, *words: str) -> Any:
        """Run a verb that succeeds with ``--json`` and return its document."""
        said = self.types(*words, "--json")
        assert said.code == 0, said
        return said.json

    def remembers(self, text: str, *options: str) -> str:
        """Remember a text and return its id in full."""
        identity = self.gets("remember", text, *options)["id"]
        assert isinstance(identity, str)
        return identity

    def hook(self, event: str, payload: dict[str, Any], agent: str = "claude") -> subprocess.CompletedProcess[bytes]:
        """Let the agent call the hook program."""
        return subprocess.run(
            [sys.executable, "-I", "-S", str(self.home.hook_program), agent, event],
            input=json.dumps({"cwd": str(self.project), "hook_event_name": event, **payload}).encode(),
            cwd=self.project,
            capture_output=True,
            check=True,
            timeout=60,
        )

    def works(self) -> None:
        """Play the recorded session through the hook program."""
        for line in RECORDING.read_text(encoding="utf-8").splitlines():
            call = json.loads(line.replace("@PROJECT@", str(self.project)))
            assert self.hook(call["event"], call["payload"]).stdout == b""
