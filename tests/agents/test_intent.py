"""What an agent is about to do, by the calls that it makes before a tool."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memorize.agents import agent
from memorize.agents.base import Intent
from memorize.index.place import locate
from memorize.log.spool import Unreadable
from memorize.model import Capture

PATCH = "*** Begin Patch\n*** Add File: 새 파일.md\n+하나\n*** Update File: web/cart.ts\n@@\n-a\n+b\n*** End Patch\n"


def intent(name: str, folder: Path, tool: str, given: Any, event: str = "PreToolUse", **more: Any) -> Intent | None:
    call = {"session_id": "s", "cwd": str(folder), "tool_name": tool, "tool_input": given, **more}
    capture = Capture(name, event, b"\1" * 16, 1, json.dumps(call).encode())
    return agent(name).intent(capture, partial(locate, device="ab" * 16))


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_command_is_told_as_it_stands(tmp_path: Path, name: str) -> None:
    found = intent(name, tmp_path, "Bash", {"command": "git commit -m '하나'"})
    assert found is not None
    assert (found.agent, found.session, found.command, found.targets) == (name, "s", "git commit -m '하나'", ())
    assert found.cwd == str(tmp_path)


@pytest.mark.parametrize(
    ("tool", "key"),
    [("Write", "file_path"), ("Edit", "file_path"), ("MultiEdit", "file_path"), ("NotebookEdit", "notebook_path")],
)
def test_an_editor_of_claude_names_its_file_from_the_top(tmp_path: Path, tool: str, key: str) -> None:
    found = intent("claude", tmp_path, tool, {key: str(tmp_path / "web" / "장바구니.ts"), "content": "x"})
    assert found is not None
    assert ([target.path for target in found.targets], found.command) == (["web/장바구니.ts"], "")


def test_a_patch_of_codex_names_all_its_files(tmp_path: Path) -> None:
    found = intent("codex", tmp_path, "apply_patch", {"command": PATCH})
    assert found is not None
    assert ([target.path for target in found.targets], found.command) == (["새 파일.md", "web/cart.ts"], "")


def test_a_patch_that_codex_takes_out_of_the_shell_is_no_command(tmp_path: Path) -> None:
    found = intent("codex", tmp_path, "Bash", {"command": f"cd web && apply_patch <<'EOF'\n{PATCH}EOF\n"})
    assert found is not None
    assert ([target.path for target in found.targets], found.command) == (["web/새 파일.md", "web/web/cart.ts"], "")


def test_a_command_with_a_patch_in_it_is_both(tmp_path: Path) -> None:
    line = f"git add . && apply_patch <<'EOF'\n{PATCH}EOF\n"
    found = intent("codex", tmp_path, "Bash", {"command": line})
    assert found is not None
    assert (len(found.targets), found.command) == (2, line)


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize(
    ("tool", "given", "more"),
    [
        ("Read", {"file_path": "/x"}, {}),
        ("Bash", {}, {}),
        ("Bash", {"command": "  "}, {}),
        ("Bash", "git commit", {}),
        ("Bash", {"command": {"a": 1}}, {}),
        ("Write", {"file_path": ""}, {}),
        ("Bash", {"command": "git commit"}, {"session_id": ""}),
        ("Bash", {"command": "git commit"}, {"cwd": "relative"}),
        ("Bash", {"command": "git commit"}, {"event": "PostToolUse"}),
    ],
)
def test_every_other_call_is_about_nothing(
    tmp_path: Path, name: str, tool: str, given: Any, more: dict[str, Any]
) -> None:
    assert intent(name, tmp_path, tool, given, **more) is None


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_where_nothing_is_remembered_nothing_is_about_to_be_done(tmp_path: Path, name: str) -> None:
    (tmp_path / ".memorize.toml").write_text("capture = false\n", encoding="utf-8")
    assert intent(name, tmp_path, "Bash", {"command": "git commit"}) is None


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_payload_that_cannot_be_read_is_unreadable(tmp_path: Path, name: str) -> None:
    capture = Capture(name, "PreToolUse", b"\1" * 16, 1, b"git commit")
    with pytest.raises(Unreadable):
        agent(name).intent(capture, partial(locate, device="ab" * 16))


@pytest.mark.parametrize(
    ("words", "command", "shell"),
    [
        (["bash", "-lc", "git push"], "git push", "posix"),
        (["powershell.exe", "-NoProfile", "-Command", "git push; ls"], "git push; ls", "powershell"),
        (["C:\\Windows\\System32\\cmd.exe", "/c", "git push & dir"], "git push & dir", "cmd"),
        (["git", "push"], "git push", "posix"),
    ],
)
def test_a_command_given_as_words_is_read_as_the_shell_in_front_reads_it(
    tmp_path: Path, words: list[str], command: str, shell: str
) -> None:
    found = intent("codex", tmp_path, "Bash", {"command": words})
    assert found is not None
    assert (found.command, found.shell) == (command, shell)


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_of_a_command_longer_than_any_that_runs_only_the_beginning_is_read(tmp_path: Path, name: str) -> None:
    found = intent(name, tmp_path, "Bash", {"command": "git push; " + "ls; " * 500_000})
    assert found is not None
    assert found.command.startswith("git push; ls; ")
    assert len(found.command) == 128 * 1024
