"""Real agents in a home of their own, with a model that follows a script and no network but loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memorize.log.lock import Lock
from tests.counts import note
from tests.standin import wires

ROOT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).parent
PATIENCE_S = 180
MODEL_HOME = ("HOME", "PATH", "LANG", "TERM")
AGENTS = ("claude", "codex")
_PROGRAMS = {
    "claude": "@anthropic-ai/claude-code-*/claude",
    "codex": "@openai/codex-*/vendor/*/bin/codex",
}
QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "1",
    "IS_SANDBOX": "1",
}


# -- the programs


def programs() -> Mapping[str, Path]:
    """Return the agents' programs, installed once below ``.check``; the test is skipped where that cannot be."""
    lock = PINS / "package-lock.json"
    folder = ROOT / ".check" / f"agents-{zlib.crc32(lock.read_bytes()):08x}"
    found = _found(folder)
    if found is None:
        (ROOT / ".check").mkdir(exist_ok=True)
        with Lock(ROOT / ".check" / "agents.lock", 600):  # one worker installs, the others wait for it
            found = _found(folder) or _install(folder)
    return found


def _found(folder: Path) -> Mapping[str, Path] | None:
    if not (folder / "ready").exists():
        return None
    found = {name: next((folder / "node_modules").glob(pattern), None) for name, pattern in _PROGRAMS.items()}
    return {name: path for name, path in found.items() if path is not None}


def _install(folder: Path) -> Mapping[str, Path]:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm or node is not here, so no real agent was tried")
    refused = folder.parent / f"{folder.name}.failed"
    if refused.exists() and time.time() - refused.stat().st_mtime < 600:
        pytest.skip(f"npm could not install the agents, so none was tried: {refused.read_text('utf-8')}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / name, folder)
    words = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    home = os.environ.get("MEMORIZE_TEST_NPM_HOME")  # the person's own settings say where packages come from
    environ = {**os.environ, **({"HOME": home} if home else {})}
    done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        shutil.rmtree(folder, ignore_errors=True)
        refused.write_text((done.stderr.strip().splitlines() or ["no reason given"])[0], encoding="utf-8")
        pytest.skip(f"npm could not install the agents, so none was tried: {refused.read_text('utf-8')}")
    (folder / "ready").touch()
    for old in folder.parent.glob("agents-*"):
        if old != folder and old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
    found = _found(folder)
    assert found is not None
    return found


# -- the machine


class Machine:
    """A person's machine: a home, a git project, the agents, and a model that listens on loopback."""

    def __init__(self, top: Path, stack: ExitStack) -> None:
        self.programs = programs()
        self.home = top / "홈 디렉터리 of Jo"
        self.project = self.home / "작업 공간" / "check out"
        self.state = self.home / ".local" / "share" / "memorize"
        self.model = top / "model"
        for folder in (self.project, self.model, self.home / ".claude", self.home / ".codex", top / "bin"):
            folder.mkdir(parents=True)
        for name, program in self.programs.items():
            (top / "bin" / name).symlink_to(program)
        self.path = f"{top / 'bin'}:{os.environ['PATH']}"
        self.script({"name": "nothing yet", "turns": []})
        self.prefix: list[str] = []
        self.port = self._listen(stack)
        self._codex_settings()
        for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "첫 커밋"]):
            self.run("git", *words)

    def _listen(self, stack: ExitStack) -> int:
        """Start the model, in a network namespace of its own where that is allowed; return its port."""
        isolation = self._isolation()
        server = subprocess.Popen(
            [*isolation, sys.executable, "-m", "tests.standin", str(self.model)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            stdin=subprocess.DEVNULL,
        )
        stack.callback(server.wait, PATIENCE_S)
        stack.callback(server.kill)
        deadline = time.monotonic() + PATIENCE_S
        while not (self.model / "port").exists():
            assert time.monotonic() < deadline, "the model does not listen"
            assert server.poll() is None, "the model left"
            time.sleep(0.02)
        if isolation:
            inside = ["--user", "--preserve-credentials"] if "--user" in isolation else []
            self.prefix = ["nsenter", "--target", str(server.pid), "--net", *inside, "--"]
        else:
            note("real agents: no network namespace is to be had here, they ran beside the network with no proxy set")
        return int((self.model / "port").read_text("ascii"))

    @staticmethod
    def _isolation() -> list[str]:
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            return []
        for words in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
                return words
        return []

    def _codex_settings(self) -> None:
        (self.home / ".codex" / "config.toml").write_text(
            f'model = "gpt-5.5"\nmodel_provider = "standin"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.standin]\nname = "standin"\nbase_url = "http://127.0.0.1:{self.port}/v1"\n'
            f'env_key = "STANDIN_KEY"\nwire_api = "responses"\nrequest_max_retries = 1\n'
            f"[analytics]\nenabled = false\n[feedback]\nenabled = false\n",
            encoding="utf-8",
        )

    # -- running things ---------------------------------------------------------------------------------------------

    def environ(self) -> dict[str, str]:
        """A clean environment: nothing of the person who runs the tests, no proxy, no key that is one."""
        git = {name: value for name, value in os.environ.items() if name.startswith("GIT_")}
        return {
            **git,
            **QUIET,
            "HOME": str(self.home),
            "PATH": self.path,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "MEMORIZE_HOME": str(self.state),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}",
            "ANTHROPIC_API_KEY": "no-key-at-all",
            "STANDIN_KEY": "no-key-at-all",
        }

    def run(self, *words: str, status: int = 0, given: str = "") -> str:
        """Run a program in the project, on loopback only; return what it printed."""
        done = subprocess.run(
            [*self.prefix, *words],
            cwd=self.project,
            env=self.environ(),
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def memorize(self, *words: str, given: str = "") -> str:
        """Run a verb: of the wheel where there is one, else of the checkout."""
        wheel = Path(os.environ.get("MEMORIZE_WHEEL_VENV", "/nonexistent")) / "bin" / "memorize"
        if wheel.exists():
            return self.run(str(wheel), *words, given=given)
        code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from memorize.cli.main import main; main()"
        return self.run(sys.executable, "-c", code, *words, given=given)

    def gets(self, *words: str) -> Any:
        return json.loads(self.memorize(*words, "--json"))

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the payloads of the events of a kind, the oldest first."""
        return [item["payload"] for item in reversed(self.gets("log", "--kind", kind, "--limit", "1000")["items"])]

    # -- the agents -------------------------------------------------------------------------------------------------

    def script(self, script: Mapping[str, Any]) -> None:
        beside = self.model / "script.new"
        beside.write_text(json.dumps(script), encoding="utf-8")
        beside.replace(self.model / "script.json")

    def plays(
        self,
        agent: str,
        prompt: str,
        turns: Sequence[Mapping[str, Any]],
        others: Sequence[Mapping[str, Any]] = (),
    ) -> list[dict[str, Any]]:
        """Run an agent once with this prompt and these answers of the model; return what the model was asked."""
        name = self._scripted(agent, prompt, turns, others)
        self.run(*command(agent, prompt))
        return self.heard(name)

    @contextmanager
    def at(self, project: Path, state: Path | None = None) -> Iterator[None]:
        """Work in another checkout, and on another device with a state directory of its own."""
        before = self.project, self.state
        self.project, self.state = project, state or self.state
        try:
            yield
        finally:
            self.project, self.state = before

    @contextmanager
    def playing(self, agent: str, prompt: str, turns: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Have an agent run beside what is done inside; a turn that waits ``until`` a file is there lets it end."""
        self._scripted(agent, prompt, turns, ())
        process = subprocess.Popen(
            [*self.prefix, *command(agent, prompt)],
            cwd=self.project,
            env=self.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait(PATIENCE_S)

    def _scripted(
        self, agent: str, prompt: str, turns: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
    ) -> str:
        """Let the model follow these turns from now on; return the name of the script."""
        if agent not in self.programs:
            pytest.skip(f"there is no {agent} for this machine")
        name = f"{agent}: {prompt}"
        self.script({"name": name, "turns": list(turns), "others": list(others)})
        return name

    def heard(self, name: str) -> list[dict[str, Any]]:
        """Return what the model was asked while it followed a script."""
        lines = (self.model / "requests.jsonl").read_text("utf-8").splitlines()
        return [one["body"] for one in map(json.loads, lines) if one["script"] == name and one["body"].get("tools")]

    def asked(self, text: str) -> list[dict[str, Any]]:
        """Return the requests, whoever made them, that say this anywhere."""
        lines = (self.model / "requests.jsonl").read_text("utf-8").splitlines()
        bodies = [one["body"] for one in map(json.loads, lines)]
        return [body for body in bodies if any(text in said for said in told(body))]


def command(agent: str, prompt: str) -> list[str]:
    """Return the command line that runs an agent once."""
    if agent == "claude":
        return ["claude", "-p", prompt, "--output-format", "json", "--dangerously-skip-permissions"]
    return ["codex", "exec", "--json", "-s", "danger-full-access", "--dangerously-bypass-hook-trust", prompt]


def shell(agent: str, command: str) -> list[object]:
    """Return the call of an agent's shell tool."""
    return (
        ["Bash", {"command": command, "description": "run"}]
        if agent == "claude"
        else ["exec_command", {"cmd": command}]
    )


def told(request: Mapping[str, Any]) -> list[str]:
    """Return everything that a request tells the model, in order."""
    return [text for _, text in wires.texts(request)]
