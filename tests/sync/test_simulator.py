"""Whatever happens between replicas, in the end all hold the same memory: seeded histories in memory.

A seed that fails is run again by ``python -m tests.sync.simulator SEED --trace``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import count
from tests.sync.simulator.controls import CONTROLS
from tests.sync.simulator.history import run

HISTORIES = count("simulated histories", quick=150, full=5_000)
CHUNKS = 20
# Each fault that is built in on purpose must be seen within so many histories.
CONTROL_SEEDS = 60
_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_whatever_happens_all_replicas_end_up_with_the_same_memory(chunk: int) -> None:
    for seed in range(chunk, HISTORIES, CHUNKS):
        outcome = run(seed)
        assert not outcome.complaints, str(outcome)


@pytest.mark.parametrize("name", sorted(CONTROLS))
def test_a_fault_that_is_built_in_turns_the_simulator_red(name: str) -> None:
    assert any(run(seed, CONTROLS[name]).complaints for seed in range(CONTROL_SEEDS)), f"{name} was not noticed"


def test_a_seed_tells_the_same_history_in_another_process() -> None:
    for seed in (3, 4, 5):
        lines: list[str] = []
        run(seed, trace=lines.append)
        environ = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-m", "tests.sync.simulator", str(seed), "--trace"]
        told = subprocess.run(command, cwd=_ROOT, env=environ, capture_output=True, text=True, check=True)
        assert told.stdout.splitlines()[: len(lines)] == lines
