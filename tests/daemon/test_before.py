"""What an agent is told before a tool runs: the rules for it, what other sessions do, what failed before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memorize.bootstrap import App
from memorize.log.spool import put_batch, put_capture
from memorize.model import OBSERVED_EDIT, Draft
from memorize.recall.changes import edited, formed, remembered
from tests.capture.kit import modules_loaded
from tests.daemon.kit import PATIENCE_S, Place, until

RULE = "커밋 제목은 한 줄로, conventional prefix, no emoji"


def context(answer: str) -> str:
    """Return the text inside an answer, which must be of the one form that decides nothing."""
    if not answer:
        return ""
    found = json.loads(answer)
    assert set(found) == {"hookSpecificOutput"}
    assert set(found["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert found["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
    return str(found["hookSpecificOutput"]["additionalContext"])


def before(place: Place, session: str, tool: str, given: dict[str, Any], **more: object) -> str:
    """Ask as the hook does before a tool; return the text that reaches the model, "" for silence."""
    return context(place.ask("PreToolUse", session, tool_name=tool, tool_input=given, **more))


def told(place: Place, session: str, tool: str, given: dict[str, Any], **more: object) -> str:
    """Ask until something is said: on a busy machine an answer may come too late, and then it is not given."""
    return context(place.told("PreToolUse", session, tool_name=tool, tool_input=given, **more))


def run(command: str) -> dict[str, Any]:
    return {"command": command}


def write(place: Place, path: str) -> dict[str, Any]:
    return {"file_path": str(place.project / path), "content": "나\n"}


def edits(place: Place, session: str, path: str, **more: object) -> None:
    given = {"file_path": str(place.project / path), "content": "가\n다\n"}
    response = {"type": "create", "filePath": given["file_path"], "structuredPatch": []}
    place.capture("PostToolUse", session, tool_name="Write", tool_input=given, tool_response=response, **more)


def fails(place: Place, session: str, command: str) -> None:
    error = "Exit code 2\nbuilding\nmake: *** 규칙이 없습니다. Stop."
    place.capture("PostToolUseFailure", session, tool_name="Bash", tool_input=run(command), error=error)


def works(place: Place, session: str, command: str) -> None:
    response = {"stdout": "ok", "stderr": "", "interrupted": False}
    place.capture("PostToolUse", session, tool_name="Bash", tool_input=run(command), tool_response=response)


def remember(place: Place, text: str, *triggers: str, scope: str = "project", replaces: bytes = b"") -> bytes:
    """Store a rule as a person does."""
    with place.app() as parts:
        at = parts.place(str(place.project))
        rule = formed(text, "rule", scope, at.project, 8, triggers=list(triggers))
        batch = edited(rule, [replaces]) if replaces else remembered(rule)
        identity = parts.append(batch, place=at)[0]
        parts.changed(scope, at.project)
    return identity


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def trees(place: Place) -> Path:
    """Make the project a repository; return a second worktree of it, on branch ui-cart."""
    git(place.project, "init", "-q", "-b", "main")
    git(place.project, "commit", "-q", "--allow-empty", "-m", "첫 커밋")
    tree = place.project.parent / "결제-cart"
    git(place.project, "worktree", "add", "-q", "-b", "ui-cart", str(tree))
    return tree


def test_a_rule_comes_right_before_its_command_each_time_and_is_noted(place: Place) -> None:
    identity = remember(place, RULE, "git-commit")
    place.serve()
    assert before(place, "s", "Bash", run("git status")) == ""
    assert before(place, "s", "Bash", run("git log --grep='git commit'")) == ""
    for _ in range(2):
        said = told(place, "s", "Bash", run("git add -A && git commit -m x"))
        assert RULE in said
    place.drained()
    records = until(lambda: place.events("context.delivered"), "the delivery in the log")
    for record in records:
        assert record.payload
        assert record.payload["event"] == "PreToolUse"
        assert [item[:2] for item in record.payload["items"]] == [[identity, "action"]]


def test_a_corrected_rule_is_the_only_one_that_is_told(place: Place) -> None:
    old = remember(place, "커밋 제목에 이모지를 쓴다", "git-commit")
    place.serve()
    assert "이모지를 쓴다" in told(place, "하나", "Bash", run("git commit"))
    remember(place, RULE, "git-commit", replaces=old)
    said = told(place, "둘", "Bash", run("git commit"))
    assert RULE in said
    assert "이모지를 쓴다" not in said


def test_a_rule_for_files_comes_before_an_edit_of_such_a_file(place: Place) -> None:
    remember(place, "Never change a 마이그레이션 that was released.", "edit:db/이전/*.sql")
    place.serve()
    assert "Never change" in told(place, "s", "Write", write(place, "db/이전/1.sql"))
    assert before(place, "s", "Write", write(place, "db/1.sql")) == ""


def test_a_rule_for_files_is_silent_about_files_outside_the_repository(place: Place, tmp_path: Path) -> None:
    remember(place, "SQL in capitals.", "edit:*.sql")
    place.serve()
    assert before(place, "s", "Write", write(place, str(tmp_path / "elsewhere" / "a.sql"))) == ""
    assert "SQL in capitals." in told(place, "s", "Write", write(place, "db/a.sql"))


def test_a_personal_rule_holds_in_every_project(place: Place) -> None:
    remember(place, RULE, "git-push", scope="personal")
    place.serve()
    assert RULE in told(place, "s", "Bash", run("sudo -u me git -C /x push --tags"))


def test_nothing_is_said_of_a_place_that_is_not_remembered_or_a_call_that_cannot_be_read(place: Place) -> None:
    remember(place, RULE, "git-commit", scope="personal")
    place.serve()
    told(place, "s", "Bash", run("git commit"))
    assert before(place, "s", "Bash", {"command": ["git", "commit"]}) == ""
    assert before(place, "", "Bash", run("git commit")) == ""
    assert before(place, "s", "WebFetch", run("git commit")) == ""
    (place.project / ".memorize.toml").write_text("capture = false\n", encoding="utf-8")
    until(lambda: before(place, "s", "Bash", run("git commit")) == "", "silence where capture is off")


def test_a_file_that_another_live_session_wrote_is_warned_of_once_until_it_changes_again(place: Place) -> None:
    place.serve()
    place.capture("SessionStart", "하나", source="startup")
    edits(place, "하나", "web/장바구니.ts")
    place.drained()
    said = told(place, "둘", "Edit", write(place, "web/장바구니.ts"))
    assert "web/장바구니.ts was created" in said
    assert "another live session (Claude Code), +2 -0 lines" in said
    assert "Read the file again" in said
    assert before(place, "둘", "Edit", write(place, "web/장바구니.ts")) == ""
    assert before(place, "둘", "Edit", write(place, "web/다른.ts")) == ""
    place.drained()
    edits(place, "하나", "web/장바구니.ts")
    place.drained()
    assert "in 2 edits" in told(place, "둘", "Edit", write(place, "web/장바구니.ts"))
    place.drained()
    records = until(lambda: place.events("conflict.warned")[:2], "two records")
    assert [one.payload["items"][0][:2] for one in records if one.payload] == [["file", "web/장바구니.ts"]] * 2
    assert {one.payload["session"] for one in records if one.payload} == {"둘"}


def test_after_a_restart_the_daemon_knows_what_was_warned_of(place: Place) -> None:
    place.serve()
    edits(place, "하나", "a.txt")
    place.drained()
    told(place, "둘", "Edit", write(place, "a.txt"))
    place.drained()
    place.end()
    place.serve()
    assert before(place, "둘", "Edit", write(place, "a.txt")) == ""
    assert told(place, "셋", "Edit", write(place, "a.txt"))


def test_an_edit_that_is_only_announced_is_warned_of_too(place: Place) -> None:
    place.serve()
    place.capture("SessionStart", "하나", source="startup")
    place.drained()
    assert before(place, "하나", "Write", write(place, "web/cart.ts")) == ""
    said = told(place, "둘", "Write", write(place, "web/cart.ts"))
    assert "is being edited" in said


def test_an_edit_announced_in_another_project_is_nothing_to_this_one(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "web").mkdir(parents=True)
    place.serve()
    place.capture("SessionStart", "하나", source="startup")
    place.drained()
    given = {"file_path": str(other / "web" / "cart.ts"), "content": "x"}
    assert before(place, "하나", "Write", given, cwd=str(other)) == ""
    assert before(place, "둘", "Write", write(place, "web/cart.ts")) == ""


def test_two_worktrees_are_one_project_and_told_of_each_other(place: Place, trees: Path) -> None:
    place.serve()
    edits(place, "하나", "web/cart.ts")
    place.drained()
    there = {"file_path": str(trees / "web" / "cart.ts"), "content": "x"}
    said = told(place, "둘", "Write", there, cwd=str(trees))
    assert "Claude Code, branch main" in said
    assert "meet in a merge" in said
    start = place.told("SessionStart", "셋", source="startup", cwd=str(trees))
    assert "Also working here now" in start
    assert "Claude Code on branch main" in start
    assert "edited web/cart.ts" in start


def test_a_session_that_has_ended_counts_only_on_another_branch(place: Place, trees: Path) -> None:
    place.serve()
    edits(place, "하나", "web/cart.ts")
    place.capture("SessionEnd", "하나", reason="other")
    place.drained()
    assert before(place, "둘", "Write", write(place, "web/cart.ts")) == ""
    there = {"file_path": str(trees / "web" / "cart.ts"), "content": "x"}
    assert "a session that has ended since" in told(place, "둘", "Write", there, cwd=str(trees))
    assert "Also working" not in place.ask("SessionStart", "셋", source="startup")


def test_who_works_alone_is_told_of_nobody(place: Place) -> None:
    place.serve()
    edits(place, "s", "a.txt")
    place.drained()
    assert before(place, "s", "Write", write(place, "a.txt")) == ""
    assert "Also working" not in place.ask("SessionStart", "s", source="resume")


def test_names_that_differ_in_case_are_one_file_where_git_says_so(place: Place, trees: Path) -> None:
    place.serve()
    edits(place, "하나", "web/Cart.ts")
    place.drained()
    assert before(place, "둘", "Write", write(place, "web/cart.ts")) == ""
    git(place.project, "config", "core.ignorecase", "true")
    assert "web/cart.ts was created" in told(place, "셋", "Write", write(place, "web/cart.ts"))


def test_commands_that_could_take_anothers_work_along_are_warned_of(place: Place, trees: Path) -> None:
    place.serve()
    place.capture("SessionStart", "하나", source="startup")
    edits(place, "하나", "web/cart.ts")
    place.drained()
    for command in (
        "git reset --hard origin/main",
        "git clean -fd",
        "git checkout -- web",
        "git stash",
        "git rebase main",
        "git push --force-with-lease",
        f"cd {trees} && git branch -D main",
        f"cd {trees} && git worktree remove ../결제",
    ):
        said = told(place, "둘", "Bash", run(command))
        assert "web/cart.ts" in said, command
        assert "another live session (Claude Code, branch main" in said
    for command in ("git reset --soft HEAD~1", "git checkout -- api", "git stash list", "git push", "git clean -n"):
        assert before(place, "둘", "Bash", run(command)) == "", command
    assert before(place, "둘", "Bash", run("git reset --hard"), cwd=str(trees)) == ""
    assert before(place, "하나", "Bash", run("git reset --hard")) == ""


def test_a_command_that_failed_and_never_succeeded_since_is_told_once_with_its_failure(place: Place) -> None:
    place.serve()
    fails(place, "하나", "make  deploy")
    place.drained()
    said = told(place, "둘", "Bash", run("make deploy"))
    assert "`make deploy` failed" in said
    assert "in a session of Claude Code, exit 2: make: *** 규칙이 없습니다" in said
    assert before(place, "둘", "Bash", run("make deploy")) == ""
    assert before(place, "하나", "Bash", run("make deploy")) == ""  # it was there
    works(place, "둘", "make deploy")
    place.drained()
    assert before(place, "셋", "Bash", run("make deploy")) == ""


def test_an_erased_edit_is_warned_of_no_more(place: Place) -> None:
    place.serve()
    edits(place, "하나", "a.txt")
    place.drained()
    [edit] = place.events(OBSERVED_EDIT)
    with place.app() as parts:
        erase(parts, edit.id)
    place.drained()
    assert before(place, "둘", "Write", write(place, "a.txt")) == ""


def erase(parts: App, identity: bytes) -> None:
    put_batch(parts.home, [Draft("erase.requested", {"ids": [identity], "reason": ""})], parts.clock)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_without_a_daemon_the_whole_program_answers_once_when_the_hook_finds_a_word(place: Place, agent: str) -> None:
    remember(place, RULE, "git-commit")
    (place.home.hook / "nodaemon").touch()

    def said(command: str) -> str:
        call = place.payload("PreToolUse", "s", tool_name="Bash", tool_input=run(command))
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(place.home.hook_program), agent, "PreToolUse"],
            input=call,
            cwd=place.project,
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        )
        assert done.stderr == b""
        return context(done.stdout.decode())

    assert said("ls -l") == ""
    assert RULE in until(lambda: said("git commit -m x"), "an answer within the child's time")
    assert said("git log") == ""
    with place.app() as parts:
        parts.ingest()
    assert place.events("context.delivered")


# What serves, speaks to a person or writes the log.
NOT_FOR_ONE_ANSWER = set(
    """
    asyncio click cryptography email http inspect rich selectors socket ssl subprocess tempfile tomllib watchdog
    zstandard
    memorize.bootstrap.erasing memorize.cli memorize.consolidate memorize.daemon.life memorize.daemon.serve
    memorize.fold memorize.index.projector memorize.log.ingest memorize.reading memorize.sync
    """.split()
)


def test_the_program_that_answers_once_loads_nothing_that_serves_or_writes(place: Place) -> None:
    remember(place, RULE, "git-commit")
    call = place.payload("PreToolUse", "s", tool_name="Bash", tool_input=run("git commit -m 커밋"))
    with place.app() as parts:
        parts.ingest()
        put_capture(parts.home, "claude", "PreToolUse", call, parts.clock)
    [name] = [one.name for one in (place.home.spool / "new").iterdir()]
    command = [sys.executable, "-I", str(place.home.hook / "memorize_daemon.py"), "before", name]
    found = modules_loaded(command, {**os.environ, "MEMORIZE_HOME": str(place.home.root)}, place.project)
    assert "memorize.daemon.once" in found
    assert not found & NOT_FOR_ONE_ANSWER


def test_the_words_that_the_hook_looks_for_go_with_the_last_rule(place: Place) -> None:
    identity = remember(place, RULE, "git-commit", "edit:결제/**")
    words = (place.home.hook / "triggers").read_bytes().splitlines()
    assert b"git " in words
    assert "결제".encode() in words
    assert b"\\uacb0\\uc81c" in words
    with place.app() as parts:
        parts.append([Draft("memory.retracted", {"reason": ""}, deps=(identity,))])
        parts.changed("project", parts.place(str(place.project)).project)
    assert not (place.home.hook / "triggers").exists()


def test_a_rule_for_an_action_is_told_before_it_and_nowhere_else(place: Place) -> None:
    remember(place, RULE, "git-commit")
    remember(place, "Answers are in Korean, 주석은 영어로.")
    place.serve()
    start = place.told("SessionStart", "s", source="startup")
    assert "Answers are in Korean" in start
    assert RULE not in start
    assert RULE not in place.ask("UserPromptSubmit", "s", prompt=f"What of this: {RULE}?")
    assert RULE in told(place, "s", "Bash", run("git commit"))
