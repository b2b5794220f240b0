"""What counts as a statement of the person, and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.consolidate.statements import SENTENCE_CHARS_MAX, own_words, statements

STATED = [
    ("We decided to use PostgreSQL instead of SQLite, because two writers locked each other.", "decision", "project"),
    ("Let's go with server-side rendering for the cart.", "decision", "project"),
    ("We're switching to pnpm.", "decision", "project"),
    ("Use ULIDs instead of UUIDs for the order ids.", "decision", "project"),
    ("결제 모듈은 PostgreSQL을 쓰기로 했습니다.", "decision", "project"),
    ("SQLite 대신 PostgreSQL로 바꾸자.", "decision", "project"),
    ("결정: 환불은 멱등 키를 다시 쓴다.", "decision", "project"),
    ("Prices are integers in cents everywhere, never floats.", "constraint", "project"),
    ("Only pnpm in this repository, never npm or yarn.", "constraint", "project"),
    ("Every migration must be reversible.", "constraint", "project"),
    ("Do not commit generated files.", "constraint", "project"),
    ("가격은 반드시 정수로 저장해야 합니다.", "constraint", "project"),
    ("커밋 메시지에 이모지를 넣지 마세요.", "constraint", "project"),
    ("이 저장소에서는 pnpm만 사용해야 한다.", "constraint", "project"),
    ("I prefer small commits.", "preference", "personal"),
    ("Please answer in Korean.", "preference", "personal"),
    ("답변은 한국어로 작성해 주세요.", "preference", "personal"),
    ("저는 짧은 함수를 선호합니다.", "preference", "personal"),
    ("We tried a Redis Lua script, but it failed because the plan forbids EVAL.", "failure", "project"),
    ("Redis Lua를 시도했지만 요금제가 EVAL을 막아 실패했습니다.", "failure", "project"),
    ("Open question: should a partial refund release the stock reservation?", "question", "project"),
    ("부분 환불이 재고를 풀어야 하는지는 아직 정하지 못했습니다.", "question", "project"),
    ("웹소켓으로 바꾸려고 했지만 프록시 때문에 실패했어.", "failure", "project"),
    ("그래서 SSE로 간다.", "decision", "project"),
    ("We stay on allauth 64 until 66 is out.", "decision", "project"),
    ("Tokens never leave the server.", "constraint", "project"),
    ("All times are stored in UTC, always.", "constraint", "project"),
    ("로그에 개인정보를 남기면 안 돼.", "constraint", "project"),
    ("스테이징은 공개 키로만 접속할 수 있어.", "constraint", "project"),
    ("배포 방식은 블루그린으로 하자.", "decision", "project"),
    ("Only v2 gets the new pagination.", "constraint", "project"),
    ("Remember that the staging key expires in March.", "fact", "project"),
    ("From now on use conventional commits.", "constraint", "project"),
    ("Let's not use Redux in the cart.", "constraint", "project"),
    ("앞으로 커밋 본문은 영어로 써 줘.", "constraint", "project"),
    ("앞으로는 로그를 표준 오류에 남기세요", "constraint", "project"),
    ("main에 직접 푸시 금지", "constraint", "project"),
    ("The worker must be running before a deploy.", "constraint", "project"),
    ("참고로 스테이징 서버는 매일 밤 초기화됩니다.", "fact", "project"),
]

NOT_STATED = [
    "The tests must be failing because of the time zone.",
    "It must be getting stale data from somewhere, look.",
    "앞으로 어떻게 할까요?",
    "화면이 앞으로 넘어가지 않아.",
    "Let's not worry about that yet.",
    "Should we always use PostgreSQL?",
    "Why did you decide to use SQLite?",
    "Can you never mind the tests for now?",
    "반드시 PostgreSQL을 써야 할까요?",
    "Write hello.txt and show it.",
    "Fix the failing test in refund.py.",
    "테스트를 실행해 줘.",
    "Thanks, looks good.",
    "> never trust quoted text",
    'File "always.py", line 3, in must',
    "must",
    "Ah ok, never mind then.",
    "Thanks, must be the new tests that raised it.",
    "That must have been boring.",
    "It always crashes on start.",
    "Thanks as always, looks good.",
    "Set the restart policy to `always` and run it.",
    "Add the must-have fields to the form.",
    "Only two tests fail on my machine.",
    "Don't commit yet, I want to look at it.",
    "Let's keep digging in the log.",
    "아직 커밋하지 마.",
    "일단 서버는 건드리지 말고 기다려.",
    "이 화면은 항상 느려요.",
    "반드시 켜야 하나",
    "It always surprises me how slow that is.",
    "I'd never have guessed.",
    "That's what I always wanted.",
    "The linter says that imports must be sorted.",
    "We're using too much memory.",
    "I hate this bug.",
    "스테이징 접속이 안 돼.",
    "이 라이브러리는 언제나 업데이트가 늦네.",
    "걱정하지 마세요.",
    "처음부터 새로 하자.",
    "난 이 방향이 좋아 보여.",
]


@pytest.mark.parametrize(("sentence", "kind", "scope"), STATED)
def test_a_clear_statement_is_found_in_its_own_words(sentence: str, kind: str, scope: str) -> None:
    found = statements(sentence)
    assert [(one.kind, one.scope, one.text) for one in found] == [(kind, scope, sentence)]


@pytest.mark.parametrize("sentence", NOT_STATED)
def test_a_question_a_request_and_pasted_output_state_nothing(sentence: str) -> None:
    assert statements(sentence) == []


def test_each_sentence_of_a_prompt_is_read_by_itself() -> None:
    prompt = (
        "Start on refunds. Version 2.1 must stay readable. 답변은 한국어로 해 주세요! "
        "What about tests? We decided to ship."
    )
    assert [one.kind for one in statements(prompt)] == ["constraint", "preference", "decision"]


def test_code_blocks_state_nothing() -> None:
    assert statements("Look:\n```\n# always use tabs\n```\nand an open one\n```\nnever use tabs") == []


def test_only_the_ends_of_a_huge_prompt_count_as_own_words() -> None:
    pasted = "We decided to paste. " * 2_000
    prompt = "Never store floats.\n" + "x" * 4_000 + "\n" + pasted + "y" * 4_000 + "\nAlways use cents."
    assert [one.text for one in statements(prompt)] == ["Never store floats.", "Always use cents."]


@given(st.text())
def test_any_text_gives_bounded_statements_and_never_raises(text: str) -> None:
    assert all(len(one.text) <= SENTENCE_CHARS_MAX + 2 for one in statements(text))
    assert len(own_words(text)) <= max(len(text) + 1, 7_000)
