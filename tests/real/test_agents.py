"""Claude Code and Codex as they are shipped: what one session says, the next one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.counts import FULL
from tests.real.kit import AGENTS, Machine, shell, told

DECISION = "We decided to reuse the payment's idempotency key for refunds"
CONSTRAINT = "환불 금액은 절대 부동소수점으로 계산하면 안 된다"
# The task comes first and is long, as the summary of a session quotes the beginning of what was asked.
TASK = (
    "Please look at the refund flow of this project, write into NOTES.md what I say here so that the next person finds "
    "it, see whether the deploy target of the makefile works, and commit the file with a telling message."
)
PROMPT = f"{TASK} {DECISION}. {CONSTRAINT}."
QUESTION = "What is next here?"
full_only = pytest.mark.skipif(not FULL, reason="part of the full run")


def work(agent: str) -> list[dict[str, object]]:
    """A turn that edits, one that fails, one that commits, and the last word."""
    note = "# 메모\n\nrefunds reuse the key\n"
    if agent == "claude":
        edit: list[object] = ["Write", {"file_path": "@PROJECT@/NOTES.md", "content": note}]
    else:
        lines = "".join(f"+{line}\n" for line in note.splitlines())
        edit = ["apply_patch", f"*** Begin Patch\n*** Add File: NOTES.md\n{lines}*** End Patch\n"]
    return [
        {"say": "적어 두겠습니다.", "call": edit},
        {"call": shell(agent, "make deploy")},
        {"call": shell(agent, "git add -A && git commit -m 'Note how refunds keep their key'")},
        {"say": "NOTES.md에 적고 커밋했습니다."},
    ]


def first_session(machine: Machine, agent: str) -> None:
    """Set up, then let an agent work for the first time."""
    machine.memorize("setup", "--extractor", "rules")
    script = json.loads(json.dumps(work(agent)).replace("@PROJECT@", str(machine.project)))
    machine.plays(agent, PROMPT, script)
    assert "Note how refunds" in machine.run("git", "log", "--format=%s", "-1")


def second_session(machine: Machine, agent: str) -> list[str]:
    """Let an agent be asked something; return what the model heard before it said its first word."""
    requests = machine.plays(agent, QUESTION, [{"say": "다음은 테스트입니다."}])
    assert len(requests) == 1
    return told(requests[0])


def remembered(machine: Machine, agent: str) -> None:
    """Everything that happened is in the log, once, and under this agent's name."""
    [opened] = machine.events("session.opened")
    assert (opened["agent"], opened["source"]) == (agent, "startup")
    [prompt] = machine.events("observed.prompt")
    assert prompt["text"] == PROMPT
    assert prompt["branch"] == "main"
    [edit] = machine.events("observed.edit")
    assert (edit["path"], edit["op"]) == ("NOTES.md", "create")
    commands = {event["command"]: event["ok"] for event in machine.events("observed.shell")}
    assert commands.pop("make deploy") is not True
    assert all("git commit" in command for command in commands)
    [commit] = machine.events("observed.commit")
    assert commit["subject"] == "Note how refunds keep their key"
    [reply] = machine.events("observed.reply")
    assert reply["text"] == "NOTES.md에 적고 커밋했습니다."
    assert len(machine.events("session.closed")) == 1
    assert machine.gets("doctor")["failed"] == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("claude", "claude"),
        pytest.param("claude", "codex"),
        pytest.param("codex", "codex", marks=full_only),
        pytest.param("codex", "claude", marks=full_only),
    ],
)
def test_what_one_session_decided_the_next_is_told_once_and_before_its_first_answer(
    machine: Machine, first: str, second: str
) -> None:
    first_session(machine, first)
    remembered(machine, first)
    machine.memorize("consolidate", "--wait")
    heard = second_session(machine, second)
    [context] = [text for text in heard if "<memorize-context" in text]
    assert context.count("<memorize-context") == 1
    assert sum(text.count(DECISION) for text in heard) == 1
    assert context.count(CONSTRAINT) == 1
    if first == "claude":  # Codex does not say how a command ended
        assert "`make deploy`" in context
    assert f'project="{machine.project.name}"' in context
    if second == "codex":  # Claude Code itself puts what a session start says behind the first prompt
        assert heard.index(context) < heard.index(QUESTION)
    delivered = [one for one in machine.events("context.delivered") if one["items"]]
    assert [one["agent"] for one in delivered] == [second]


@full_only
@pytest.mark.parametrize("agent", AGENTS)
def test_after_uninstall_an_agent_runs_nothing_of_ours(machine: Machine, agent: str) -> None:
    settings = machine.home / ".claude" / "settings.json"
    settings.write_text('{"model": "sonnet"}', encoding="utf-8")
    first_session(machine, agent)
    machine.memorize("uninstall")
    assert settings.read_text("utf-8") == '{"model": "sonnet"}'
    assert not (machine.home / ".codex" / "hooks.json").exists()
    known = machine.gets("log", "--limit", "1000")["total"]
    assert "memorize-context" not in "".join(second_session(machine, agent))
    assert list((machine.state / "spool" / "new").iterdir()) == []
    assert machine.gets("log", "--limit", "1000")["total"] == known


@full_only
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("broken", ["interpreter", "hook program", "state directory"])
def test_an_agent_whose_hooks_are_broken_works_as_before(machine: Machine, agent: str, broken: str) -> None:
    machine.memorize("setup", "--extractor", "rules")
    for path in (machine.home / ".claude" / "settings.json", machine.home / ".codex" / "hooks.json"):
        text = path.read_text("utf-8")
        interpreter = json.loads((machine.state / "hook" / "python").read_text("utf-8").join('""'))
        if broken == "interpreter":
            assert interpreter in text
            path.write_text(text.replace(interpreter, "/nowhere/bin/python"), encoding="utf-8")
    if broken == "hook program":
        for name in ("memorize_hook.py", "memorize_hook.code", "memorize_hook.source"):
            (machine.state / "hook" / name).unlink()
    if broken == "state directory":
        machine.state.rename(machine.state.with_name("moved"))
    requests = machine.plays(agent, "Touch a file.", [{"call": shell(agent, "echo 잘됨 > done.txt")}, {"say": "done"}])
    assert (machine.project / "done.txt").read_text("utf-8") == "잘됨\n"
    assert len(requests) == 2
    if broken == "state directory":
        assert not (machine.state / "segments").exists()
        Path(machine.state.with_name("moved")).rename(machine.state)
