"""A real agent's session is read by a real agent's model: once, without hooks of its own, into live memories."""

from __future__ import annotations

import json
import time

import pytest

from tests.counts import FULL
from tests.real.kit import PATIENCE_S, Machine, shell

PROMPT = "환불 흐름을 정리해 줘. We will keep refunds idempotent because a retry double-charged a customer."
READS = "You read the record of a work session"
MEMORY = "Refunds stay idempotent: a retry once double-charged a customer."
ANSWER = {
    "memories": [
        {
            "kind": "decision",
            "text": MEMORY,
            "importance": 8,
            "confidence": 90,
            "scope": "project",
            "sources": [1],
            "guess": False,
            "subject": None,
            "predicate": None,
            "object": None,
            "single": None,
            "obsolete_when": None,
            "expires": None,
            "replaces": [],
            "triggers": [],
            "paths": [],
            "tags": [],
        }
    ]
}
OTHERS = [{"when": READS, "turn": {"say": json.dumps(ANSWER)}}]


@pytest.mark.parametrize(
    "agent", ["claude", pytest.param("codex", marks=pytest.mark.skipif(not FULL, reason="part of the full run"))]
)
def test_a_session_is_read_once_by_the_logged_in_agent_and_its_own_run_captures_nothing(
    machine: Machine, agent: str
) -> None:
    machine.memorize("setup", "--extractor", agent)
    (machine.state / "hook" / "nodaemon").touch()
    turns = [{"call": shell(agent, "make refunds")}, {"say": "정리했습니다."}]
    machine.plays(agent, PROMPT, turns, OTHERS)
    done = machine.gets("consolidate", "--wait")
    assert (done["windows"], done["memories"], done["calls"], done["extractor"]) == (1, 1, 1, agent)
    assert len(machine.asked(READS)) == 1
    assert [item["text"] for item in machine.gets("list")["items"]] == [MEMORY]
    assert len(machine.events("session.opened")) == 1
    assert machine.gets("usage")["items"][0]["calls"] == 1
    again = machine.gets("consolidate", "--wait")
    assert (again["windows"], again["calls"]) == (0, 0)
    assert len(machine.asked(READS)) == 1


def test_it_is_read_by_itself_behind_the_end_with_the_login_that_the_session_had(machine: Machine) -> None:
    machine.memorize("setup")
    machine.plays("claude", PROMPT, [{"call": shell("claude", "make refunds")}, {"say": "정리했습니다."}], OTHERS)
    deadline = time.monotonic() + PATIENCE_S
    while not (shown := machine.gets("list")["items"]):
        assert time.monotonic() < deadline, machine.gets("doctor")
        time.sleep(0.2)
    assert [item["text"] for item in shown] == [MEMORY]
    assert len(machine.asked(READS)) == 1
    assert len(machine.events("session.opened")) == 1
