"""A place for a daemon, with a path short enough for a socket; no daemon outlives its test."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.kit import Place

collect_ignore_glob = ["test_*.py"] if sys.platform == "win32" else []


@pytest.fixture
def place(own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="d", dir=tmp_path_factory.getbasetemp()))
    monkeypatch.setenv("MEMORIZE_HOME", str(root / "h"))
    found = Place(root)
    yield found
    found.end()
