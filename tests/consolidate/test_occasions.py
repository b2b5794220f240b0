"""Orders of a person about an action get the action's trigger, and mere mentions get none."""

from __future__ import annotations

import pytest

from memorize.consolidate.rules import extract
from memorize.consolidate.statements import statements
from tests.consolidate.kit import said, window

ORDERS = [
    ("Always add a Signed-off-by line when committing.", "rule", "git-commit"),
    ("When committing, always write the message in English.", "rule", "git-commit"),
    ("Before pushing run the full test suite.", "rule", "git-push"),
    ("Before pushing, run `make test`.", "rule", "git-push"),
    ("Run the linter before every commit.", "rule", "git-commit"),
    ("Always squash when merging a pull request.", "rule", "pr-merge"),
    ("When opening a PR, always link the issue.", "rule", "pr-create"),
    ("Before running `terraform apply` always run plan.", "rule", "infra-apply"),
    ("Whenever you add a dependency, always ask first.", "rule", "dependency-add"),
    ("Never force push to main.", "constraint", "git-push"),
    ("Never run `git push --force`.", "constraint", "git-push"),
    ("Do not commit generated files.", "constraint", "git-commit"),
    ("Commit messages must be in the imperative mood.", "constraint", "git-commit"),
    ("We must never rebase shared branches.", "constraint", "git-rebase"),
    ("커밋할 때는 항상 린트를 돌려.", "rule", "git-commit"),
    ("커밋 전에는 항상 테스트를 실행해야 합니다.", "rule", "git-commit"),
    ("푸시하기 전에는 반드시 테스트를 돌려 주세요.", "rule", "git-push"),
    ("PR 올릴 때는 항상 스크린샷을 넣어 주세요.", "rule", "pr-create"),
    ("PR을 머지하기 전에는 반드시 리뷰를 받아야 한다.", "rule", "pr-merge"),
    ("의존성을 추가할 때는 반드시 먼저 물어봐 주세요.", "rule", "dependency-add"),
    ("`npm publish` 전에는 반드시 변경 기록을 확인해 주세요.", "rule", "package-publish"),
    ("커밋 메시지는 항상 영어로 작성해야 합니다.", "preference", "git-commit"),
    ("PR은 항상 직접 머지해라.", "constraint", "pr-merge"),
    ("PR은 절대 직접 머지하지 마라.", "constraint", "pr-merge"),
    ("풀 리퀘스트를 절대 혼자 병합하지 마세요.", "constraint", "pr-merge"),
    ("main 브랜치에 직접 푸시하지 마세요.", "constraint", "git-push"),
    ("Never add yourself as co-author in commits.", "constraint", "git-commit"),
    ("Please always use conventional commits.", "constraint", "git-commit"),
    ("Never run git reset --hard without asking me.", "constraint", "git-reset"),
    ("절대 git reset --hard 하지 마.", "constraint", "git-reset"),
    ("Always run terraform plan before terraform apply.", "rule", "infra-apply"),
    ("Never run kubectl apply against prod without asking.", "constraint", "infra-apply"),
    ("terraform apply 하기 전에는 항상 plan을 보여줘.", "rule", "infra-apply"),
    ("Always ask before deleting files.", "rule", "destructive-delete"),
    ("Never use rm -rf.", "constraint", "destructive-delete"),
    ("절대 rm -rf 쓰지 마.", "constraint", "destructive-delete"),
    ("파일을 삭제하기 전에는 항상 물어봐.", "rule", "destructive-delete"),
]
MENTIONS = [
    "Prices are integers in cents everywhere, never floats.",
    "Every migration must be reversible.",
    "The queue worker must always commit its offsets.",
    "We always merge two lists when the cache is cold.",
    "Tokens never leave the server.",
    "Did you push before the meeting?",
    "Can you run the tests before pushing?",
    "Please commit this now and push it.",
    "This time, run the tests before pushing.",
    "I saw the failure when pushing to staging yesterday.",
    "가격은 반드시 정수로 저장해야 합니다.",
    "이제 커밋하고 푸시해 주세요.",
    "커밋하기 전에 테스트 한번 돌려줘.",
    "Always push back when I am wrong.",
    "Never publish personal data.",
    "Never delete the trailing newline.",
    "Always use a two-phase commit for the queue.",
    "반드시 파일은 UTF-8로 저장해야 합니다.",
]


@pytest.mark.parametrize(("sentence", "kind", "trigger"), ORDERS)
def test_an_order_about_an_action_is_told_before_the_action(sentence: str, kind: str, trigger: str) -> None:
    assert [(one.kind, one.triggers) for one in statements(sentence)] == [(kind, (trigger,))]


@pytest.mark.parametrize("sentence", MENTIONS)
def test_a_mention_of_an_action_has_no_trigger(sentence: str) -> None:
    assert [one for one in statements(sentence) if one.triggers] == []


def test_what_the_person_typed_becomes_a_rule_with_its_trigger() -> None:
    found = extract(window(said(1, "커밋할 때는 항상 린트를 돌려 주세요.")))
    assert [(one.kind, one.trust, one.triggers) for one in found if one.triggers] == [("rule", "user", ("git-commit",))]
