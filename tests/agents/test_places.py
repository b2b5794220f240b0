"""Edits in real repositories and worktrees, with the places that the index room finds."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path

from memorize.agents import agent
from memorize.index.place import locate
from memorize.model import Capture, Draft


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def edit(cwd: Path, path: Path) -> list[Draft]:
    call = {
        "session_id": "s",
        "cwd": str(cwd),
        "tool_name": "Write",
        "tool_input": {"file_path": str(path), "content": "x"},
    }
    capture = Capture("claude", "PostToolUse", b"\1" * 16, 1, json.dumps(call).encode())
    return agent("claude").parse(capture, partial(locate, device="ab" * 16))


def test_a_file_is_named_as_its_own_worktree_names_it(tmp_path: Path) -> None:
    top = tmp_path / "저장소 main"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "commit", "-q", "--allow-empty", "-m", "first")
    tree = top / ".claude" / "worktrees" / "ui"
    git(top, "worktree", "add", "-q", "-b", "ui-cart", str(tree))
    (in_tree,) = edit(top, tree / "web" / "cart.ts")
    (in_top,) = edit(top / "docs", top / "web" / "cart.ts")
    assert in_tree.payload["path"] == in_top.payload["path"] == "web/cart.ts"
    assert (in_tree.payload["branch"], in_top.payload["branch"]) == ("ui-cart", "main")
    assert in_tree.payload["project"] == in_top.payload["project"]
    assert in_top.payload["dir"] == "docs"


def test_a_folder_without_git_names_its_files_from_itself(tmp_path: Path) -> None:
    (draft,) = edit(tmp_path, tmp_path / "가" / "b.txt")
    assert draft.payload["path"] == "가/b.txt"


def test_a_file_below_a_marker_that_says_no_is_not_told(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / ".memorize.toml").write_text("capture = false\n", encoding="utf-8")
    assert edit(tmp_path, secret / "plan.md") == []
    assert edit(secret, tmp_path / "open.md") == []
