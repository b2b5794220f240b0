"""Run histories again: ``python -m tests.sync.simulator SEED [--trace] [--count N] [--control NAME]``."""

from __future__ import annotations

import argparse
import sys
import time

from tests.sync.simulator.controls import CONTROLS
from tests.sync.simulator.history import run
from tests.sync.simulator.world import Rules


def main() -> int:
    """Print what does not hold; the status is 1 when there is something."""
    parser = argparse.ArgumentParser(prog="python -m tests.sync.simulator", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, default=1, help="run so many seeds from this one on")
    parser.add_argument("--trace", action="store_true", help="print every step")
    parser.add_argument("--control", choices=sorted(CONTROLS), help="with this fault built in")
    given = parser.parse_args()
    rules = CONTROLS[given.control] if given.control else Rules()
    began, bad = time.monotonic(), 0
    for seed in range(given.seed, given.seed + given.count):
        outcome = run(seed, rules, print if given.trace else lambda line: None)
        if outcome.complaints:
            bad += 1
            print(outcome)
        elif given.count == 1:
            print(f"seed {seed}: {outcome.events} events on {outcome.devices} devices, everything holds")
    if given.count > 1:
        took = (time.monotonic() - began) * 1000 / given.count
        print(f"{given.count} histories, {bad} of them broken, {took:.1f} ms each")
    return 1 if bad else 0


sys.exit(main())
