"""The line in the agents' settings, really run by a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memorize.agents.hookline import hook_line
from memorize.errors import BadHome

PROGRAM = (
    "import sys, json, pathlib\npathlib.Path(sys.argv[0]).with_name('seen').write_text(json.dumps(sys.argv[1:]))\n"
)
ODD = [
    "plain",
    "with space",
    'quo"te',
    "apo'strophe",
    "dol$HOME lar",
    "back`id`tick",
    "back\\slash",
    "new\nline",
    "한글 폴더",
    "a;b&c|d",
    "*?[x]",
    "!bang #hash",
    "end\\",
]

posix = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")


@posix
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_line_runs_whatever_the_path_is_called(odd: str, shell: str, tmp_path: Path) -> None:
    folder = tmp_path / odd / "hook"
    folder.mkdir(parents=True)
    python = folder / "python"
    python.symlink_to(sys.executable)
    program = folder / "memorize_hook.py"
    program.write_text(PROGRAM, encoding="utf-8")
    line = json.loads(json.dumps(hook_line(str(python), str(program), "claude", "Stop")))
    done = subprocess.run([shell, "-c", line], cwd=tmp_path, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert json.loads((folder / "seen").read_text(encoding="utf-8")) == ["claude", "Stop"]
    assert [path.name for path in tmp_path.iterdir()] == [odd]


@posix
@pytest.mark.parametrize("missing", ["python", "program"])
def test_a_missing_part_never_blocks_the_agent(missing: str, tmp_path: Path) -> None:
    python = "/nowhere/python" if missing == "python" else sys.executable
    done = subprocess.run(
        ["sh", "-c", hook_line(python, str(tmp_path / "gone.py"), "codex", "PreToolUse")],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@posix
def test_a_program_that_says_no_never_blocks_the_agent(tmp_path: Path) -> None:
    program = tmp_path / "memorize_hook.py"
    program.write_text("import sys; sys.exit(2)", encoding="utf-8")
    line = hook_line(sys.executable, str(program), "codex", "PreToolUse")
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == 0


def test_a_path_that_no_settings_file_can_hold_is_refused() -> None:
    with pytest.raises(BadHome, match="UTF-8"):
        hook_line("/usr/bin/python3", "/home/\udcff/memorize_hook.py", "claude", "Stop")


def test_the_lines_for_windows_are_what_is_documented() -> None:
    python, program = r"C:\Users\김 하나\venv\python.exe", r"C:\Users\김 하나\memorize\hook\memorize_hook.py"
    assert hook_line(python, program, "claude", "Stop", windows=True) == (
        '"C:/Users/김 하나/venv/python.exe" -I -S "C:/Users/김 하나/memorize/hook/memorize_hook.py" claude Stop'
        " 2>/dev/null || :"
    )
    assert hook_line(python, program, "codex", "Stop", windows=True) == (
        f'"{python}" -I -S "{program}" codex Stop 2>nul || ver>nul'
    )
