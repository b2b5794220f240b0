"""A download that was cut off anywhere must do nothing, in any shell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.counts import count

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / "install.sh").read_bytes()
# Whatever the script may call; inside the trap each of them only writes down that it was called.
PROGRAMS = """
uname ls awk id dirname basename mktemp mkdir rmdir rm cp mv ln readlink sed grep cut tr sort cat sha256sum curl wget
uv pipx python3 python memorize
""".split()
SHELLS = tuple(
    words
    for words in (
        ("dash",),
        ("bash",),
        ("bash", "--posix"),
        ("busybox", "sh"),
        ("zsh",),
        ("mksh",),
        ("posh",),
        ("ksh",),
    )
    if shutil.which(words[0])
)
# What /bin/sh is on most machines: a full run tries every byte in these.
USUAL = ("dash", "bash", "busybox")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder of programs of which each leaves a line in ``called`` when it runs, and an empty home."""
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    for name in PROGRAMS:
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\necho {name} >>'{tmp_path}/called'\n", encoding="ascii")
        program.chmod(0o755)
    return tmp_path


def acts(trap: Path, shell: tuple[str, ...], script: bytes) -> bool:
    """Tell whether a shell that reads these bytes from a pipe does anything that can be noticed."""
    try:
        said = subprocess.run(
            [str(shutil.which(shell[0])), *shell[1:]],
            input=script,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"HOME": str(trap / "home"), "PATH": str(trap / "bin")},
            cwd=trap / "home",
            timeout=20,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as hung:
        # ksh93 never ends by itself behind "cat <<'EOF'" and nothing more; what counts is what was done until then.
        said = hung.stdout or b""
    return bool(said) or (trap / "called").exists() or any((trap / "home").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_script_that_was_cut_off_does_nothing_wherever_the_cut_is(trap: Path, shell: tuple[str, ...]) -> None:
    # The last bytes are where other installers fail, so they are always tried one by one.
    whole = len(SCRIPT.rstrip())
    full = whole if shell[0] in USUAL else 2_000
    wanted = count(f"cuts of install.sh fed to {' '.join(shell)}", quick=120, full=full)
    cuts = sorted({*range(0, whole, max(1, whole // wanted)), *range(whole - 60, whole)})
    assert [cut for cut in cuts if acts(trap, shell, SCRIPT[:cut])] == []


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_whole_script_acts_so_the_trap_can_be_trusted(trap: Path, shell: tuple[str, ...]) -> None:
    assert acts(trap, shell, SCRIPT)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_the_trap_notices_a_script_whose_last_line_is_a_plain_call(trap: Path, shell: tuple[str, ...]) -> None:
    # The shape that this script does not have: cut right after the name, it runs without its arguments.
    plain = b'main() {\n  uname\n}\nmain "$@"\n'
    assert acts(trap, shell, plain[: plain.rindex(b" ")])
