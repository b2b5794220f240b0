"""Claude Code, from the payloads that it really sent."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from memorize import model
from memorize.agents import agent
from memorize.errors import UnknownAgent
from memorize.model import Draft
from tests.agents.contract import Contract

START = [model.SESSION_OPENED, model.PROJECT_SEEN]


class TestClaude(Contract):
    NAME = "claude"
    RECORDED: ClassVar[dict[str, list[str]]] = {
        "PostToolUse.Write": [model.OBSERVED_EDIT],
        "PostToolUseFailure.Bash": [model.OBSERVED_SHELL],
        "SessionEnd": [model.SESSION_CLOSED],
        "SessionEnd.clear": [model.SESSION_CLOSED],
        "SessionStart": START,
        "SessionStart.clear": START,
        "SessionStart.compact": START,
        "SessionStart.fork": START,
        "SessionStart.resume": START,
        "Stop": [model.OBSERVED_REPLY],
        "Stop.background-tasks": [model.OBSERVED_REPLY],
        "UserPromptSubmit": [model.OBSERVED_PROMPT],
        "interactive/SessionEnd.clear": [model.SESSION_CLOSED],
        "interactive/SessionEnd.prompt_input_exit": [model.SESSION_CLOSED],
        "interactive/SessionStart": START,
        "interactive/SessionStart.clear": START,
        "interactive/Stop": [model.OBSERVED_REPLY],
        "interactive/UserPromptSubmit": [model.OBSERVED_PROMPT],
    }

    def answer(self, output: str) -> Any:
        return {"stdout": output, "stderr": "", "interrupted": False}

    def edit(self, given: dict[str, Any], result: dict[str, Any] | None = None, tool: str = "Edit") -> Draft:
        (draft,) = self.parse("PostToolUse.Write", tool_name=tool, tool_input=given, tool_response=result or {})
        return draft

    def test_a_failing_command_keeps_status_and_output(self) -> None:
        (draft,) = self.parse("PostToolUseFailure.Bash")
        wanted = {"command": "cat missing.txt", "ok": False, "exit": 1}
        assert {key: draft.payload[key] for key in wanted} == wanted
        assert draft.payload["output"] == "cat: missing.txt: No such file or directory"

    def test_a_search_that_finds_nothing_is_no_failure(self) -> None:
        assert self.parse("PostToolUseFailure.Bash", tool_input={"command": "ls | grep x"}, error="Exit code 1") == []
        (draft,) = self.parse(
            "PostToolUseFailure.Bash", tool_input={"command": "grep x y"}, error="Exit code 2\ny: no file"
        )
        assert draft.payload["exit"] == 2

    def test_a_command_that_the_person_stopped_has_neither_failed_nor_succeeded(self) -> None:
        given = {"tool_input": {"command": "npm run 빌드"}}
        (draft,) = self.parse("PostToolUseFailure.Bash", **given, error="중단", is_interrupt=True)
        assert draft.payload.get("ok") is None
        stopped = {"stdout": "half", "stderr": "", "interrupted": True}
        (draft,) = self.parse(self.SHELL, **given, tool_response=stopped)
        assert draft.payload.get("ok") is None

    def test_an_output_that_only_looks_like_a_status_is_not_believed(self) -> None:
        (draft,) = self.parse(self.SHELL, tool_input={"command": "make"}, tool_response=self.answer("Exit code 3\nx"))
        assert (draft.payload["ok"], draft.payload["exit"]) == (True, 0)

    def test_a_background_command_has_no_result_yet(self) -> None:
        result = self.answer("") | {"backgroundTaskId": "b1"}
        (draft,) = self.parse(self.SHELL, tool_input={"command": "npm run dev"}, tool_response=result)
        assert (draft.payload["ok"], draft.payload["exit"]) == (None, None)

    def test_a_new_file_is_counted_by_its_lines(self) -> None:
        (draft,) = self.parse("PostToolUse.Write")
        wanted = {"path": "hello.txt", "op": "create", "added": 1, "removed": 0, "diff": "+hello"}
        assert {key: draft.payload[key] for key in wanted} == wanted

    def test_an_edit_is_told_by_the_patch_that_the_agent_reports(self) -> None:
        hunk = {"oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2, "lines": [" a", "-옛", "+새", "+b"]}
        draft = self.edit({"file_path": "/home/dev/project/src/a.py"}, {"structuredPatch": [hunk]})
        assert (draft.payload["added"], draft.payload["removed"]) == (2, 1)
        assert draft.payload["diff"] == "@@ -3,2 +3,2 @@\n a\n-옛\n+새\n+b"
        assert draft.payload["path"] == "src/a.py"

    def test_edits_without_a_patch_are_told_by_their_texts(self) -> None:
        two = {"edits": [{"old_string": "a", "new_string": "b\nc"}, {"old_string": "d\ne", "new_string": ""}, 7]}
        draft = self.edit({"file_path": "x.py", **two}, tool="MultiEdit")
        assert (draft.payload["added"], draft.payload["removed"]) == (2, 3)
        assert draft.payload["diff"] == "-a\n+b\n+c\n-d\n-e"
        draft = self.edit({"notebook_path": "/home/dev/project/n.ipynb", "new_source": "x = 1"}, tool="NotebookEdit")
        assert (draft.payload["path"], draft.payload["added"]) == ("n.ipynb", 1)

    @pytest.mark.parametrize(
        ("path", "stored"),
        [
            ("/home/dev/project/a/b.py", "a/b.py"),
            ("a/b.py", "a/b.py"),
            ("./a/../b.py", "b.py"),
            ("/home/dev/project/한글 폴더/파일.py", "한글 폴더/파일.py"),
            ("/srv/other/x.py", "/srv/other/x.py"),
            ("/etc/hosts", "/etc/hosts"),
            ("/x.py", "/x.py"),
        ],
    )
    def test_paths_are_stored_relative_to_the_repository(self, path: str, stored: str) -> None:
        assert self.edit({"file_path": path, "content": "x"}, tool="Write").payload["path"] == stored

    def test_a_file_in_a_place_without_capture_is_not_told(self) -> None:
        given = {"file_path": "/srv/secret/plan.txt", "content": "x"}
        assert self.parse("PostToolUse.Write", tool_input=given, tool_response={}) == []

    def test_the_rest_of_a_private_part_in_a_diff_is_removed(self) -> None:
        hunk = {"lines": [" secret", " </private>", "+open", "+<private>", "+more"]}
        draft = self.edit({"file_path": "a"}, {"structuredPatch": [hunk]})
        assert draft.payload["diff"].split() == ["+open", "+"]

    def test_a_failed_edit_and_a_plan_and_an_answer(self) -> None:
        assert self.parse("PostToolUseFailure.Bash", tool_name="Edit") == []
        for tool in ("ExitPlanMode", "AskUserQuestion"):
            (draft,) = self.parse(self.SHELL, tool_name=tool, tool_input={"plan": "먼저 테스트"}, tool_response="yes")
            assert draft.payload["tool"] == tool
            assert "먼저 테스트" in draft.payload["input"]

    def test_a_subagents_changes_are_the_sessions_changes(self) -> None:
        (draft,) = self.parse("PostToolUse.Bash.subagent", tool_input={"command": "make"})
        assert draft.kind == model.OBSERVED_SHELL


def test_the_alias_names_the_same_agent_and_a_stranger_is_refused() -> None:
    assert agent("claude-code") is agent("claude")
    with pytest.raises(UnknownAgent, match="robot"):
        agent("robot")
