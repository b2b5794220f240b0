"""The machine that the agents run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real.kit import Machine

# npm takes its settings from the person's home, which every test's own one hides.
os.environ.setdefault("MEMORIZE_TEST_NPM_HOME", os.environ.get("HOME", ""))


@pytest.fixture
def machine(own_home: Path, tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as stack:
        found = Machine(tmp_path, stack)
        yield found
        found.memorize("daemon", "stop")
