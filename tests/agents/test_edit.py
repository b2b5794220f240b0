"""Our hooks in other people's settings files: in, found again, out, and every foreign byte where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memorize.agents import agent, edit
from memorize.agents.base import Edit
from memorize.errors import UnreadableSettings
from tests.counts import count

MANY = settings(max_examples=count("settings files", quick=60, full=1_000))
HOOK = "/home/dev/상태 dir/hook/memorize_hook.py"
FOREIGN = {"type": "command", "command": "prettier --write", "timeout": 9, "async": True}


def line(name: str, python: str = "/opt/py thon/bin/python") -> Callable[[str], str]:
    return lambda event: f'"{python}" -I -S "{HOOK}" {name} {event} 2>/dev/null || :'


def install(text: bytes | None, name: str = "claude", python: str = "/opt/py thon/bin/python") -> Edit:
    return agent(name).plan_install(text, line(name, python), "/home/dev/.claude/settings.json")


def undo(change: Edit, original: bytes | None, now: bytes | None = None) -> edit.Undone:
    assert change.after is not None
    return edit.undo(now if now is not None else change.after, edit.remember(change, original), "settings.json")


def parsed(text: bytes | None) -> Any:
    return json.loads((text or b"{}").decode("utf-8-sig").strip() or "{}")


def without_ours(value: Any) -> Any:
    """Take our groups out of parsed settings, by the plain meaning of the words and not by our code."""
    hooks = {}
    for event, groups in value.get("hooks", {}).items():
        kept = [group for group in groups if HOOK not in json.dumps(group, ensure_ascii=False)]
        if kept:
            hooks[event] = kept
    return {**{key: item for key, item in value.items() if key != "hooks"}, **({"hooks": hooks} if hooks else {})}


# --- random settings, written in a random way

SPACE = st.text(" \t", max_size=3) | st.sampled_from(["\n", "\r\n", "\n  ", "\n    ", "\r\n\t", ""])
SCALAR = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
JSON = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(st.just(FOREIGN) | st.just({"type": "prompt", "prompt": "가?"}), max_size=2)},
    optional={"matcher": st.sampled_from(["Bash", "", "*"])},
)
EVENT = st.sampled_from(["SessionStart", "PostToolUse", "Stop", "Notification", "SessionEnd"])
HOOKS = st.dictionaries(EVENT, st.lists(GROUP | JSON, max_size=3), max_size=4)
SETTINGS = st.dictionaries(st.text(max_size=6).filter(lambda key: key != "hooks"), JSON, max_size=4)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Draw settings as a person, an editor or another program may have left them."""
    value: dict[str, Any] = draw(SETTINGS)
    if draw(st.booleans()):
        value["hooks"] = draw(HOOKS)
    items = list(value.items())
    style = draw(st.sampled_from(["wild", 2, 4, "\t", None]))
    if style == "wild":
        text = _wild(draw, dict(draw(st.permutations(items))))
    else:
        text = json.dumps(dict(items), indent=style, ensure_ascii=draw(st.booleans()))
        text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    text = text.encode("utf-8", "replace").decode()
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + draw(SPACE) + text + draw(SPACE)).encode()


def _wild(draw: st.DrawFn, value: Any) -> str:
    def space() -> str:
        return draw(SPACE)

    if isinstance(value, dict):
        members = [
            f"{space()}{json.dumps(key)}{space()}:{space()}{_wild(draw, item)}{space()}" for key, item in value.items()
        ]
        return "{" + (",".join(members) or space()) + "}"
    if isinstance(value, list):
        return "[" + (",".join(f"{space()}{_wild(draw, item)}{space()}" for item in value) or space()) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "replace").decode()


@MANY
@given(documents(), st.sampled_from(["claude", "codex"]))
def test_any_settings_come_back_byte_for_byte(text: bytes, name: str) -> None:
    change = install(text, name)
    assert change.after is not None
    before, after = parsed(text), parsed(change.after)
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups
    assert {key: value for key, value in after.items() if key != "hooks"} == {
        key: value for key, value in before.items() if key != "hooks"
    }
    ours = [command for _, command in edit.commands(change.after, "x") if edit.is_ours(command)]
    assert len(ours) == {"claude": 8, "codex": 7}[name]
    assert not install(change.after, name).changes
    assert undo(change, text) == edit.Undone(text, True)


@MANY
@given(documents(), st.data())
def test_what_a_person_adds_in_between_stays(text: bytes, data: st.DataObject) -> None:
    change = install(text)
    value = parsed(change.after)
    value["added"] = data.draw(JSON)
    value["hooks"].setdefault("Stop", []).append({"hooks": [FOREIGN]})
    rewritten = json.dumps(value, indent=data.draw(st.sampled_from([None, 2, 3]))).encode()
    undone = undo(change, text, rewritten)
    assert not undone.exact
    left = parsed(undone.text)
    assert left["added"] == value["added"]
    assert {"hooks": [FOREIGN]} in left["hooks"]["Stop"]
    assert HOOK not in json.dumps(left, ensure_ascii=False)
    expected = parsed(text)
    assert {key: item for key, item in left.items() if key not in ("added", "hooks")} == {
        key: item for key, item in expected.items() if key not in ("added", "hooks")
    }
    for event, groups in expected.get("hooks", {}).items():
        assert left["hooks"][event][: len(groups)] == groups


@MANY
@given(documents())
def test_without_a_receipt_only_our_hooks_go(text: bytes) -> None:
    change = install(text)
    left = agent("claude").plan_uninstall(change.after, "x").after
    assert HOOK not in json.dumps(parsed(left), ensure_ascii=False)
    for event, groups in parsed(text).get("hooks", {}).items():
        if groups:
            assert parsed(left)["hooks"][event] == groups


# --- the cases that a person would think of

CASES: dict[str, bytes | None] = {
    "no file": None,
    "empty": b"",
    "blank": b" \r\n",
    "empty object": b"{}",
    "empty object and newline": b"{}\n",
    "open empty object": b"{\n}\n",
    "empty hooks": b'{"hooks": {}}',
    "open empty hooks": b'{\n  "hooks": {\n  }\n}\n',
    "empty event": b'{\n  "hooks": {\n    "PostToolUse": []\n  }\n}\n',
    "one line": b'{"model": "opus", "hooks": {"Stop": [{"hooks": []}]}}',
    "tabs": b'{\n\t"a": 1,\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}\n\t\t]\n\t}\n}',
    "crlf": b'{\r\n    "a": {\r\n        "b": 1\r\n    }\r\n}\r\n',
    "mark": b'\xef\xbb\xbf{"a": 1}\n',
    "korean": '{\n  "설명": "한글 \\ud55c",\n  "hooks": {"Stop": []}\n}\n'.encode(),
    "odd numbers and escapes": b'{"n": 1.0e+5, "m": -0, "s": "\\u0041\\/"}',
    "keys twice": b'{"hooks": {"Stop": []}, "hooks": {"Stop": [], "Stop": [1]}}',
    "not our form": b'{"hooks": {"Stop": [1, {"hooks": 2}, {"command": "x"}, {}]}}',
}


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_undone_byte_for_byte(case: str, name: str) -> None:
    text = CASES[case]
    change = install(text, name)
    assert change.after != text
    assert without_ours(parsed(change.after)) == without_ours(parsed(text))
    assert undo(change, text) == edit.Undone(text, True)


def test_the_inserted_text_looks_like_the_rest_of_the_file() -> None:
    text = b'{\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{"hooks": []}\r\n\t\t]\r\n\t}\r\n}'
    after = (install(text).after or b"").decode()
    assert "\n" not in after.replace("\r\n", "")
    assert '\r\n\t\t\t{"hooks": []},\r\n\t\t\t{\r\n\t\t\t\t"hooks": [\r\n' in after
    assert after.endswith("\r\n\t\t]\r\n\t}\r\n}")
    assert (install(b'{"a": 1}').after or b"").count(b"\n") == 0
    assert (
        json.dumps(parsed(install(None).after), indent=2, ensure_ascii=False) + "\n"
        == (install(None).after or b"").decode()
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{\n  // ours\n  "a": 1}', "line 2, column 3: a comment"),
        (b'{"a": 1, /* x */ "b": 2}', "a comment"),
        (b'{"a": 1,}', "a comma too many"),
        (b'{"a": [1,]}', "a comma too many"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1', "line 1"),
        (b"[]", "no JSON object"),
        (b"\xff\xfe{}", "byte 0 is not UTF-8"),
        (b'{"hooks": []}', '"hooks" is not an object'),
        (b'{"hooks": null}', '"hooks" is not an object'),
        (b'{"hooks": {"Stop": {}}}', '"Stop" is not a list'),
        (b'{"a": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "nested too deeply"),
        (b'{"a": "\n"}', "control character"),
    ],
)
def test_a_file_that_is_no_strict_json_is_refused_and_named(text: bytes, says: str) -> None:
    with pytest.raises(UnreadableSettings) as refused:
        install(text)
    assert "/home/dev/.claude/settings.json" in str(refused.value)
    assert says in str(refused.value)


def test_a_moved_interpreter_replaces_our_hooks_and_nobody_elses() -> None:
    text = b'{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"type": "command", "command": "mine"}]}\n    ]\n  }\n}\n'
    old = install(text)
    new = install(old.after, python="/elsewhere/python")
    commands = [command for _, command in edit.commands(new.after or b"", "x")]
    assert commands.count("mine") == 1
    assert sum(edit.is_ours(command) for command in commands) == 8
    assert not any("/opt/py thon" in command for command in commands)


def test_hooks_of_an_older_version_stay_and_missing_ones_are_added() -> None:
    full = parsed(install(None).after)
    del full["hooks"]["Stop"], full["hooks"]["PreCompact"]
    text = json.dumps(full, indent=2).encode()
    change = install(text)
    assert list(parsed(change.after)["hooks"])[-2:] == ["Stop", "PreCompact"]
    assert (change.after or b"").startswith(text[: text.rindex(b"]")])
    assert len(change.pieces) == 1


def test_our_hook_inside_a_group_of_the_person_goes_alone() -> None:
    command = line("claude")("Stop")
    both = {"hooks": {"Stop": [{"hooks": [FOREIGN, {"type": "command", "command": command}]}]}}
    left = agent("claude").plan_uninstall(json.dumps(both).encode(), "x").after
    assert parsed(left) == {"hooks": {"Stop": [{"hooks": [FOREIGN]}]}}


def test_empty_members_that_were_there_before_stay_when_the_file_was_edited_since() -> None:
    text = b'{"hooks": {"Stop": []}}'
    change = install(text)
    now = json.dumps(parsed(change.after) | {"x": 1}).encode()
    assert parsed(undo(change, text, now).text) == {"hooks": {"Stop": []}, "x": 1}


def test_a_file_of_ours_is_deleted_also_when_an_agent_wrote_it_anew() -> None:
    change = install(None)
    assert undo(change, None).text is None
    assert undo(change, None, json.dumps(parsed(change.after)).encode()).text is None
    kept = undo(change, None, json.dumps(parsed(change.after) | {"theme": "dark"}).encode())
    assert parsed(kept.text) == {"theme": "dark"}


def test_foreign_text_around_an_untouched_piece_keeps_its_bytes() -> None:
    change = install(b'{\n  "a": 1\n}\n')
    now = (change.after or b"").replace(b'"a": 1', b'"a":   [1 ,2]').replace(b"}\n}\n", b'},\n\n  "z": true}\n')
    assert undo(change, b'{\n  "a": 1\n}\n', now).text == b'{\n  "a":   [1 ,2],\n\n  "z": true}\n'


def test_uninstalling_from_nothing_changes_nothing() -> None:
    for text in (None, b"", b" ", b"{}", b'{"hooks": {}}'):
        assert not agent("codex").plan_uninstall(text, "x").changes
