"""What the processes that a test starts need: this code to import, and ears for Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys


def environ() -> dict[str, str]:
    """Return this environment, and where the code under test lies."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def hear() -> None:
    """Have a child notice Ctrl-C also where the tests were started in the background; for ``preexec_fn``."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
