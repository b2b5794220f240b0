"""When the hook leaves at once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.capture.kit import PAYLOAD, Hook


@pytest.mark.parametrize("environ", [{"MEMORIZE_GUARD": "1"}, {"MEMORIZE_GUARD": "yes"}, {"MEMORIZE_DISABLED": "1"}])
@pytest.mark.parametrize("event", ["Stop", "SessionStart"])
def test_guard_and_opt_out_leave_no_trace(hook: Hook, environ: dict[str, str], event: str) -> None:
    assert hook.run("claude", event, environ=environ) == b""
    assert not (hook.root / "spool").exists()


@pytest.mark.parametrize("environ", [{"MEMORIZE_GUARD": ""}, {"MEMORIZE_DISABLED": "0"}, {"MEMORIZE_DISABLED": ""}])
def test_empty_variables_do_not_count(hook: Hook, environ: dict[str, str]) -> None:
    hook.run("claude", "Stop", environ=environ)
    assert len(hook.captures()) == 1


def test_a_hook_of_an_agent_that_a_guarded_program_started_leaves_as_well(hook: Hook) -> None:
    done = hook.call("claude", "Stop", shell='sh -c \'"$@"\' sh "$@"', environ={"MEMORIZE_GUARD": "1"})
    assert (done.returncode, done.stdout) == (0, b"")
    assert not (hook.root / "spool").exists()


LINES = {
    "plain": b"capture = false\n",
    "no spaces": b"capture=false",
    "many spaces": b"  \tcapture\t =   false  \r\n",
    "comment": b"# \xec\x9d\xb4 \xec\xa0\x80\xec\x9e\xa5\xec\x86\x8c\ncapture = false # never\n",
    "byte order mark": b"\xef\xbb\xbfcapture = false\n",
    "last of many": b'id = "x"\n[other]\nname = "y"\ncapture = false\n',
    "not UTF-8": b"name = '\xff'\ncapture = false\n",
}


@pytest.mark.parametrize("text", LINES.values(), ids=LINES.keys())
@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_project_opts_out_by_a_line_in_its_file(hook: Hook, text: bytes, depth: int) -> None:
    (hook.cwd / ".memorize.toml").write_bytes(text)
    inside = hook.cwd.joinpath(*["아래"] * depth)
    inside.mkdir(parents=True, exist_ok=True)
    hook.run("claude", "SessionStart", cwd=inside)
    assert not (hook.root / "spool").exists()


@pytest.mark.parametrize(
    "text",
    [b"capture = true\n", b"# capture = false\n", b"capture = falsehood\n", b"precapture = false\n", b"", b"\0" * 99],
)
def test_other_lines_do_not_opt_out(hook: Hook, text: bytes) -> None:
    (hook.cwd / ".memorize.toml").write_bytes(text)
    hook.run("claude", "Stop")
    assert len(hook.captures()) == 1


def test_a_directory_in_place_of_the_file_does_not_count(hook: Hook) -> None:
    (hook.cwd / ".memorize.toml").mkdir()
    hook.run("claude", "Stop")
    assert len(hook.captures()) == 1


@pytest.mark.parametrize("written", ["{dir}", "  {dir}/  ", "{dir}\r", "~/repo", "{link}", "# note\n/없는 곳\n{dir}"])
def test_excluded_directories_are_not_captured(hook: Hook, tmp_path: Path, written: str) -> None:
    (tmp_path / "link").symlink_to(hook.cwd)
    inside = hook.cwd / "깊은" / "곳"
    inside.mkdir(parents=True)
    text = written.format(dir=hook.cwd, link=tmp_path / "link") + "\n"
    (hook.root / "exclude").write_text(text, encoding="utf-8", newline="")
    for place in (hook.cwd, inside):
        hook.run("claude", "Stop", cwd=place, environ={"HOME": str(tmp_path)})
    assert not (hook.root / "spool").exists()
    beside = tmp_path / "repo2"
    beside.mkdir()
    hook.run("claude", "Stop", cwd=beside, environ={"HOME": str(tmp_path)})
    hook.run("claude", "Stop", cwd=tmp_path, environ={"HOME": str(tmp_path)})
    assert len(hook.captures()) == 2


@pytest.mark.parametrize("text", [b"", b"\n\n", b"relative/repo\n", b"\xff\xfe\n", b"/\0\n"])
def test_an_exclude_file_without_a_matching_directory_excludes_nothing(hook: Hook, text: bytes) -> None:
    (hook.root / "exclude").write_bytes(text)
    hook.run("claude", "Stop")
    assert len(hook.captures()) == 1


def test_a_working_directory_that_is_gone_is_captured(hook: Hook, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = hook.call("claude", "SessionStart", cwd=gone, shell='rmdir "$PWD"; exec "$@"')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert hook.captures() == [("claude", "SessionStart", False, PAYLOAD)]
    assert not gone.exists()
    shutil.rmtree(gone, ignore_errors=True)
