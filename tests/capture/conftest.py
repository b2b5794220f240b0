"""A state directory with the hook in it, with a path short enough for a socket."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.kit import Hook


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    root = Path(tempfile.mkdtemp(prefix="mz"))
    work = tmp_path / "repo"
    work.mkdir()
    yield Hook(root, work)
    shutil.rmtree(root)
