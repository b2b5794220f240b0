"""Search: what is found, how it is ordered, and that it is never silenced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memorize.recall.rank import explain
from memorize.recall.search import search
from tests.recall.stores import DAY, NOW, OTHER, PROJECT, memory, query

NOTES = json.loads((Path(__file__).parents[1] / "data" / "ko_notes.json").read_text(encoding="utf-8"))


def found(memories, text, **more):
    hits = search(query(memories), text, [PROJECT], now_ms=NOW, **{"limit": 10, **more}).hits
    return [hit.row.text for hit in hits]


def test_korean_paraphrases_are_found_by_words_alone():
    memories = [memory(note["text"]) for note in NOTES["notes"]]
    names = {note["text"]: note["id"] for note in NOTES["notes"]}
    reader = query(memories)
    recalled = 0.0
    for question in NOTES["questions"]:
        hits = search(reader, question["q"], [PROJECT], now_ms=NOW, limit=10).hits
        gold = set(question["gold"])
        recalled += len(gold & {names[hit.row.text] for hit in hits}) / len(gold)
    assert len(NOTES["questions"]) == 40
    assert recalled / 40 >= 0.30


@pytest.mark.parametrize(
    ("question", "memory_text"),
    [
        ("데이터베이스를 무엇으로 바꿨지?", "데이터베이스는 PostgreSQL로 바꾸기로 했다."),
        ("배포가 금지된 요일", "금요일 오후에는 배포하지 않는다."),
        ("결제에서 금액", "금액은 정수 센트로만 다룬다. 결제 화면도 같다."),
        ("마이그레이션을", "마이그레이션은 db/migrations 폴더에 둔다"),
        ("한글", "한글 파일명은 NFC로"),
        ("user id", "Use getUserById only behind the cache."),
        ("getUserById", "the helper get_user_by_id is slow"),
        ("migrations folder", "Migrations live in db/migrations."),
        ("running tests", "Run the test with uv."),
        ("データベース", "データベースは移行済み。"),
        ("缓存", "我们不使用缓存。"),
    ],
)
def test_other_particles_word_forms_and_identifier_parts_are_found(question, memory_text):
    others = ["완전히 다른 이야기입니다.", "Nothing of the kind.", "Prices are integers.", "로그를 남긴다."]
    assert found([memory(text) for text in (*others, memory_text)], question)[0] == memory_text


def test_search_is_never_silenced_however_weak_the_hit():
    weak = memory("one old word about locks", importance=1, recency=NOW - 300 * DAY)
    result = search(query([weak, memory("other")]), "locks of twenty kinds nobody named", [PROJECT], now_ms=NOW)
    assert [hit.row.text for hit in result.hits] == ["one old word about locks"]
    assert result.hits[0].score.total < 0.01
    assert result.total == 2


def test_a_beginning_of_a_word_is_tried_when_no_word_fits():
    assert found([memory("Refunds reuse the idempotency key."), memory("else")], "idempot") == [
        "Refunds reuse the idempotency key."
    ]


def test_an_empty_query_lists_by_rank_pinned_first():
    memories = [
        memory("low", importance=2),
        memory("old and high", importance=10, recency=NOW - 60 * DAY),
        memory("high", importance=9),
        memory("pinned", importance=1, pinned=True),
    ]
    assert found(memories, "  ") == ["pinned", "high", "low", "old and high"]
    assert found(memories, "", limit=2) == ["pinned", "high"]


def test_importance_and_recency_order_equal_words():
    memories = [
        memory("lock the file first", importance=3),
        memory("lock the file second", importance=9, recency=NOW - 3 * DAY),
        memory("lock the file third", importance=9),
    ]
    assert found(memories, "lock file") == ["lock the file third", "lock the file second", "lock the file first"]


def test_other_projects_stay_out_and_personal_memories_come_along():
    memories = [
        memory("lock here"),
        memory("lock elsewhere", project=OTHER),
        memory("lock mine", scope="personal", project="", kind="preference"),
    ]
    assert set(found(memories, "lock")) == {"lock here", "lock mine"}
    assert set(found(memories, "lock", scopes=["personal"])) == {"lock mine"}
    assert set(found(memories, "lock", kinds=["preference"])) == {"lock mine"}
    everywhere = search(query(memories), "lock", [], now_ms=NOW)
    assert len(everywhere.hits) == everywhere.total == 3


def test_the_score_is_explained_by_its_parts():
    hit = search(
        query([memory("Refunds reuse the key", importance=8, recency=NOW - 3 * DAY)]),
        "refund key",
        [PROJECT],
        now_ms=NOW,
    ).hits[0]
    assert explain(hit.score) == "0.69 = importance 8/10 x recency 0.86 (3 d) x relevance 1.00 (words 1.00)"
    assert hit.score.total == hit.score.importance * hit.score.recency * hit.score.relevance


def test_a_word_that_every_memory_holds_still_finds_in_a_store_of_two():
    assert len(found([memory("checkout one"), memory("checkout two")], "checkout")) == 2


@pytest.mark.parametrize(
    "text", ['"', "* OR NEAR(", "a AND", "text:x", "'; drop table shown; --", "\x00", "\ud800", "-", "^x"]
)
def test_no_query_text_breaks_the_search(text):
    found([memory("a text x about near things")], text)


def test_the_order_of_arrival_does_not_matter():
    memories = [memory(f"lock number {n}", importance=5) for n in range(30)]
    assert found(memories, "lock", limit=7) == found(memories[::-1], "lock", limit=7)
