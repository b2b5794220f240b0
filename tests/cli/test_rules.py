"""Rules for actions at the command line: given, listed, corrected, tried out."""

from __future__ import annotations

import subprocess

import pytest

from memorize.recall.deeds import BUILT_IN
from tests.cli.kit import Person

MARKER = '[triggers]\ndeploy = ["make deploy", "fly deploy"]\n"배포" = "kustomize build"\n'


def told(person: Person, action: str) -> list[str]:
    """Return the texts that an agent is told before an action."""
    return [item["text"] for item in person.gets("rules", action)["items"]]


def test_a_rule_is_given_for_an_action_and_told_before_it(person: Person) -> None:
    said = person.types("remember", "--on", "Git-Commit", "--on", "pr-create", "커밋은 항상 서명한다.")
    assert said.code == 0
    assert "rule, importance 8; told before git-commit, pr-create" in said.out
    assert told(person, "git-commit") == ["커밋은 항상 서명한다."]
    assert told(person, "git push && gh pr create --fill") == ["커밋은 항상 서명한다."]
    assert told(person, "git log") == []
    found = person.gets("rules", "cd x && git commit -m 'y'; make deploy")
    assert found["fires"] == ["git-commit"]
    assert found["items"][0]["triggers"] == ["git-commit", "pr-create"]
    assert found["total"] == 1


def test_a_kind_that_was_asked_for_is_kept(person: Person) -> None:
    person.remembers("Main is protected.", "--on", "git-push", "--kind", "constraint")
    assert [item["kind"] for item in person.gets("rules")["items"]] == ["constraint"]


@pytest.mark.parametrize(
    ("typed", "near"), [("gitcommit", '"git-commit"'), ("publish", '"package-publish"'), ("배퍼", "no known one")]
)
def test_an_unknown_action_is_refused_with_the_nearest_known_one(person: Person, typed: str, near: str) -> None:
    said = person.types("remember", "--on", typed, "x")
    assert said.code == 17
    assert typed in said.err
    assert near in said.err
    assert all(name in said.err for name in BUILT_IN)
    assert person.gets("list")["total"] == 0


def test_a_project_has_actions_of_its_own(person: Person) -> None:
    assert person.types("remember", "--on", "deploy", "x").code == 17
    (person.project / ".memorize.toml").write_text(MARKER, encoding="utf-8")
    person.remembers("Ask before a deployment.", "--on", "deploy", "--on", "배포")
    assert told(person, "fly deploy --app x") == ["Ask before a deployment."]
    assert told(person, "kustomize build .") == ["Ask before a deployment."]
    assert told(person, "make test") == []


def test_an_alias_of_git_fires_like_what_it_stands_for(person: Person) -> None:
    subprocess.run(["git", "init", "-q", str(person.project)], check=True)
    subprocess.run(["git", "-C", str(person.project), "config", "alias.ci", "commit -v"], check=True)
    person.remembers("Sign commits.", "--on", "git-commit")
    assert told(person, "git ci -m x") == ["Sign commits."]


def test_a_rule_for_files_is_told_before_an_edit(person: Person) -> None:
    person.remembers("Ask first.", "--on", "edit:migrations/*")
    assert told(person, "edit:migrations/0001.sql") == ["Ask first."]
    assert told(person, "edit:README.md") == []


def test_a_corrected_rule_is_told_in_its_new_words_only_and_its_history_shows_both(person: Person) -> None:
    old = person.remembers("Commit with -s.", "--on", "git-commit")
    new = person.gets("edit", old, "Commit with -S.")["id"]
    assert told(person, "git-commit") == ["Commit with -S."]
    steps = person.gets("history", new)["items"]
    assert [step["text"] for step in steps if step["what"] == "formed"] == ["Commit with -s.", "Commit with -S."]
    person.types("edit", new, "--on", "git-push")
    assert told(person, "git-commit") == []
    assert told(person, "git-push") == ["Commit with -S."]
    last = person.gets("rules")["items"][0]["id"]
    person.types("edit", last, "--never")
    assert person.gets("rules")["total"] == 0
    assert person.gets("list")["items"][0]["text"] == "Commit with -S."


def test_a_forgotten_rule_is_told_no_more(person: Person) -> None:
    identity = person.remembers("Sign commits.", "--on", "git-commit")
    person.types("forget", identity)
    assert told(person, "git-commit") == []


def test_the_project_comes_before_the_person_and_other_projects_stay_silent(
    person: Person, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    person.remembers("In the other project.", "--on", "git-push", "--project", str(other))
    person.remembers("Here.", "--on", "git-push")
    person.remembers("Everywhere.", "--on", "git-push", "--personal")
    assert told(person, "git-push") == ["Here.", "Everywhere."]
    assert [item["text"] for item in person.gets("rules")["items"]] == ["Here.", "Everywhere."]
    everything = person.gets("rules", "--all-projects")["items"]
    assert [item["text"] for item in everything] == ["Everywhere.", "Here.", "In the other project."]


def test_the_list_shows_when_a_rule_is_told_and_whose_it_is(person: Person) -> None:
    person.remembers("한 줄 제목", "--on", "git-commit")
    said = person.types("rules")
    assert "한 줄 제목" in said.out
    assert "before git-commit  (user, project)" in said.out
    assert "1 rule." in said.err
    assert "fires nothing" in person.types("rules", "ls").err
    assert 'did you mean "git-commit"?' in person.types("rules", "git-comit").err
    assert 'No rule. Give one: memorize remember --on pr-merge "..."' in person.types("rules", "gh pr merge").err


@pytest.mark.parametrize(
    ("sentence", "action"),
    [
        ("Always run the linter before committing.", "git-commit"),
        ("커밋할 때는 항상 영어 제목을 써.", "git-commit"),
        ("푸시하기 전에는 반드시 테스트를 돌려.", "git-push"),
    ],
)
def test_an_order_that_names_its_moment_is_told_then_unless_its_kind_was_given(
    person: Person, sentence: str, action: str
) -> None:
    said = person.types("remember", sentence)
    assert f"told before {action}" in said.out
    assert "--never" in said.err
    assert told(person, action) == [sentence]
    person.remembers("We chose SQLite. Never push to main.")
    person.remembers(f"{sentence} 둘", "--kind", "fact")
    assert told(person, action) == [sentence]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("rm -rf", '"destructive-delete"'),
        ("git-commit,git-push", "--on git-commit --on git-push"),
        ("edit", '"edit:migrations/*"'),
        ("edit:", '"edit:migrations/*"'),
        ("설정/*.yml", '"edit:migrations/*"'),
        ("edit:C:\\work\\x\\*", '"edit:migrations/*"'),
    ],
)
def test_what_was_meant_is_said_where_it_can_be_told(person: Person, typed: str, meant: str) -> None:
    said = person.types("remember", "--on", typed, "x")
    assert said.code == 17
    assert meant in said.err


def test_a_glob_may_be_typed_as_on_windows_or_with_the_whole_path(person: Person) -> None:
    person.remembers("One.", "--on", "edit:migrations\\*")
    person.remembers("Two.", "--on", f"edit:{person.project}/app/[id]/쪽.tsx")
    assert told(person, "edit:migrations/1.sql") == ["One."]
    assert told(person, "edit:app/[id]/쪽.tsx") == ["Two."]


def test_a_file_without_its_mark_is_told_how_to_ask(person: Person) -> None:
    assert 'memorize rules "edit:migrations/1.sql"' in person.types("rules", "migrations/1.sql").err


def test_a_marker_that_is_no_toml_is_named_where_a_trigger_is_missing(person: Person) -> None:
    (person.project / ".memorize.toml").write_text('[triggers\ndeploy = "make 배포"\n', encoding="utf-8")
    said = person.types("remember", "--on", "deploy", "x")
    assert said.code == 17
    assert "cannot be read" in said.err
    assert "cannot be read" in person.types("doctor").out
