"""The wheel as a user gets it: installed alone, with nothing of the developers' around it.

``./check`` builds the wheel, installs it into an environment of its own and names both by ``MEMORIZE_WHEEL`` and
``MEMORIZE_WHEEL_VENV``. Nothing here imports the program: it is started as a user starts it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL = os.environ.get("MEMORIZE_WHEEL", "")
BIN = Path(os.environ.get("MEMORIZE_WHEEL_VENV", "/nonexistent")) / "bin"
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "memorize/__init__.py").read_text("utf-8"), re.MULTILINE)

pytestmark = pytest.mark.skipif(not WHEEL, reason="only ./check builds the wheel and names it")


def run(*words: str | Path, stdin: str = "", cwd: Path, status: int = 0) -> str:
    """Run a program outside the checkout, so that nothing of it can be imported by accident; return what it printed."""
    done = subprocess.run(
        [str(word) for word in words], input=stdin, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def memorize(*words: str, stdin: str = "", cwd: Path, status: int = 0) -> str:
    return run(BIN / "memorize", *words, stdin=stdin, cwd=cwd, status=status)


@pytest.fixture
def project(own_home: Path) -> Path:
    folder = own_home / "projekt 프로젝트"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    return folder


def test_the_command_tells_its_version(project: Path) -> None:
    assert VERSION is not None
    assert VERSION.group(1) in memorize("--version", cwd=project)


def test_every_verb_has_help(project: Path) -> None:
    listed = re.findall(r"^  ([a-z]+) {2,}\S", memorize("--help", cwd=project), re.MULTILINE)
    assert len(listed) > 10
    for verb in listed:
        assert "Usage: memorize" in memorize(verb, "--help", cwd=project)


def test_the_wheel_holds_the_package_and_the_adapters_and_nothing_else() -> None:
    names = zipfile.ZipFile(WHEEL).namelist()
    outside = [name for name in names if not re.match(r"memorize/|memorize_agents-[^/]+\.dist-info/", name)]
    assert outside == []
    for path in ROOT.glob("memorize/**/*.py"):
        assert path.relative_to(ROOT).as_posix() in names
    adapters = [path for path in ROOT.glob("adapters/**/*") if path.is_file() and "__pycache__" not in path.parts]
    assert adapters
    for path in adapters:
        assert f"memorize/_adapters/{path.relative_to(ROOT / 'adapters').as_posix()}" in names
    assert "memorize/py.typed" in names
    assert [name for name in names if "/tests/" in name or name.endswith((".pyc", ".sqlite"))] == []


def test_no_package_of_the_developers_is_there(project: Path) -> None:
    code = "from importlib.metadata import distributions as d; print(*{x.name.lower().replace('_', '-') for x in d()})"
    installed = set(run(BIN / "python", "-c", code, cwd=project).split())
    locked = {re.split(r"[=\s]", line)[0] for line in (ROOT / "requirements/run.txt").read_text("utf-8").splitlines()}
    assert "memorize-agents" in installed
    assert installed - {name for name in locked if name} <= {"memorize-agents", "pip", "setuptools"}


def test_asking_for_the_version_loads_nothing_heavy(project: Path) -> None:
    code = "import sys; import memorize.cli.main; print(*sys.modules)"
    loaded = set(run(BIN / "python", "-c", code, cwd=project).split())
    assert loaded.isdisjoint({"asyncio", "sqlite3", "rich", "msgpack", "blake3", "numpy", "platformdirs", "tomllib"})
    assert {name for name in loaded if name.startswith("memorize.")} <= {
        "memorize.cli",
        "memorize.cli.main",
        "memorize.errors",
    }


def test_what_a_hook_captured_is_in_the_log_and_what_was_remembered_is_found(project: Path, own_home: Path) -> None:
    settings = own_home / ".claude" / "settings.json"
    settings.parent.mkdir()
    before = '{\n    "model" :"opus"\n}\n'
    settings.write_text(before, encoding="utf-8")
    memorize("setup", "--agent", "claude", cwd=project)
    [command] = set(re.findall(r'"command": *"((?:[^"\\]|\\.)*UserPromptSubmit[^"]*)"', settings.read_text("utf-8")))
    payload = {
        "session_id": "s-1",
        "cwd": str(project),
        "hook_event_name": "UserPromptSubmit",
        "prompt": "우리는 pnpm만 쓴다. Never npm.",
    }
    line = json.loads(f'"{command}"')
    assert run("sh", "-c", line, stdin=json.dumps(payload, ensure_ascii=False), cwd=project) == ""
    [event] = json.loads(memorize("log", "--kind", "observed.prompt", "--limit", "1", "--json", cwd=project))["items"]
    assert event["payload"]["text"] == payload["prompt"]
    memorize("remember", "--kind", "decision", "Refunds reuse the idempotency key of the payment.", cwd=project)
    found = json.loads(memorize("search", "refund", "key", "--json", cwd=project))
    assert found["total"] == 1
    memorize("uninstall", cwd=project)
    assert settings.read_text("utf-8") == before
