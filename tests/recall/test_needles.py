"""The hook's cheap test lets through whatever a rule could fire by."""

from __future__ import annotations

import json

import pytest

from memorize.recall.needles import needles
from memorize.recall.triggers import edit_triggers, triggers_of

OWN = {"deploy": ("make deploy", "./배포.sh now"), "release": ("./release.sh", "python tools/release.py")}
FIRES = [
    ("git-commit", "git commit -m x"),
    ("git-commit", 'cd a && "git" commit'),
    ("git-commit", "'git' commit"),
    ("git-commit", "/usr/bin/git\tcommit"),
    ("git-commit", "git.exe commit"),
    ("git-push", "git \\\n push"),
    ("branch-delete", "git push origin :topic"),
    ("pr-create", "GH_TOKEN=x gh pr create"),
    ("dependency-add", "pip install requests"),
    ("migration-run", "python3 manage.py migrate"),
    ("destructive-delete", "rm -rf build"),
    ("deploy", "make deploy"),
    ("deploy", "./배포.sh now"),
    ("dependency-add", "pip3 install requests"),
    ("migration-run", "./manage.py migrate"),
    ("package-publish", "./gradlew clean publish"),
    ("release", "./release.sh"),
    ("release", "(cd x && ../release.sh)|tee log"),
    ("release", "bash release.sh;ls"),
    ("release", "python3.11 tools/release.py"),
]


@pytest.mark.parametrize(("trigger", "line"), FIRES)
@pytest.mark.parametrize("plain", [True, False])
def test_a_payload_with_a_command_that_fires_holds_one_of_the_words(trigger: str, line: str, plain: bool) -> None:
    assert trigger in triggers_of(line, own=OWN)
    payload = json.dumps({"tool_input": {"command": line}}, ensure_ascii=plain).encode()
    assert any(word in payload for word in needles([trigger], OWN))


@pytest.mark.parametrize(
    ("glob", "path"),
    [("db/이전/*.sql", "db/이전/1.sql"), ("*.ts", "web/cart.ts"), ("**", "x"), ("{a,b}/**", "b/x"), ("[ab]?", "ax")],
)
@pytest.mark.parametrize("plain", [True, False])
def test_a_payload_with_a_file_that_fires_holds_one_of_the_words(glob: str, path: str, plain: bool) -> None:
    assert edit_triggers(path, [f"edit:{glob}"])
    payload = json.dumps({"tool_input": {"file_path": f"/집/{path}"}}, ensure_ascii=plain).encode()
    assert any(word in payload for word in needles([f"edit:{glob}"], {}))


def test_what_speaks_of_no_such_program_passes_by() -> None:
    payload = b'{"cwd":"/home/me/git/forms","transcript_path":"/x/.github/y","tool_input":{"command":"ls -l form"}}'
    assert not any(word in payload for word in needles(["git-commit", "pr-create", "destructive-delete"], {}))
    assert needles([], OWN) == ()


def test_an_alias_that_runs_a_shell_lets_git_fire_anything() -> None:
    assert b"git " not in needles(["pr-create"], {})
    assert b"git " in needles(["pr-create"], {}, ["!gh pr create"])
