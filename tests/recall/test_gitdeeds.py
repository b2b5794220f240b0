"""Which git commands can take along what others did, and what they reach: a table of command lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.recall.gitdeeds import BRANCH, TREE, WORKTREE, Deed, deeds

CWD = "/저장소/check out"

TABLE: list[tuple[str, list[tuple[str, str, tuple[str, ...]]]]] = [
    ("git reset --hard", [("git reset --hard", TREE, ())]),
    ("git reset --hard origin/main", [("git reset --hard", TREE, ())]),
    ("sudo git -c core.x=y reset --hard HEAD~2", [("git reset --hard", TREE, ())]),
    ("git reset --soft HEAD~1", []),
    ("git reset", []),
    ("git reset --hard --help", []),
    ("git clean -fd", [("git clean", TREE, ())]),
    ("git clean -xdff build", [("git clean", TREE, ("build",))]),
    ("git clean --force -e '*.log'", [("git clean", TREE, ())]),
    ("git clean -nfd", []),
    ("git clean --dry-run -f", []),
    ("git clean -d", []),
    ("git checkout -- web/cart.ts", [("git checkout of files", TREE, ("web/cart.ts",))]),
    ("git checkout HEAD -- .", [("git checkout of files", TREE, (".",))]),
    ("git checkout .", [("git checkout of files", TREE, (".",))]),
    ("git checkout '웹/장바구니.ts'", [("git checkout of files", TREE, ("웹/장바구니.ts",))]),
    ("git checkout -f main", [("git checkout --force", TREE, ())]),
    ("git checkout -b topic main", []),
    ("git checkout", []),
    ("git restore .", [("git restore", TREE, (".",))]),
    ("git restore --source HEAD~1 a.txt", [("git restore", TREE, ("a.txt",))]),
    ("git restore --staged a.txt", []),
    ("git restore -SW a.txt", [("git restore", TREE, ("a.txt",))]),
    ("git switch main", []),
    ("git switch --discard-changes main", [("git switch --discard-changes", TREE, ())]),
    ("git stash", [("git stash push", TREE, ())]),
    ("git stash push -m 'wip: x' -- web", [("git stash push", TREE, ("web",))]),
    ("git stash pop", [("git stash pop", TREE, ())]),
    ("git stash list", []),
    ("git stash show -p", []),
    ("git branch -D topic other", [("git branch -D", BRANCH, ("topic", "other"))]),
    ("git branch --delete --force 주제", [("git branch -D", BRANCH, ("주제",))]),
    ("git branch -d topic", []),
    ("git branch -D", []),
    ("git rebase main", [("git rebase", BRANCH, ())]),
    ("git rebase -i HEAD~3", [("git rebase", BRANCH, ())]),
    ("git rebase --continue", []),
    ("git rebase --abort", []),
    ("git worktree remove ../ui", [("git worktree remove", WORKTREE, ("../ui",))]),
    ("git worktree remove --force -- ../ui", [("git worktree remove", WORKTREE, ("../ui",))]),
    ("git worktree add ../ui", []),
    ("git worktree list", []),
    ("git push --force", [("git push --force", BRANCH, ())]),
    ("git push -fu origin topic", [("git push --force", BRANCH, ("topic",))]),
    ("git push --force-with-lease=topic origin HEAD:refs/heads/topic", [("git push --force", BRANCH, ("topic",))]),
    ("git push origin +topic:main", [("git push --force", BRANCH, ("main",))]),
    ("git push --force origin HEAD", [("git push --force", BRANCH, ())]),
    ("git push origin main", []),
    ("git push -n --force", []),
    ("git push --dry-run --force", []),
    ("git status && git reset --hard; git stash", [("git reset --hard", TREE, ()), ("git stash push", TREE, ())]),
    ("bash -c 'git reset --hard'", [("git reset --hard", TREE, ())]),
    ("echo git reset --hard", []),
    ("cat <<'EOF'\ngit reset --hard\nEOF", []),
    ("git log --grep='reset --hard'", []),
    ('git checkout -- "$FILE"', [("git checkout of files", TREE, ("$",))]),
    ("ls", []),
    ("", []),
]


@pytest.mark.parametrize(("line", "wanted"), TABLE, ids=[line or "nothing" for line, _ in TABLE])
def test_a_command_line_does_what_the_table_says(line: str, wanted: list[tuple[str, str, tuple[str, ...]]]) -> None:
    assert [(deed.label, deed.reach, deed.names) for deed in deeds(line, CWD)] == wanted


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("git stash", CWD),
        ("git -C ../ui stash", "/저장소/ui"),
        ("cd ../ui && git stash", "/저장소/ui"),
        ("cd /srv/x; git -C y stash", "/srv/x/y"),
        ('cd "$TOP" && git stash', CWD),
    ],
)
def test_a_deed_is_done_where_the_line_went(line: str, folder: str) -> None:
    assert [deed.folder for deed in deeds(line, CWD)] == [folder]


@pytest.mark.parametrize(
    ("names", "inside", "wanted"),
    [
        ((".",), "", ("",)),
        ((".",), "web", ("web",)),
        (("cart.ts", "../api"), "web", ("web/cart.ts", "api")),
        (("/저장소/check out/web/a.ts",), "docs", ("web/a.ts",)),
        ((":/web",), "docs", ("web",)),
        (("web/*.ts",), "", ("",)),
        (("$",), "", ("",)),
    ],
)
def test_paths_are_read_from_the_top_of_the_checkout(
    names: tuple[str, ...], inside: str, wanted: tuple[str, ...]
) -> None:
    assert Deed("git clean", TREE, names, CWD).within(CWD, inside).names == wanted


@given(st.text(alphabet="git reset --hard-fD$'\"\\;&|\n()<>가/.+:", max_size=60))
def test_no_line_is_an_error(line: str) -> None:
    for deed in deeds(f"git {line}", CWD):
        deed.within(CWD, "web")
