"""Names of spool files, sockets and briefs."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memorize import limits
from memorize.capture import memorize_hook as hook
from memorize.capture.memorize_hook import brief_key, own_directory, parse_name, socket_path, spool_name
from memorize.paths import Home

WORDS = st.text("abcXYZ019_.", min_size=1, max_size=32)
NONCE = bytes(range(16))


@given(
    st.integers(0, 2**64 - 1),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**40),
    st.integers(0, 2**32 - 1),
    WORDS,
    WORDS,
    st.booleans(),
)
def test_a_name_gives_back_what_it_was_made_of(
    mono: int, nonce: bytes, length: int, crc: int, agent: str, event: str, cut: bool
) -> None:
    name = spool_name(mono, nonce, length, crc, agent, event, cut)
    assert parse_name(name) == (mono, nonce, length, crc, agent, event, cut)
    assert len(name) < 200


@given(st.text(max_size=120))
def test_any_other_text_is_no_name(text: str) -> None:
    parsed = parse_name(text)
    assert parsed is None or spool_name(*parsed) == text


@pytest.mark.parametrize(
    "change",
    [
        ("-claude-", "-claude-code-"),
        ("-Stop", "-Stop-cut-cut"),
        ("-Stop", "-Stop-"),
        ("-Stop", "-정지"),
        ("-5-", "-05-"),
        ("-5-", "-0x5-"),
        ("-5-", "-+5-"),
        ("-5-", "--"),
        ("-000000ff-", "-000000FF-"),
        ("-000000ff-", "-ff-"),
        ("000102", "00_102"),
    ],
)
def test_a_changed_name_is_refused(change: tuple[str, str]) -> None:
    name = spool_name(1, NONCE, 5, 255, "claude", "Stop")
    assert parse_name(name) is not None
    assert change[0] in name
    assert parse_name(name.replace(*change)) is None


@pytest.mark.parametrize(
    ("agent", "event"),
    [("", "Stop"), ("claude", ""), ("a-b", "Stop"), ("클로드", "Stop"), ("x" * 33, "y")],
)
def test_a_name_is_never_made_of_words_that_it_cannot_hold(agent: str, event: str) -> None:
    with pytest.raises(ValueError):
        spool_name(1, NONCE, 0, 0, agent, event)


def test_the_copied_limits_are_the_ones_of_the_program() -> None:
    assert hook.CAPTURE_BYTES_MAX == limits.CAPTURE_BYTES_MAX
    assert hook.HOOK_STDIN_S_MAX == limits.HOOK_STDIN_S_MAX
    assert hook.LATE_MARK_S == limits.LATE_MARK_S
    assert hook.LEAN_CHILD_S_MAX == limits.LEAN_CHILD_S_MAX
    assert [round(s * 1000) for s in (hook.START_S, hook.PROMPT_S, hook.BEFORE_S)] == [
        limits.SESSION_START_MS,
        limits.PROMPT_MS,
        limits.BEFORE_TOOL_MS,
    ]
    assert hook.REPLY_BYTES_MAX >= limits.ANSWER_BYTES_MAX


def test_the_socket_lies_in_the_state_directory_when_its_path_is_short() -> None:
    home = Home(Path("/home/민지/.local/share/memorize"))
    assert socket_path(str(home.root)) == str(home.socket)


@pytest.mark.parametrize("root", ["/home/" + "x" * 90, "/home/" + "기억" * 16])
def test_a_long_path_gives_a_socket_of_its_own_below_tmp(root: str) -> None:
    path = socket_path(root)
    assert path.startswith(f"/tmp/memorize-{os.getuid()}-")
    assert len(os.fsencode(path)) < 100
    assert socket_path(root + "y") != path


def test_only_a_private_directory_of_ones_own_is_trusted(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    assert own_directory(str(private))
    private.chmod(0o750)
    assert not own_directory(str(private))
    private.chmod(0o700)
    (tmp_path / "link").symlink_to(private)
    assert not own_directory(str(tmp_path / "link"))
    assert not own_directory(str(tmp_path / "missing"))
    file = tmp_path / "file"
    file.touch(mode=0o700)
    assert stat.S_ISREG(file.stat().st_mode)
    assert not own_directory(str(file))


def test_a_brief_names_agent_and_directory_in_its_first_line() -> None:
    name, head = brief_key("claude", "/일/저장소")
    assert len(name) == 8
    assert head == "claude\t/일/저장소\n".encode()
    assert brief_key("codex", "/일/저장소")[0] != name


def test_importing_the_hook_does_nothing() -> None:
    code = "import sys, memorize.capture.memorize_hook; print(*sys.argv)"
    done = subprocess.run(
        [sys.executable, "-c", code, "claude", "Stop"], capture_output=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout == b"-c claude Stop\n"
