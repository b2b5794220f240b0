"""Codex, from the payloads that it really sent."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from memorize import model
from memorize.model import Draft
from tests.agents.contract import Contract, capture, locate

PATCH = """*** Begin Patch
*** Add File: docs/새 문서.md
+one
+two
*** Update File: src/a.py
*** Move to: src/b.py
@@ def f():
-    return 1
+    return 2
 kept
*** Update File: src/c.py
@@
-x
*** Delete File: old.txt
*** End Patch
"""


class TestCodex(Contract):
    NAME = "codex"
    RECORDED: ClassVar[dict[str, list[str]]] = {
        "PostToolUse.Bash": [model.OBSERVED_SHELL],
        "PostToolUse.apply_patch": [model.OBSERVED_EDIT],
        "SessionEnd": [model.SESSION_CLOSED],
        "SessionStart": [model.SESSION_OPENED, model.PROJECT_SEEN],
        "SessionStart.compact": [model.SESSION_OPENED, model.PROJECT_SEEN],
        "SessionStart.resume": [model.SESSION_OPENED, model.PROJECT_SEEN],
        "Stop": [model.OBSERVED_REPLY],
        "UserPromptSubmit": [model.OBSERVED_PROMPT],
    }

    def answer(self, output: str) -> Any:
        return output

    def patch(self, name: str, command: Any, **changes: Any) -> list[Draft]:
        call = self.recorded(name) | {"tool_input": {"command": command}} | changes
        return self.agent.parse(capture("codex", name.split(".")[0], call), locate)

    def test_a_command_whose_status_is_not_told_is_neither_good_nor_bad(self) -> None:
        (draft,) = self.parse("PostToolUse.Bash")
        wanted = {"command": "echo hello > hello.txt && cat hello.txt", "ok": None, "exit": None, "output": "hello"}
        assert {key: draft.payload[key] for key in wanted} == wanted

    @pytest.mark.parametrize(("status", "ok"), [(0, True), (2, False), (-1, False)])
    def test_a_status_that_is_told_is_believed(self, status: int, ok: bool) -> None:
        output = f"Exit code: {status}\nWall time: 0 seconds\nOutput:\nwords"
        (draft,) = self.parse("PostToolUse.Bash", tool_response=output)
        assert (draft.payload["ok"], draft.payload["exit"], draft.payload["output"]) == (ok, status, "words")

    def test_a_patch_gives_an_edit_for_each_file(self) -> None:
        drafts = self.patch("PostToolUse.apply_patch", PATCH)
        got = [tuple(draft.payload[key] for key in ("path", "op", "added", "removed")) for draft in drafts]
        assert got == [
            ("docs/새 문서.md", "create", 2, 0),
            ("src/a.py", "delete", 0, 0),
            ("src/b.py", "edit", 1, 1),
            ("src/c.py", "edit", 0, 1),
            ("old.txt", "delete", 0, 0),
        ]
        assert [draft.ordinal for draft in drafts] == [0, 1, 2, 3, 4]
        assert drafts[2].payload["diff"].startswith("@@ def f():\n-    return 1\n+    return 2")

    def test_a_patch_that_was_refused_changed_nothing(self) -> None:
        assert self.patch("PostToolUse.apply_patch", PATCH, tool_response="Exit code: 1\nOutput:\nno match") == []

    @pytest.mark.parametrize(
        "command", [f"apply_patch <<'EOF'\n{PATCH}EOF", f"cd sub && apply_patch <<'EOF'\n{PATCH}EOF"]
    )
    def test_a_patch_given_to_the_shell_is_seen_before_it_since_nothing_comes_after(self, command: str) -> None:
        drafts = self.patch("PreToolUse.Bash", command)
        folder = "sub/" if command.startswith("cd") else ""
        assert [draft.payload["path"] for draft in drafts][-1] == folder + "old.txt"
        assert self.patch("PreToolUse.Bash", "make") == []
        assert self.patch("PreToolUse.Bash", f"echo '{PATCH}'") == []

    def test_a_patch_in_a_larger_command_is_told_with_it(self) -> None:
        drafts = self.patch("PostToolUse.Bash", f"make && apply_patch <<'EOF'\n{PATCH}EOF\n")
        assert [draft.kind for draft in drafts] == [model.OBSERVED_SHELL, *[model.OBSERVED_EDIT] * 5]
        assert [draft.ordinal for draft in drafts] == [0, 40, 41, 42, 43, 44]

    def test_a_command_given_as_words_is_read(self) -> None:
        (draft,) = self.patch("PostToolUse.Bash", ["bash", "-lc", "make test"])
        assert draft.payload["command"] == "make test"

    def test_a_patch_that_touches_hundreds_of_files_stays_below_the_other_ordinals(self) -> None:
        many = "*** Begin Patch\n" + "".join(f"*** Add File: f{n}\n+x\n" for n in range(500)) + "*** End Patch"
        drafts = self.patch("PostToolUse.apply_patch", many)
        assert max(draft.ordinal for draft in drafts) < 100
