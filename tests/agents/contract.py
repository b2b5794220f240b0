"""What every agent's module must do, whatever its payloads look like. An agent's test class inherits ``Contract``.

The subclass gives a recorded payload for each role; this suite changes them in the ways in which payloads go wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgpack
import pytest

from memorize import limits, model, paths
from memorize.agents import agent
from memorize.agents.base import Agent
from memorize.log.spool import Unreadable
from memorize.model import Capture, Draft

KOREAN = "결제 모듈을 고쳐 줘, 금액은 정수로"


class At(NamedTuple):
    """A place as the index room resolves it."""

    project: str = "ab" * 16
    name: str = "checkout"
    identities: tuple[tuple[str, str], ...] = (("remote", "example.org/team/checkout"),)
    root: str = "/home/dev/project"
    dir: str = ""
    branch: str = "main"
    head: str = "1" * 40
    capture_off: bool = False


def locate(path: str) -> At:
    """Resolve as the index room does: one repository at /home/dev/project, another at /srv/other, none else."""
    for root, key in (("/home/dev/project", "ab" * 16), ("/srv/other", "cd" * 16), ("/srv/secret", "ef" * 16)):
        if path == root or path.startswith(root + "/"):
            return At(key, root=root, dir=path[len(root) + 1 :], capture_off=root == "/srv/secret")
    return At("00" * 16, root=path)


def capture(name: str, event: str, data: bytes | dict[str, Any], cut: bool = False) -> Capture:
    """Return what the ingester hands to ``parse``."""
    raw = json.dumps(data, ensure_ascii=False).encode() if isinstance(data, dict) else data
    return Capture(name, event, b"\x07" * 16, 1, raw, cut)


class Contract:
    """Inherit, and name the agent and its recorded payloads."""

    NAME: ClassVar[str]
    PROMPT: ClassVar[str] = "UserPromptSubmit"
    START: ClassVar[str] = "SessionStart"
    END: ClassVar[str] = "SessionEnd"
    STOP: ClassVar[str] = "Stop"
    COMPACT: ClassVar[str] = "PreCompact"
    SHELL: ClassVar[str] = "PostToolUse.Bash"
    # recorded payload -> kinds of the drafts that it gives
    RECORDED: ClassVar[dict[str, list[str]]]

    @property
    def agent(self) -> Agent:
        return agent(self.NAME)

    def recorded(self, name: str) -> dict[str, Any]:
        path = paths.adapters_dir() / self.NAME / "fixtures" / f"{name}.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))["stdin"])

    def parse(self, name: str, **changes: Any) -> list[Draft]:
        return self.agent.parse(
            capture(self.NAME, name.split(".")[0].split("/")[-1], self.recorded(name) | changes), locate
        )

    def test_every_recorded_payload_gives_the_expected_kinds(self) -> None:
        folder = paths.adapters_dir() / self.NAME / "fixtures"
        names = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.json")}
        got = {name: [draft.kind for draft in self.parse(name)] for name in names}
        assert got == {name: self.RECORDED.get(name, []) for name in names}
        assert set(self.RECORDED) <= names

    def test_every_observation_says_who_and_where(self) -> None:
        for name in self.RECORDED:
            for draft in self.parse(name):
                if draft.kind != model.PROJECT_SEEN:
                    wanted = {"agent": self.NAME, "project": "ab" * 16, "branch": "main", "head": "1" * 40, "dir": ""}
                    assert {key: draft.payload[key] for key in wanted} == wanted
                    assert draft.payload["session"] == self.recorded(name)["session_id"]

    def test_a_call_read_twice_gives_the_same_drafts_with_ordinals_of_their_own(self) -> None:
        for name in self.RECORDED:
            drafts = self.parse(name)
            assert drafts == self.parse(name)
            assert len({draft.ordinal for draft in drafts}) == len(drafts)

    def test_a_session_start_tells_the_session_and_the_project(self) -> None:
        opened, seen = self.parse(self.START)
        assert (opened.ordinal, seen.ordinal) == (0, 100)
        assert opened.payload["source"] == "startup"
        assert opened.payload["transcript"].endswith(".jsonl")
        assert seen.payload["identities"] == [["remote", "example.org/team/checkout"]]
        assert seen.payload["path"] == "/home/dev/project"

    def test_the_boundaries_of_a_session_are_known(self) -> None:
        told = {
            event: self.agent.boundary(capture(self.NAME, event, b"")) for event in (self.START, self.COMPACT, self.END)
        }
        assert told == {self.START: "start", self.COMPACT: "compact", self.END: "end"}
        assert self.agent.boundary(capture(self.NAME, self.PROMPT, b"")) is None

    def test_a_korean_prompt_is_kept_as_it_was_typed(self) -> None:
        (draft,) = self.parse(self.PROMPT, prompt=KOREAN)
        assert draft.payload["text"] == KOREAN

    @pytest.mark.parametrize(
        "prompt", ["", "  \n", "<task-notification>\nx</task-notification>", "<private>x</private>", None, 7, []]
    )
    def test_what_is_no_persons_word_gives_nothing(self, prompt: Any) -> None:
        assert self.parse(self.PROMPT, prompt=prompt) == []

    def test_a_subagents_prompt_and_reply_are_not_the_persons_nor_the_agents(self) -> None:
        assert self.parse(self.PROMPT, agent_id="a1") == []
        assert self.parse(self.STOP, agent_id="a1") == []

    @pytest.mark.parametrize(
        ("text", "kept"),
        [
            ("a <private>암호 1234</private> b", "a  b"),
            ("a <PRIVATE>\nx\n</Private> b", "a  b"),
            ("a <private>b <private>c</private> d</private> e", "a  e"),
            ("a <private>no end", "a"),
            ("a <memorize-context project='p'>own words</memorize-context> b", "a  b"),
            ("a <memorize-context items=1>own words", "a"),
            ("a < private > x </ private > b", "a  b"),
            ('a <private reason="이유">x</private> b', "a  b"),
            ("about </private> alone", "about </private> alone"),
        ],
    )
    def test_private_parts_and_own_words_are_removed(self, text: str, kept: str) -> None:
        (draft,) = self.parse(self.PROMPT, prompt=text)
        assert draft.payload["text"] == kept
        (draft,) = self.parse(self.STOP, last_assistant_message=text)
        assert draft.payload["text"] == kept
        (draft,) = self.parse(self.SHELL, tool_input={"command": "make " + text})
        assert draft.payload["command"] == "make " + kept

    def test_a_long_text_keeps_head_and_tail_and_says_how_much_is_missing(self) -> None:
        (draft,) = self.parse(self.PROMPT, prompt="처음 " + "가" * 100_000 + " 끝")
        text = draft.payload["text"]
        assert len(text) <= limits.TEXT_CHARS_MAX
        assert text.startswith("처음 ")
        assert text.endswith(" 끝")
        assert "characters left out" in text

    def test_lone_surrogates_become_something_that_can_be_stored(self) -> None:
        raw = json.dumps(self.recorded(self.PROMPT) | {"prompt": "x", "session_id": "s"})
        raw = raw.replace('"x"', '"a \\ud83d b"').replace('"s"', '"s\\udc00"')
        drafts = self.agent.parse(capture(self.NAME, self.PROMPT, raw.encode()), locate)
        assert drafts[0].payload["text"] == "a \ufffd b"
        msgpack.packb(drafts[0].payload)

    @pytest.mark.parametrize(
        "data",
        [
            b"{",
            b"null",
            b"[]",
            b'"text"',
            b"12",
            b"not json",
            b"[" * 200_000,
            b'{"a":' * 200_000,
            b"\xff\xfe{",
            bytes(range(256)),
        ],
        ids=lambda data: data[:12].hex() if isinstance(data, bytes) else None,
    )
    def test_what_cannot_be_read_is_set_aside(self, data: bytes) -> None:
        for event in (self.START, self.PROMPT, "PostToolUse", self.STOP):
            with pytest.raises(Unreadable):
                self.agent.parse(capture(self.NAME, event, data), locate)

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"   \n",
            b"\xef\xbb\xbf",
            b"\0" * 4096,
            b"{}",
            b'{"session_id": 1, "cwd": "/x"}',
            b'{"session_id": "s", "cwd": null}',
            b'{"session_id": "s", "cwd": ["/x"]}',
            b'{"session_id": "s", "cwd": "relative/\xed\x8f\xb4\xeb\x8d\x94"}',
            b'{"session_id": "s", "cwd": "/a\\u0000b"}',
            b'{"session_id": "s"}',
            b'{"cwd": "/x"}',
        ],
        ids=lambda data: data[:12].hex() if isinstance(data, bytes) else None,
    )
    @pytest.mark.parametrize("cut", [False, True])
    def test_what_says_nothing_or_not_whose_it_is_is_no_damage_and_tells_nothing(self, data: bytes, cut: bool) -> None:
        for event in (self.START, self.PROMPT, "PostToolUse", self.STOP):
            assert self.agent.parse(capture(self.NAME, event, data, cut), locate) == []

    @pytest.mark.parametrize("value", [None, 1, 1.5, True, "text", [], [1], {}, {"a": 1}, [{"type": "text"}]])
    def test_a_field_of_a_wrong_type_never_raises(self, value: Any) -> None:
        for name in self.RECORDED:
            for key in self.recorded(name):
                if key not in ("session_id", "cwd"):
                    for draft in self.parse(name, **{key: value}):
                        msgpack.packb(draft.payload)
            for holder in ("tool_input", "tool_response"):
                found = self.recorded(name).get(holder)
                inner: dict[str, Any] = found if isinstance(found, dict) else {}
                for key in inner:
                    for draft in self.parse(name, **{holder: inner | {key: value}}):
                        msgpack.packb(draft.payload)

    def test_byte_order_marks_and_bytes_that_are_no_utf8_are_read(self) -> None:
        raw = json.dumps(self.recorded(self.PROMPT) | {"prompt": KOREAN}, ensure_ascii=False)
        bad = raw.encode().replace(KOREAN.encode(), b"caf\xe9")
        for data, text in (
            (b"\xef\xbb\xbf" + raw.encode(), KOREAN),
            (raw.encode("utf-16"), KOREAN),
            (bad, "caf\ufffd"),
        ):
            (draft,) = self.agent.parse(capture(self.NAME, self.PROMPT, data), locate)
            assert draft.payload["text"] == text

    def test_a_payload_of_20_mb_is_read_and_kept_short(self) -> None:
        (draft,) = self.parse(self.SHELL, tool_input={"command": "make"}, tool_response={"stdout": "x y\n" * 5_000_000})
        assert len(str(draft.payload)) < 10_000
        (draft,) = self.parse(self.PROMPT, prompt="a" * 20_000_000)
        assert len(draft.payload["text"]) <= limits.TEXT_CHARS_MAX

    def test_a_cut_prompt_keeps_what_came_through(self) -> None:
        raw = json.dumps(
            self.recorded(self.PROMPT) | {"prompt": f'{KOREAN} "quoted" \\ end'}, ensure_ascii=False
        ).encode()
        for end in range(raw.index(KOREAN.encode()) + 3, len(raw)):
            (draft,) = self.agent.parse(capture(self.NAME, self.PROMPT, raw[:end], cut=True), locate)
            text = draft.payload["text"].rstrip("\ufffd ")
            assert f'{KOREAN} "quoted" \\ end'.startswith(text)

    def test_a_payload_cut_anywhere_is_read_or_set_aside(self) -> None:
        for name in self.RECORDED:
            raw = json.dumps(self.recorded(name), ensure_ascii=False).encode()
            for end in range(0, len(raw), 7):
                try:
                    drafts = self.agent.parse(capture(self.NAME, name.split(".")[0], raw[:end], cut=True), locate)
                except Unreadable:
                    continue
                for draft in drafts:
                    msgpack.packb(draft.payload)

    def test_an_open_private_part_of_a_cut_prompt_stays_out(self) -> None:
        raw = json.dumps(self.recorded(self.PROMPT) | {"prompt": "open <private>secret words"}).encode()
        (draft,) = self.agent.parse(capture(self.NAME, self.PROMPT, raw[:-6], cut=True), locate)
        assert draft.payload["text"] == "open"

    def test_nothing_is_captured_where_the_person_said_so(self) -> None:
        for name in self.RECORDED:
            assert self.parse(name, cwd="/srv/secret/sub") == []

    def test_reading_commands_are_dropped_and_changing_ones_kept(self) -> None:
        assert self.parse(self.SHELL, tool_input={"command": "git status && ls | head"}) == []
        (draft,) = self.parse(self.SHELL, tool_input={"command": "npm install left-pad"})
        assert draft.payload["command"] == "npm install left-pad"

    def test_a_commit_is_an_event_of_its_own(self) -> None:
        drafts = self.parse(
            self.SHELL,
            tool_input={"command": "git add -A && git commit -m '환불을 고친다'"},
            tool_response=self.answer("[refund-api 1a2b3c4] 환불을 고친다\n 1 file changed, 2 insertions(+)\n"),
        )
        assert [(draft.kind, draft.ordinal) for draft in drafts] == [
            (model.OBSERVED_SHELL, 0),
            (model.OBSERVED_COMMIT, 1),
        ]
        assert drafts[1].payload["sha"] == "1a2b3c4"
        assert drafts[1].payload["subject"] == "환불을 고친다"

    def answer(self, output: str) -> Any:
        """Return a successful command's output in the agent's form."""
        raise NotImplementedError

    def test_the_output_keeps_its_end_without_own_words(self) -> None:
        output = "line\n" * 5_000 + "<memorize-context>old</memorize-context>\nFAILED 테스트\n"
        (draft,) = self.parse(self.SHELL, tool_input={"command": "make test"}, tool_response=self.answer(output))
        assert len(draft.payload["output"]) <= limits.OUTPUT_TAIL_CHARS_MAX
        assert draft.payload["output"].endswith("FAILED 테스트")
        assert "old" not in draft.payload["output"]

    def test_no_cut_hides_the_beginning_of_a_secret(self) -> None:
        token = "gh" + "p_" + "A1b2C3d4" * 5
        for size in range(limits.OUTPUT_TAIL_CHARS_MAX - 46, limits.OUTPUT_TAIL_CHARS_MAX, 3):
            output = f"x {token} " + "y" * size
            (draft,) = self.parse(self.SHELL, tool_input={"command": "make"}, tool_response=self.answer(output))
            assert "C3d4A1b2" not in draft.payload["output"]

    def test_tools_that_read_by_name_and_our_own_are_dropped(self) -> None:
        for tool in (
            "mcp__tracker__get_issue",
            "mcp__x__listFiles",
            "mcp__memorize__remember",
            "mcp__plugin_memorize_memorize__save",
        ):
            assert self.parse(self.SHELL, tool_name=tool) == []
        (draft,) = self.parse(
            self.SHELL,
            tool_name="mcp__tracker__create_issue",
            tool_input={"title": "버그 <private>x</private>"},
            tool_response={"content": [{"type": "text", "text": "created 12"}]},
        )
        assert draft.kind == model.OBSERVED_TOOL
        assert draft.payload["input"] == '{"title": "버그 "}'
        assert draft.payload["output"] == "created 12"

    @pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreToolUse"])
    @pytest.mark.parametrize("text", ["short", KOREAN * 2_000, '"\\\n' * 9_000, '{"a": 1}', "😀" * 5_000])
    def test_an_answer_is_valid_and_short_enough(self, event: str, text: str) -> None:
        raw = self.agent.render(event, text)
        assert 0 < len(raw) <= limits.ANSWER_BYTES_MAX
        shown = raw.decode("utf-8")
        if event == "PreToolUse" or text.startswith("{"):
            answer = json.loads(shown)
            assert list(answer) == ["hookSpecificOutput"]
            assert list(answer["hookSpecificOutput"]) == ["hookEventName", "additionalContext"]
            assert answer["hookSpecificOutput"]["hookEventName"] == event
            shown = answer["hookSpecificOutput"]["additionalContext"]
        assert text.startswith(shown)
        assert len(raw) > limits.ANSWER_BYTES_MAX - 40 or shown == text

    def test_a_wrapped_text_that_is_cut_stays_wrapped(self) -> None:
        raw = self.agent.render("SessionStart", "<memorize-context>\n" + "줄\n" * 9_000 + "</memorize-context>\n")
        assert raw.endswith(b"\n</memorize-context>")
        assert len(raw) <= limits.ANSWER_BYTES_MAX

    @pytest.mark.parametrize("event", ["Stop", "SessionEnd", "PreCompact", "PostToolUse", "Unheard"])
    def test_events_that_cannot_answer_stay_silent(self, event: str) -> None:
        assert self.agent.render(event, "text") == b""
        assert self.agent.render("SessionStart", " \n") == b""

    def test_an_agent_is_found_by_its_directory_or_its_command(self, tmp_path: Path) -> None:
        nothing = self.agent.detect({"PATH": ""}, tmp_path)
        assert not nothing.present
        nothing.root.mkdir(parents=True)
        assert self.agent.detect({"PATH": ""}, tmp_path).present

    def test_installing_twice_changes_nothing_more(self) -> None:
        line: Callable[[str], str] = lambda event: f'"py" "/한글 집/memorize_hook.py" {self.NAME} {event} || :'  # noqa: E731
        first = self.agent.plan_install(None, line, "settings")
        assert first.after is not None
        assert not self.agent.plan_install(first.after, line, "settings").changes
        assert json.loads(self.agent.plan_uninstall(first.after, "settings").after or b"") == {}
