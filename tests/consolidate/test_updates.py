"""What rules may say of two memories: the table of updates, and everything that must stay side by side."""

from __future__ import annotations

import pytest

from memorize.consolidate.reconcile import LISTED_MIN
from memorize.consolidate.updates import SAME, UPDATE, Stated, different_values, likeness, relation, tokens

STAY = ""


def told(older: str, newer: str, apart_ms: int = 1_000, cosine: float | None = None) -> str:
    return relation(Stated(older, 1_000), Stated(newer, 1_000 + apart_ms), cosine)


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("My favourite coffee is a cortado", "My favourite coffee is a flat white", UPDATE),
        (
            "The front end of the shop is written in Next.js and deployed from main",
            "The front end of the shop is written in React and deployed from main",
            UPDATE,
        ),
        ("The support phone number is 1234", "The support phone number is 4321", UPDATE),
        ("The app's primary database is SQLite", "The app's primary database is PostgreSQL", UPDATE),
        ("Our API uses SQLite as its primary database", "Our API uses PostgreSQL as its primary database", UPDATE),
        ("앱의 기본 데이터베이스는 SQLite이다", "앱의 기본 데이터베이스는 PostgreSQL이다", UPDATE),
        ("The dog is allergic to chicken", "The cat is allergic to chicken", STAY),
        ("The user knows Rust well", "The user knows Python well", STAY),
        ("Follow sibling rule 0 for the naming of files", "Follow sibling rule 1 for the naming of files", STAY),
        ("directive number 0", "directive number 1", STAY),
        (
            "We deploy every Friday after the long review meeting with everybody from the platform team",
            "We deploy every Friday unless somebody from finance has asked for a freeze before noon",
            STAY,
        ),
        ("The app uses PostgreSQL", "The app uses MySQL", STAY),
        ("The app uses FastAPI", "The app uses Redis", STAY),
        ("앱은 서버에서 FastAPI를 사용한다", "앱은 서버에서 Redis를 사용한다", STAY),
        ("User is building a shop with Vue and Go", "The user is building a shop with Vue and Go", SAME),
        ("환불은 한 번만 한다.", "환불은  한 번만 한다.", SAME),
        ("merge PRs yourself", "never merge PRs yourself", STAY),
        ("You must merge the PRs yourself", "You must never merge the PRs yourself", STAY),
        ("You must always merge the PRs yourself", "You must never merge the PRs yourself", STAY),
        ("PR은 리뷰 뒤 직접 머지해라", "PR은 리뷰 뒤 직접 머지하지 마라", STAY),
        ("Log request bodies in the staging system", "Do not log request bodies in the staging system", STAY),
        ("Tests of the payment module are slow", "Tests of the payment module are slow because of the sandbox", STAY),
    ],
)  # fmt: skip
def test_the_table_of_updates(older: str, newer: str, expected: str) -> None:
    assert told(older, newer) == expected


def test_an_update_needs_a_later_time_and_no_far_embedding() -> None:
    older, newer = "The main branch is called trunk", "The main branch is called develop"
    assert told(older, newer) == UPDATE
    assert told(older, newer, apart_ms=0) == STAY
    assert told(older, newer, cosine=0.2) == STAY
    assert told(older, newer, cosine=0.6) == UPDATE
    assert told("My app uses PostgreSQL here", "My app uses MySQL here", cosine=0.99) == STAY


def test_statements_are_compared_by_subject_and_predicate_alone() -> None:
    def stated(
        value: str, at_ms: int, single: bool = True, subject: str = "앱", predicate: str = "primary_db"
    ) -> Stated:
        return Stated(f"{subject} {predicate} {value} {at_ms}", at_ms, subject, predicate, value, single)

    assert relation(stated("SQLite", 1), stated("PostgreSQL", 2)) == UPDATE
    assert relation(stated("SQLite", 1), stated("sqlite", 2)) == STAY
    assert relation(stated("SQLite", 1), stated("PostgreSQL", 1)) == STAY
    assert relation(stated("SQLite", 1, False), stated("PostgreSQL", 2, False)) == STAY
    assert relation(stated("SQLite", 1, True), stated("PostgreSQL", 2, False)) == STAY
    assert relation(stated("SQLite", 1), stated("PostgreSQL", 2, subject="worker")) == STAY
    assert relation(stated("SQLite", 1), stated("PostgreSQL", 2, predicate="cache")) == STAY


def test_values_of_what_may_have_several_are_not_even_asked_about() -> None:
    def differ(one: str, other: str) -> bool:
        return different_values(Stated(one, 1), Stated(other, 2))

    assert differ("The app uses FastAPI", "The app uses Redis")
    assert differ("앱은 서버에서 FastAPI를 사용한다", "앱은 서버에서 Redis를 사용한다")
    assert not differ("The app uses FastAPI", "The app no longer uses FastAPI")
    assert not differ("The primary store uses SQLite", "The primary store uses PostgreSQL")
    assert not differ("merge PRs yourself", "never merge PRs yourself")
    one, other = (Stated(f"x {value}", 1, "app", "uses", value) for value in ("FastAPI", "Redis"))
    assert different_values(one, other)
    assert not different_values(one._replace(single=True), other)


def test_likeness_sees_through_negation_in_both_languages() -> None:
    assert likeness("merge PRs yourself", "never merge PRs yourself") == 1.0
    for does, does_not in (
        ("PR은 직접 머지해라", "PR은 직접 머지하지 마라"),
        ("PR은 항상 직접 머지해라.", "PR은 절대 직접 머지하지 마라."),
        ("항상 main에 직접 푸시해라", "절대 main에 직접 푸시하지 마세요"),
        ("배포 전에 반드시 승인을 받는다", "배포 전에 승인을 받지 않는다"),
    ):
        assert likeness(does, does_not) >= LISTED_MIN
    assert likeness("PR은 항상 직접 머지해라.", "배포는 항상 직접 하세요.") < LISTED_MIN
    assert likeness("merge PRs yourself", "환불은 한 번만 한다") == 0.0
    assert likeness("", "x") == 0.0


def test_a_particle_does_not_stick_to_a_name() -> None:
    assert tokens("SQLite를 쓴다. Next.js, C++!") == ("sqlite", "를", "쓴다", "next.js", "c++")
