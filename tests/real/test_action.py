"""Rules and warnings at the moment of action, by the requests that real agents send to their model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.counts import FULL
from tests.real.kit import PATIENCE_S, Machine, shell, told

RULE = "Commit subjects begin with a lower-case scope, 커밋 제목에 이모지는 쓰지 않는다"
NEWER = "Commit subjects begin with a ticket number"
COMMIT = "echo x >> 기록.txt && git add -A && git commit -q -m 'note: 하나'"
# A hook whose daemon is late says nothing, as it must; on a machine that stalls another session is needed then.
TRIES = 6
full_only = pytest.mark.skipif(not FULL, reason="part of the full run")


def played(
    machine: Machine, agent: str, prompt: str, turns: Sequence[Mapping[str, Any]], wanted: str
) -> list[dict[str, Any]]:
    """Play sessions until one of them hears what is wanted; return its requests."""
    for attempt in range(TRIES):
        (machine.state / "hook" / "late").unlink(missing_ok=True)
        requests = machine.plays(agent, f"{prompt} ({attempt})", turns)
        if any(wanted in text for request in requests for text in told(request)):
            return requests
    raise AssertionError(f"no session heard {wanted}")


def places(request: Mapping[str, Any], text: str) -> list[int]:
    """Return where in a request a text stands."""
    return [place for place, said in enumerate(told(request)) if text in said]


def until(found: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.2)


def begun(machine: Machine) -> None:
    machine.memorize("setup", "--extractor", "rules")
    machine.memorize("daemon", "start")


@pytest.mark.parametrize("agent", [pytest.param("claude"), pytest.param("codex")])
def test_a_rule_stands_beside_the_commands_result_and_nowhere_else_in_the_session(machine: Machine, agent: str) -> None:
    begun(machine)
    machine.memorize("remember", RULE, "--on", "git-commit")
    machine.memorize("remember", "Refunds reuse the payment's key.")
    turns = [
        {"call": shell(agent, "ls")},
        {"call": shell(agent, COMMIT)},
        {"call": shell(agent, "git log --oneline -1")},
        {"say": "끝"},
    ]
    requests = played(machine, agent, "Note it.", turns, RULE)
    assert [len(places(request, RULE)) for request in requests] == [0, 0, 1, 1]
    # Between the call and the next one: the agent puts it beside the result of the command it is about.
    [place] = places(requests[2], RULE)
    assert place >= len(told(requests[1])) - 1
    assert "Refunds reuse" in "".join(told(requests[0]))
    (delivered,) = [one for one in machine.events("context.delivered") if one["event"] == "PreToolUse"][-1:]
    assert delivered["agent"] == agent
    assert [item[1] for item in delivered["items"]] == ["action"]


def writes(agent: str, path: str, line: str) -> list[object]:
    """Return the call of an agent's editor that writes a file of one line; a file that is there is overwritten."""
    if agent == "claude":
        return ["Write", {"file_path": path, "content": f"{line}\n"}]
    return ["apply_patch", f"*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch\n"]


def edited(machine: Machine, path: str) -> bool:
    return any(one["path"] == path for one in machine.events("observed.edit"))


def warned(request: Mapping[str, Any], path: str) -> list[int]:
    return places(request, f"Warning: {path}")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("claude", "claude"),
        pytest.param("claude", "codex", marks=full_only),
        pytest.param("codex", "claude", marks=full_only),
    ],
)
def test_of_two_agents_in_two_worktrees_the_second_is_warned_before_it_writes_the_file(
    machine: Machine, first: str, second: str
) -> None:
    begun(machine)
    tree = machine.project.with_name("ui 작업")
    machine.run("git", "worktree", "add", "-q", "-b", "ui-cart", str(tree))
    ends = {"say": "끝", "until": "the second one is done"}
    with machine.playing(first, "Write it.", [{"call": writes(first, "장바구니.ts", "하나")}, ends]):
        until(lambda: edited(machine, "장바구니.ts"), "the first edit")
        [at_work] = [one for one in machine.gets("sessions")["items"] if one["state"] == "active"]
        assert [one["path"] for one in at_work["files"]] == ["장바구니.ts"]
        with machine.at(tree):
            turns = [{"call": shell(second, "ls")}, {"call": writes(second, "장바구니.ts", "둘")}, {"say": "끝"}]
            requests = played(machine, second, "Write it too.", turns, "Warning: ")
        (machine.model / "the second one is done").touch()
    assert [len(warned(request, "장바구니.ts")) for request in requests] == [0, 0, 1]
    [text] = [told(requests[2])[place] for place in warned(requests[2], "장바구니.ts")]
    assert "another live session" in text
    assert "branch main" in text
    start = "".join(told(requests[0]))
    assert "Also working here now" in start
    assert "edited 장바구니.ts" in start
    (record,) = machine.events("conflict.warned")[-1:]
    assert record["items"][0][:2] == ["file", "장바구니.ts"]


def test_of_a_rule_that_was_corrected_only_the_new_text_is_told_and_history_has_both(machine: Machine) -> None:
    begun(machine)
    old = machine.gets("remember", RULE, "--on", "git-commit")["id"]
    turns: list[dict[str, Any]] = [{"call": shell("claude", COMMIT)}, {"say": "끝"}]
    played(machine, "claude", "Commit.", turns, RULE)
    new = machine.gets("edit", old, NEWER)["id"]
    requests = played(machine, "claude", "Commit again.", turns, NEWER)
    assert not any(places(request, RULE) for request in requests)
    story = machine.memorize("history", new)
    assert RULE in story
    assert NEWER in story


def test_after_one_sync_an_agent_on_another_device_is_warned_and_told_how_old_the_news_is(
    machine: Machine, tmp_path: Path
) -> None:
    begun(machine)
    carried, clone = tmp_path / "carried", machine.project.with_name("클론")
    carried.mkdir()
    machine.run("git", "clone", "-q", str(machine.project), str(clone))
    other = machine.state.with_name("memorize-2")
    line = machine.memorize("key", "export")
    machine.memorize("sync", "add", "folder", str(carried))
    with machine.at(clone, other):
        begun(machine)
        machine.memorize("key", "import", given=line)
        machine.memorize("sync", "add", "folder", str(carried))
    ends = {"say": "끝", "until": "the second device is done"}
    try:
        with machine.playing("claude", "Write it.", [{"call": writes("claude", "장바구니.ts", "하나")}, ends]):
            until(lambda: edited(machine, "장바구니.ts"), "the first edit")
            machine.memorize("sync")
            time.sleep(2)  # news that are younger are of this moment
            with machine.at(clone, other):
                machine.memorize("sync")
                turns = [{"call": writes("claude", "장바구니.ts", "둘")}, {"say": "끝"}]
                requests = played(machine, "claude", "Write it too.", turns, "Warning: ")
            (machine.model / "the second device is done").touch()
        [place] = warned(requests[1], "장바구니.ts")
        text = told(requests[1])[place]
        assert 'a session on device "' in text
        assert "; last news from there " in text
        assert "whether to sync" in text
        assert 'device "' in "".join(told(requests[0]))
    finally:
        with machine.at(clone, other):
            machine.memorize("daemon", "stop")
