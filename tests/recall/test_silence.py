"""When a prompt gets an answer, and when it does not."""

from __future__ import annotations

import pytest

from memorize.recall.silence import ANSWERS_MAX, answers
from tests.recall.stores import DAY, NOW, OTHER, PROJECT, identity, memory, query

MEMORIES = [
    memory("Refunds reuse the payment's idempotency key.", importance=3, recency=NOW - 40 * DAY),
    memory("Prices are integers in cents.", importance=10),
    memory("배포는 금요일 오후에 하지 않는다.", kind="rule"),
    *(memory(f"Something weighty number {n}", importance=10) for n in range(40)),
]


def said(prompt, delivered=(), memories=MEMORIES):
    return [hit.row.text for hit in answers(query(memories), prompt, [PROJECT], NOW, delivered)]


def test_a_prompt_about_a_memory_is_answered_however_old_and_light_it_is():
    assert said("refund with idempotency") == ["Refunds reuse the payment's idempotency key."]
    assert said("금요일 오후에는 배포를") == ["배포는 금요일 오후에 하지 않는다."]


@pytest.mark.parametrize(
    "prompt",
    ["", "   ", "please write a haiku about spring mountains and rivers", "안녕하세요 오늘 날씨 어때요", "thanks"],
)
def test_other_prompts_meet_silence(prompt):
    assert said(prompt) == []


def test_what_was_delivered_is_not_said_again():
    memories = [memory(f"lock file {n}", recency=NOW - n * DAY) for n in range(6)]
    first = said("lock file", memories=memories)
    assert len(first) == ANSWERS_MAX
    again = said("lock file", {identity(text) for text in first}, memories)
    assert len(again) == 3
    assert not set(first) & set(again)


def test_another_project_keeps_its_memories():
    assert said("lock file", memories=[memory("lock file", project=OTHER)]) == []
