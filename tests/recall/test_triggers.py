"""Which command lines and edits fire which triggers."""

from __future__ import annotations

import pytest

from memorize.recall.triggers import edit_triggers, is_name, normal_name, own_triggers, triggers_of
from memorize.recall.words import Shell
from tests.recall.command_lines import ALIASES, CMD, OWN, POSIX, POWERSHELL


def _check(table: tuple[tuple[str, str], ...], shell: Shell) -> list[str]:
    wrong = []
    for fires, line in table:
        found = triggers_of(line, aliases=ALIASES, own=OWN, shell=shell)
        if found != tuple(fires.split()):
            wrong.append(f"{line!r} fires {' '.join(found) or 'nothing'} instead of {fires or 'nothing'}")
    return wrong


@pytest.mark.parametrize(("table", "shell"), [(POSIX, "posix"), (POWERSHELL, "powershell"), (CMD, "cmd")])
def test_every_line_of_the_table_fires_exactly_its_triggers(table: tuple[tuple[str, str], ...], shell: Shell) -> None:
    assert _check(table, shell) == []


@pytest.mark.parametrize(
    ("glob", "path", "yes"),
    [
        ("migrations/*", "migrations/0001.sql", True),
        ("migrations/*", "migrations/old/0001.sql", True),
        ("migrations/*", "app/migrations/0001.sql", False),
        ("migrations/*", "migrations", False),
        ("**/migrations/*", "app/migrations/0001.sql", True),
        ("**/migrations/*", "migrations/0001.sql", True),
        ("migrations/", "migrations/a/b", True),
        ("migrations/", "migrations", False),
        ("migrations", "app/migrations/0001.sql", True),
        ("/migrations", "app/migrations/0001.sql", False),
        ("*.sql", "a/b/c.sql", True),
        ("*.sql", "a.sqlx", False),
        ("src/**/*.ts", "src/a.ts", True),
        ("src/**/*.ts", "src/a/b/c.ts", True),
        ("src/**/*.ts", "srcs/a.ts", False),
        ("src/**", "src/a/b", True),
        ("src/*.ts", "src/a/b.ts", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[!a-c]x", "dx", True),
        ("[!a-c]x", "bx", False),
        ("[]x]y", "]y", True),
        ("*.{ts,tsx}", "web/a.tsx", True),
        ("{a,b/{c,d}}/x", "b/d/x", True),
        ("{a}", "{a}", True),
        ("a\\*b", "a*b", True),
        ("a\\*b", "axb", False),
        ("마이그\\*", "마이그/1.sql", True),
        ("src\\**\\*.ts", "src/a/b.ts", True),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("설정/*.yml", "설정/운영.yml", True),
        ("설정/*", "설정/a", True),
        ("**", "anything/at/all", True),
        ("*", "a/b", True),
        ("./a/b", "a/b", True),
        ("a/b", "./a//b", True),
        ("a/b", "a\\b", True),
        ("[", "[", True),
        ("", "a", False),
        ("/", "a", False),
    ],
)
def test_a_glob_means_what_it_means_in_a_gitignore(glob: str, path: str, yes: bool) -> None:
    name = normal_name(f"edit:{glob}")
    assert edit_triggers(path, ["git-commit", name]) == ((name,) if yes else ())


def test_no_glob_is_slow_on_any_path() -> None:
    assert edit_triggers("a" * 4_000, ["edit:" + "*a" * 90 + "b"]) == ()
    assert edit_triggers("a/" * 2_000, ["edit:" + "**/a/" * 40 + "b"]) == ()


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Git-Commit", "git-commit"),
        (" git  push ", "git-push"),
        ("배포", "배포"),
        ("\u1107\u1162\u1111\u1169", "배포"),
        ("EDIT: src/A.py ", "edit:src/A.py"),
        ("edit:.\\src\\a", "edit:src/a"),
    ],
)
def test_names_are_compared_in_one_form(typed: str, name: str) -> None:
    assert normal_name(typed) == name
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "-", "a b", "a;b", "edit:", "edit:\n", "x" * 41, "edit:" + "x" * 201, "a--b"])
def test_what_is_no_name_is_known_as_such(name: str) -> None:
    assert not is_name(name)


def test_a_project_declares_its_own_triggers() -> None:
    said = {
        "Deploy": ["make  deploy", 7, " "],
        "배포": "fly deploy",
        "bad name!": ["x"],
        "edit:x": ["y"],
        "empty": [],
        "odd": {"a": 1},
    }
    assert own_triggers({"triggers": said}) == {"deploy": ("make deploy",), "배포": ("fly deploy",)}
    assert own_triggers({"triggers": "deploy"}) == {}
    assert own_triggers({}) == {}
