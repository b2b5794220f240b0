"""What bash really runs of the table's lines: no program that runs may be missing from what fires."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from memorize.recall.triggers import triggers_of
from tests.counts import count
from tests.recall.command_lines import ALIASES, DOCUMENTS, FIRST, OWN, POSIX, QUOTING, SECOND, STRUCTURE

# Programs that only note how they were called, and those that really run, since they run others.
_STUBS: Final = (
    "git git.exe gh glab hub npm pnpm yarn bun cargo twine uv poetry pip pip3 docker podman terraform tofu kubectl helm"
    " rm go make fly kustomize alembic prisma migrate dbmate sqlx npx flask rails php dotnet python python3 rimraf"
).split()
_REAL: Final = "bash sh cat env xargs nice nohup timeout stdbuf setsid tee wc ls tail grep true false sleep".split()
_BASH: Final = shutil.which("bash")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs of which the dangerous ones only write down their arguments."""
    box = tmp_path_factory.mktemp("box")
    (box / "bin").mkdir()
    (box / "work").mkdir()
    for name in _REAL:
        if (found := shutil.which(name)) is not None:
            (box / "bin" / name).symlink_to(found)
    for name in _STUBS:
        stub = box / "bin" / name
        stub.write_text(f'#!{_BASH}\nprintf "%s\\0" {name} "$@" >> "{box}/ran"\nprintf "\\n\\0" >> "{box}/ran"\n')
        stub.chmod(0o700)
    return box


def _ran(box: Path, line: str) -> list[list[str]]:
    """Run a line and return the commands that were called."""
    (box / "ran").write_bytes(b"")
    subprocess.run(
        [str(_BASH), "--norc", "--noprofile", "-c", line],
        env={"PATH": str(box / "bin"), "HOME": str(box / "work"), "LC_ALL": "C.UTF-8"},
        cwd=box / "work",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    said = (box / "ran").read_text(errors="surrogateescape").split("\0")
    found: list[list[str]] = [[]]
    for word in said[:-1]:
        if word == "\n":
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


@pytest.mark.skipif(_BASH is None or os.name == "nt", reason="bash is not installed")
def test_whatever_bash_runs_of_a_line_has_fired(box: Path) -> None:
    # In a here-document without quotes a substitution runs, but its body is no command to us; and a program whose
    # whole name comes out of a variable is unknown.
    table = dict.fromkeys((*FIRST, *SECOND, *QUOTING, *STRUCTURE, *DOCUMENTS, *POSIX))
    lines = [one for one in table if "$(gh" not in one[1] and not one[1].startswith("${GIT")]
    missed, silent = [], 0
    for fires, line in lines[: count("command lines run by bash", quick=150, full=10_000)]:
        commands = _ran(box, line)
        for command in commands:
            ran = triggers_of(shlex.join(command), aliases=ALIASES, own=OWN)
            missed += [(line, command) for name in ran if name not in fires.split()]
        silent += bool(fires) and not commands
    assert missed == []
    assert silent < len(lines) / 2, "the box runs hardly anything"
