"""Claude Code and Codex as they are shipped, asked by the consolidator: our words and nothing of the person's own."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from memorize.clock import SystemClock
from memorize.config import Config
from memorize.consolidate.answer import SCHEMA
from memorize.consolidate.login import Choice, Extractors
from memorize.consolidate.port import ModelFailed, Reply, Request
from memorize.consolidate.prompt import SYSTEM
from memorize.paths import Home
from tests.consolidate.programs import gone, program
from tests.real.kit import AGENTS, PATIENCE_S, Machine, told

WINDOW = "<record>\n이 창을 읽어라\n</record>"
ANSWER = '{"memories": []}'
ERROR = {"type": "error", "error": {"type": "some_error", "message": "no"}}
MARK = "ONLY-FOR-THE-PERSON"


def wrap(machine: Machine, agent: str, line: str = 'exec {program} "$@"') -> None:
    """Put a script in the place of the agent's program; it runs where only the scripted model can be reached."""
    if agent not in machine.programs:
        pytest.skip(f"there is no {agent} for this machine")
    path = Path(machine.path.split(":")[0]) / agent
    words = " ".join(f"'{word}'" for word in [*machine.prefix, str(machine.programs[agent])])
    path.unlink(missing_ok=True)
    program(path, line.replace("{program}", words))


def chosen(machine: Machine, agent: str, **without: str) -> Choice:
    environ = {name: value for name, value in machine.environ().items() if name not in without.values()}
    settings = Config(extractor=agent)
    return Extractors(Home(machine.state), settings, environ, SystemClock(), machine.home).choose(fresh=True)


def ask(machine: Machine, agent: str, turn: dict[str, object], deadline_s: float = PATIENCE_S) -> Reply:
    machine.script({"name": agent, "turns": [], "others": [{"when": WINDOW, "turn": turn}]})
    choice = chosen(machine, agent)
    assert choice.model is not None, choice
    return choice.model.ask(Request(SYSTEM, WINDOW, SCHEMA, "extract", deadline_s))


def failure(machine: Machine, agent: str, turn: dict[str, object], deadline_s: float = PATIENCE_S) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        ask(machine, agent, turn, deadline_s)
    return caught.value


def requests(machine: Machine) -> list[dict[str, object]]:
    path = machine.model / "requests.jsonl"
    return [json.loads(line)["body"] for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def furnish(machine: Machine) -> Path:
    """Give the person hooks of their own, instructions and a server; return what the hooks and the server touch."""
    touched = machine.home / "touched"
    hook = [{"hooks": [{"type": "command", "command": f"echo hook >>'{touched}'"}]}]
    hooks = dict.fromkeys(("SessionStart", "UserPromptSubmit", "Stop"), hook)
    for folder in (".claude", ".codex"):
        settings = machine.home / folder / ("settings.json" if folder == ".claude" else "hooks.json")
        settings.write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    (machine.home / ".claude" / "CLAUDE.md").write_text(MARK, encoding="utf-8")
    server = {"command": "/bin/sh", "args": ["-c", f"echo server >>'{touched}'; cat"]}
    (machine.home / ".claude.json").write_text(json.dumps({"mcpServers": {"own": server}}), encoding="utf-8")
    config = machine.home / ".codex" / "config.toml"
    text = config.read_text("utf-8")
    config.write_text(
        f"{text}[mcp_servers.own]\ncommand = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}\n"
    )
    return touched


@pytest.mark.parametrize("agent", AGENTS)
def test_one_question_is_one_request_with_our_words_and_nothing_of_the_persons(machine: Machine, agent: str) -> None:
    wrap(machine, agent)
    touched = furnish(machine)
    reply = ask(machine, agent, {"say": ANSWER})
    assert reply.text == ANSWER
    assert reply.tokens_in > 0
    assert reply.tokens_out == 20
    assert reply.model
    [request] = requests(machine)
    heard = told(request)
    assert sum(text.count(SYSTEM) for text in heard) == 1
    assert WINDOW in heard
    assert MARK not in json.dumps(request)
    assert not touched.exists()
    assert not list((machine.home / ".claude" / "projects").rglob("*.jsonl"))
    assert not list((machine.home / ".codex" / "sessions").rglob("*.jsonl"))
    if agent == "claude":
        assert not request.get("tools")
        assert len(json.dumps(request)) < len(SYSTEM) + 4_000
    else:
        assert not {"exec_command", "shell"} & {str(tool.get("name")) for tool in request["tools"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_wrapper_that_lets_the_hooks_run_again_captures_nothing(machine: Machine, agent: str) -> None:
    again = """for word do
    shift
    case "$word" in
    *disableAllHooks*) word='{}' ;;
    features.hooks=*) word=features.hooks=true ;;
    exec) set -- "$@" exec --dangerously-bypass-hook-trust; continue ;;
    esac
    set -- "$@" "$word"
done
{program} "$@\""""
    touched = furnish(machine)
    machine.memorize("setup", "--extractor", "rules")
    wrap(machine, agent, again)
    assert ask(machine, agent, {"say": ANSWER}).text == ANSWER
    assert touched.read_text("utf-8").count("hook") >= 3  # the person's own hooks did run
    assert list((machine.state / "spool" / "new").iterdir()) == []
    assert machine.gets("log")["total"] == 0
    assert len(requests(machine)) == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_a_login_is_found_without_a_request(machine: Machine, agent: str) -> None:
    wrap(machine, agent)
    key = {"claude": "ANTHROPIC_API_KEY", "codex": "STANDIN_KEY"}[agent]
    assert chosen(machine, agent).name == agent
    assert chosen(machine, agent, without=key).name == "wait"
    assert requests(machine) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_who_lost_the_login_fails_as_not_logged_in_and_asks_nobody(machine: Machine, agent: str) -> None:
    wrap(machine, agent)
    choice = chosen(machine, agent)
    assert choice.model is not None
    choice.model._environ = {  # type: ignore[attr-defined]
        name: value for name, value in machine.environ().items() if not name.endswith("_KEY")
    }
    with pytest.raises(ModelFailed) as caught:
        choice.model.ask(Request(SYSTEM, WINDOW, None, "extract", PATIENCE_S))
    assert caught.value.kind == "not-logged-in"
    assert requests(machine) == []


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("status", "kind"), [(401, "not-logged-in"), (429, "rate-limited"), (400, "exit")])
def test_what_the_service_says_no_with_has_its_kind(machine: Machine, agent: str, status: int, kind: str) -> None:
    wrap(machine, agent)
    failed = failure(machine, agent, {"status": status, "error": ERROR})
    assert failed.kind == kind, failed
    assert 1 <= len(requests(machine)) <= 8


@pytest.mark.parametrize("agent", AGENTS)
def test_a_service_that_hangs_is_over_at_the_deadline_and_no_process_is_left(machine: Machine, agent: str) -> None:
    wrap(
        machine,
        agent,
        f"echo $$ >'{machine.model}/pid'\nexec 3<&0\n{{program}} \"$@\" <&3 &\necho $! >>'{machine.model}/pid'\nwait",
    )
    began = time.monotonic()
    ask(machine, agent, {"say": ANSWER})  # so that what it does at its first start is done
    machine_s = time.monotonic() - began
    began = time.monotonic()
    assert failure(machine, agent, {"say": ANSWER, "wait_s": 60}, 3).kind == "timeout"
    assert time.monotonic() - began < 3 + 2 + machine_s  # what comes before the call, the probe, is in it
    assert all(gone(int(pid)) for pid in (machine.model / "pid").read_text("ascii").split())


@pytest.mark.parametrize("agent", AGENTS)
def test_a_large_window_reaches_the_model_whole(machine: Machine, agent: str) -> None:
    wrap(machine, agent)
    window = WINDOW + "가나다라 마바사 " * 8_000
    machine.script({"name": "large", "turns": [], "others": [{"when": WINDOW, "turn": {"say": "큰 답 " * 20_000}}]})
    choice = chosen(machine, agent)
    assert choice.model is not None
    reply = choice.model.ask(Request(SYSTEM, window, None, "extract", PATIENCE_S))
    assert reply.text.strip() == ("큰 답 " * 20_000).strip()
    [request] = requests(machine)
    assert any(window.strip() == text.strip() for text in told(request))


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are written as scripts with #!")
