"""Programs that a test writes: called ``claude`` or ``codex``, and doing what no real one can be made to do."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from memorize.consolidate.port import Request

# Far longer than any test waits: what still runs then was not ended.
LONG_S = 600


def program(path: Path, body: str, *, python: bool = False) -> Path:
    """Write a program in shell, or in Python, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(f"#!{sys.executable} -IS\n{body}" if python else f"#!/bin/sh\n{body}\n", encoding="utf-8")
    beside.chmod(0o755)
    beside.replace(path)
    return path


def printing(path: Path, out: bytes, status: int = 0, err: str = "") -> Path:
    """Write a program that reads everything, prints these bytes and leaves."""
    body = (
        f"import os, sys\nsys.stdin.buffer.read()\nos.write(2, {err!r}.encode())\n"
        f"sys.stdout.buffer.write({out!r})\nsys.stdout.flush()\nos._exit({status})\n"
    )
    return program(path, body, python=True)


def question(prompt: str = "창을 읽어라", deadline_s: float = 60.0, **fields: object) -> Request:
    """Return a question."""
    schema = {"type": "object", "properties": {"memories": {"type": "array"}}}
    asked = Request("You read. 당신은 읽는다.", prompt, schema, "extract", deadline_s)
    return asked._replace(**fields)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """Return whether a process has ended (one that nobody waits for here counts as ended)."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text("utf-8").rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False
