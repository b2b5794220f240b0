"""The configuration file: what it takes, and how one key is set without touching the rest."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize.bootstrap import open_app
from memorize.config import EXTRACTORS, KEYS, Config, parse, with_value
from memorize.errors import BadConfig

NAME = "consolidate.extractor"


def test_an_empty_file_gives_the_defaults_and_every_key_has_one() -> None:
    assert parse("", "x") == Config()
    assert {key.field for key in KEYS} == set(Config._fields)


def test_what_models_may_do_is_set_here() -> None:
    text = """
[consolidate]
extractor = "url"
order = "codex, claude"
model = "gpt-5.5-mini"
url = "http://127.0.0.1:11434/v1"
url_key_env = "LAN_KEY"
deadline_s = 60
calls_per_day = 3
tokens_per_day = 0
"""
    found = parse(text, "x")
    assert (found.extractor, found.order, found.url_key_env) == ("url", "codex, claude", "LAN_KEY")
    assert (found.deadline_s, found.calls_per_day, found.tokens_per_day) == (60, 3, 0)


@pytest.mark.parametrize(
    "line",
    [
        'extractor = "gpt"',
        'order = ""',
        'order = "claude,gemini"',
        'url = "127.0.0.1"',
        'url = "https://me:secret@host/v1"',
        'url_key_env = "sk-geheim-1234"',
        'model = "a b"',
        "model = 3",
        "deadline_s = 1",
        "calls_per_day = -1",
        "calls_per_day = true",
    ],
)
def test_what_cannot_be_is_refused_without_repeating_a_key(line: str) -> None:
    with pytest.raises(BadConfig) as caught:
        parse(f"[consolidate]\n{line}\n", "config.toml")
    assert line.split(" ")[0] in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[consolidate]\nextractor = "codex"\n'),
        ("# 내 설정", '# 내 설정\n\n[consolidate]\nextractor = "codex"\n'),
        (
            "[recall]\nhalf_life_days = 7  # 일주일\n",
            '[recall]\nhalf_life_days = 7  # 일주일\n\n[consolidate]\nextractor = "codex"\n',
        ),
        (
            "[consolidate]  # 정리\nobservations_min = 3\n\n[daemon]\nidle_exit_s = 60\n",
            '[consolidate]  # 정리\nextractor = "codex"\nobservations_min = 3\n\n[daemon]\nidle_exit_s = 60\n',
        ),
        (
            "[daemon]\nidle_exit_s = 60\n[ consolidate ]\n  extractor='rules' # 비용\nobservations_min = 3",
            '[daemon]\nidle_exit_s = 60\n[ consolidate ]\n  extractor="codex" # 비용\nobservations_min = 3',
        ),
        ("[consolidate]", '[consolidate]\nextractor = "codex"\n'),
        ('[consolidate]\r\nmodel = "m"\r\n', '[consolidate]\r\nextractor = "codex"\r\nmodel = "m"\r\n'),
    ],
)
def test_one_key_is_set_and_the_rest_stays_as_it_was(before: str, after: str) -> None:
    changed = with_value(before, NAME, "codex", "x")
    assert changed == after
    assert with_value(changed, NAME, "codex", "x") == after


def test_the_mark_that_some_editors_put_before_the_text_is_no_part_of_it() -> None:
    text = '\ufeff[consolidate]\nextractor = "rules"  # 규칙만\n'
    assert parse(text, "x").extractor == "rules"
    assert with_value(text, NAME, "codex", "x") == '[consolidate]\nextractor = "codex"  # 규칙만\n'


def test_a_file_in_another_encoding_is_said_to_be_so(tmp_path: Path) -> None:
    for encoding in ("cp949", "utf-16"):
        (tmp_path / "config.toml").write_bytes('# 규칙만\n[consolidate]\nextractor = "rules"\n'.encode(encoding))
        with pytest.raises(BadConfig, match="not UTF-8"):
            open_app({"MEMORIZE_HOME": str(tmp_path)})


def test_a_form_that_is_not_understood_is_left_alone_and_said() -> None:
    for text in ('consolidate.extractor = "rules"\n', 'consolidate = { extractor = "rules" }\n'):
        with pytest.raises(BadConfig):
            with_value(text, NAME, "codex", "x")


def test_a_file_that_is_wrong_already_is_not_changed() -> None:
    with pytest.raises(BadConfig):
        with_value("[consolidate\n", NAME, "codex", "x")


@given(
    st.permutations(["[recall]\nhalf_life_days = 7.5\n", "[daemon]\nidle_exit_s = 60\n", "# 끝\n", "[consolidate]\n"]),
    st.sampled_from(EXTRACTORS),
    st.sampled_from(EXTRACTORS),
)
def test_nothing_but_the_key_changes(parts: list[str], first: str, second: str) -> None:
    text = "".join(parts)
    changed = with_value(with_value(text, NAME, first, "x"), NAME, second, "x")
    expected = {**tomllib.loads(text), "consolidate": {"extractor": second}}
    assert tomllib.loads(changed) == expected
    assert [line for line in changed.splitlines() if "extractor" not in line] == text.splitlines()
