"""A release for real: made, served on this machine, installed from a pipe, used, and taken away again.

Needs the package index that the machine uses, like ./check itself.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="install.sh is for the other systems"),
    pytest.mark.skipif("MEMORIZE_TEST_WHEEL" in os.environ, reason="installs a wheel of its own"),
    pytest.mark.xdist_group("release"),
]


class Release(NamedTuple):
    folder: Path
    address: str
    printed: str


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the base class's
        """Say nothing."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("served")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/memorize"
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        made = subprocess.run(
            [str(ROOT / "scripts" / "release"), address, str(folder / "memorize")],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        yield Release(folder / "memorize", address, made.stdout)
        server.shutdown()
        thread.join()


@pytest.fixture
def person(own_home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a person with an odd home, a Python and no uv; memories lie outside the home."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(sys.executable)
    home = own_home / "mit ö und 한글"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if re.match(r"(PIP|SSL|GIT|REQUESTS|CURL)_|LANG$", name)}
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "MEMORIZE_HOME": str(tmp_path / "state"),
        "PIP_NO_WARN_SCRIPT_LOCATION": "1",
    }


def sh(person: dict[str, str], line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line],
        env=person,
        cwd=person["HOME"],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def picture(folder: Path) -> dict[str, str]:
    """Return every file and folder below, with its contents."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def test_a_release_holds_what_it_says_and_its_sums_hold(release: Release) -> None:
    sums = dict(line.split()[::-1] for line in (release.folder / "SHA256SUMS").read_text("ascii").splitlines())
    names = {path.name for path in release.folder.iterdir()}
    assert set(sums) == names - {"SHA256SUMS"}
    assert {"install.sh", "install.ps1", "requirements.txt", "CHANGES.md"} < names
    for name, expected in sums.items():
        assert hashlib.sha256((release.folder / name).read_bytes()).hexdigest() == expected
    assert f"curl -fsSL {release.address}/install.sh | sh" in release.printed


def test_both_scripts_of_a_release_pin_the_same_address_version_and_sums(release: Release) -> None:
    pinned = re.compile(r"^\s*\$?([A-Z_]+(?:URL|VERSION|SHA256)) ?= ?'(.*)'", re.MULTILINE)
    shell = dict(pinned.findall((release.folder / "install.sh").read_text("utf-8")))
    assert dict(pinned.findall((release.folder / "install.ps1").read_text("ascii"))) == shell
    [wheel] = release.folder.glob("*.whl")
    assert shell == {
        "RELEASE_URL": release.address,
        "RELEASE_VERSION": wheel.name.split("-")[1],
        "WHEEL_SHA256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "LOCK_SHA256": hashlib.sha256((release.folder / "requirements.txt").read_bytes()).hexdigest(),
    }


def test_the_lock_of_the_program_names_a_hash_for_everything_and_no_index() -> None:
    for name in ("run.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text("utf-8")
        packages = re.findall(r"^[a-z0-9].*?(?=^[a-z0-9]|\Z)", text, re.MULTILINE | re.DOTALL)
        assert len(packages) > 4
        assert [package for package in packages if "==" not in package or "--hash=sha256:" not in package] == []
        assert "http" not in text


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_installed_from_a_pipe_it_captures_and_leaves_the_home_as_it_was(
    release: Release, person: dict[str, str]
) -> None:
    home = Path(person["HOME"])
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    settings = home / ".claude" / "settings.json"
    settings.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say 끝"}]}]}}', "utf-8")
    (home / ".codex" / "hooks.json").write_text('{"hooks": {}}\n', encoding="utf-8")
    before = picture(home)

    pipe = f"curl -fsSL {release.address}/install.sh | sh -s --"
    installed = sh(person, f"{pipe} --agent claude --agent codex")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    program = home / ".local" / "bin" / "memorize"
    assert program.exists()

    [command] = set(re.findall(r'"command": *("(?:[^"\\]|\\.)*UserPromptSubmit[^"]*")', settings.read_text("utf-8")))
    payload = json.dumps(
        {"session_id": "s", "cwd": str(home), "prompt": "메모 하나", "hook_event_name": "UserPromptSubmit"}
    )
    hook = sh(person, json.loads(command), payload)
    assert (hook.returncode, hook.stdout, hook.stderr) == (0, "", "")
    logged = sh(person, f"'{program}' log --kind observed.prompt --limit 1 --json")
    assert "메모 하나" in logged.stdout, logged.stderr

    again = sh(person, f"{pipe} --agent claude")
    assert again.returncode == 0, again.stderr

    gone = sh(person, f"{pipe} --uninstall")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert picture(home) == before
    # A hook that an open session still has in its settings: gone, and so is its noise.
    assert sh(person, json.loads(command), payload).stdout == ""


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_a_release_whose_wheel_was_changed_is_not_installed(release: Release, person: dict[str, str]) -> None:
    [wheel] = release.folder.glob("*.whl")
    good = wheel.read_bytes()
    wheel.write_bytes(good + b"x")
    try:
        done = sh(person, f"curl -fsSL {release.address}/install.sh | sh")
    finally:
        wheel.write_bytes(good)
    assert done.returncode == 1
    assert "is not the file that this script was made for" in done.stderr
    assert not (Path(person["HOME"]) / ".local" / "bin").exists()
