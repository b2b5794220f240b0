"""The verbs about memories, end to end on a real log and index."""

from __future__ import annotations

import io

import pytest

from tests.cli.kit import Person


def test_what_was_remembered_is_found_by_other_particles(person: Person) -> None:
    identity = person.remembers("결제 모듈은 멱등 키를 재사용한다.", "--kind", "decision")
    found = person.gets("search", "멱등 키는 결제에서?")
    assert [item["id"] for item in found["items"]] == [identity]


def test_words_find_the_identifier_that_they_are_parts_of(person: Person) -> None:
    identity = person.remembers("Call getUserById only behind the cache.")
    person.remembers("The user likes tea.")
    assert person.gets("search", "user id")["items"][0]["id"] == identity


def test_the_parts_of_a_score_multiply_to_it(person: Person) -> None:
    person.remembers("Refunds reuse the idempotency key.", "--importance", "8")
    score = person.gets("search", "refunds key")["items"][0]["score"]
    assert score["total"] == pytest.approx(score["importance"] * score["recency"] * score["relevance"])
    said = person.types("search", "refunds key", "--explain")
    assert "importance 8/10 x recency 1.00 (now) x relevance" in said.out


def test_an_edit_replaces_and_the_history_keeps_both(person: Person) -> None:
    old = person.remembers("Use npm.", "--kind", "rule")
    new = person.gets("edit", old[:8], "Use pnpm.")["id"]
    assert [item["text"] for item in person.gets("list")["items"]] == ["Use pnpm."]
    texts = " ".join(step["text"] for step in person.gets("history", new[:8])["items"])
    assert "Use npm." in texts
    assert "Use pnpm." in texts


def test_nothing_forgotten_comes_back_but_by_restore(person: Person) -> None:
    old = person.remembers("Deploy on Fridays.")
    new = person.gets("edit", old, "Deploy on Mondays.")["id"]
    person.gets("forget", new)
    assert person.gets("list")["total"] == 0
    person.gets("restore", new)
    assert [item["text"] for item in person.gets("list")["items"]] == ["Deploy on Mondays."]


def test_forgetting_a_version_in_the_middle_brings_no_older_one_back(person: Person) -> None:
    first = person.remembers("Deploy on Fridays.")
    second = person.gets("edit", first, "Deploy on Mondays.")["id"]
    person.gets("edit", second, "Deploy daily.")
    person.gets("forget", second)
    assert [item["text"] for item in person.gets("list")["items"]] == ["Deploy daily."]


def test_forgetting_an_older_version_says_what_is_still_told(person: Person) -> None:
    first = person.remembers("배포는 금요일에 한다")
    second = person.gets("edit", first, "Deploy on Mondays.")["id"]
    said = person.types("forget", first)
    assert f"what replaced it stays: {second[:6]}: Deploy on Mondays." in said.err
    assert person.types("forget", second).err == ""
    assert person.gets("list")["items"] == []
    assert "stays" not in person.types("forget", first).err


def test_forgetting_after_an_undone_edit_leaves_what_was_brought_back(person: Person) -> None:
    first = person.remembers("Deploy on Fridays.")
    second = person.gets("edit", first, "Deploy on Mondays.")["id"]
    person.gets("restore", first)
    person.gets("forget", second)
    assert [item["text"] for item in person.gets("list")["items"]] == ["Deploy on Fridays."]


def test_an_undone_edit_brings_the_old_text_back(person: Person) -> None:
    old = person.remembers("Deploy on Fridays.")
    person.gets("edit", old, "Deploy on Mondays.")
    person.gets("restore", old)
    assert person.gets("show", old)["status"] == "live"


def test_a_wrong_id_among_several_forgets_nothing(person: Person) -> None:
    identity = person.remembers("Keep me.")
    assert person.types("forget", identity, "ffffffff").code == 10
    assert person.gets("list")["total"] == 1


def test_a_pin_is_taken_back_also_after_an_edit(person: Person) -> None:
    old = person.remembers("Pinned.")
    assert person.gets("pin", old)["pinned"] is True
    new = person.gets("edit", old, "Pinned and edited.")["id"]
    assert person.gets("show", new)["pinned"] is True
    assert person.gets("unpin", new)["pinned"] is False


def test_a_confirmation_counts(person: Person) -> None:
    identity = person.remembers("Still true.")
    assert person.gets("confirm", identity)["confirmations"] == 1


def test_personal_memories_hold_in_every_project(
    person: Person, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.remembers("한국어로 답한다.", "--personal")
    person.remembers("Only here.")
    monkeypatch.chdir(tmp_path_factory.mktemp("other"))
    assert [item["text"] for item in person.gets("list")["items"]] == ["한국어로 답한다."]
    assert person.gets("list", "--all-projects")["total"] == 2


def test_what_holds_until_a_day_in_the_past_is_not_packed(person: Person) -> None:
    person.remembers("The sale ends.", "--kind", "constraint", "--until", "2001-01-01")
    assert "The sale ends." not in person.types("pack", "price of the sale").out


def test_a_pack_is_printed_as_it_is_recorded_with_the_task_last(person: Person) -> None:
    person.remembers("Prices are integers in cents.", "--kind", "constraint")
    said = person.types("pack", "환불 price endpoint")
    assert said.out.endswith("Task: 환불 price endpoint\n")
    assert person.gets("pack", "환불 price endpoint")["text"] == said.out
    assert person.gets("log", "--kind", "context.delivered")["items"][0]["payload"]["event"] == "pack"


def test_text_comes_from_standard_input_too(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("여러 줄\n둘째".encode())))
    identity = person.remembers("-")
    assert person.gets("show", identity)["text"] == "여러 줄\n둘째"


def test_no_text_is_told_with_the_remedy(person: Person) -> None:
    said = person.types("remember")
    assert said.code == 12
    assert said.err.startswith("memorize: No text was given.\nhint: ")


@pytest.mark.parametrize("secret", ["ghp_" + "abcdefghij0123456789" + "ABCDEFGHIJ012345", "AKIA" + "Y6Y6Z7Z7A8A8B9B9"])
def test_a_secret_never_reaches_the_disk_in_any_case(person: Person, secret: str) -> None:
    old = person.remembers(f"The token is {secret} for now.")
    person.gets("edit", old, f"It was {secret} before.")
    for path in person.home.root.rglob("*"):
        assert not path.is_file() or secret.lower().encode() not in path.read_bytes().lower(), path
