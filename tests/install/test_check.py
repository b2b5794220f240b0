"""The one check: what it says when it is asked for something that it has not got."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a shell script")


def check(*words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(ROOT / "check"), *words],
        env=environ or dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_check_tells_how_it_is_used_without_preparing_anything() -> None:
    done = check("--help")
    assert done.returncode == 0
    assert "Usage: ./check [--full] [STEP ...]" in done.stdout
    assert "Needs Python 3.11" in done.stdout


def test_a_step_that_does_not_exist_is_refused_with_the_names_of_those_that_do() -> None:
    done = check("frobnicate")
    assert done.returncode == 1
    steps = re.search(r"^all_steps='(.+)'$", (ROOT / "check").read_text("utf-8"), re.MULTILINE)
    assert steps is not None
    assert done.stderr == f"check: there is no step called frobnicate; choose from: {steps.group(1)}\n"


def test_every_step_in_the_list_is_a_function_and_every_function_is_in_the_list() -> None:
    text = (ROOT / "check").read_text("utf-8")
    steps = re.search(r"^all_steps='(.+)'$", text, re.MULTILINE)
    assert steps is not None
    assert sorted(steps.group(1).split()) == sorted(re.findall(r"^step_(\w+)\(\)", text, re.MULTILINE))


def test_without_a_python_and_without_uv_it_names_the_remedy(tmp_path: Path) -> None:
    # Only what a shell needs is on PATH; the folder is a copy, so that nothing prepared is found.
    for name in ("dirname", "cksum", "tr", "cut", "date", "rm", "mkdir"):
        real = next(path for path in (Path("/usr/bin") / name, Path("/bin") / name) if path.exists())
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(real)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.txt").write_text("nothing\n", encoding="ascii")
    copy = tmp_path / "check"
    copy.write_bytes((ROOT / "check").read_bytes())
    done = subprocess.run(
        ["/bin/sh", str(copy)],
        env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11 or newer with venv and pip is needed" in done.stderr
    assert "or uv" in done.stderr
