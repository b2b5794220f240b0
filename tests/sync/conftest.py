"""What the tests of sync share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_SHM = Path("/dev/shm")


@pytest.fixture
def ram() -> Iterator[Path]:
    """Give a directory in memory where the machine has one: these tests are not about what a disk keeps."""
    where = _SHM if _SHM.is_dir() and os.access(_SHM, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="memorize-test-", dir=where))
    yield path
    shutil.rmtree(path, ignore_errors=True)
