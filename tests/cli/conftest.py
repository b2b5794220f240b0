"""A wired home, a project without git, and a person who types."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memorize.agents.hookfiles import put_hook_files
from memorize.paths import Home
from tests.cli.kit import Person


@pytest.fixture
def person(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Person:
    project = tmp_path / "결제 checkout"
    project.mkdir()
    monkeypatch.chdir(project)
    home = Home(own_home / "memorize state")
    put_hook_files(home, sys.executable)
    (home.hook / "nodaemon").touch()
    return Person(home, project, capsys)
