"""Work that the daemon lets a process of its own do: it takes more memory than a daemon may keep, or may hang."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Final

from memorize.agents.hookfiles import daemon_program, kept
from memorize.paths import Home

_POLL_S: Final = 0.05


def run_process(home: Home, leave: threading.Event, *words: str) -> bool:
    """Run the daemon's program with these words; True when it ended well. It is killed when ``leave`` is set."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", daemon_program(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**kept(os.environ), "MEMORIZE_HOME": str(home.root)},
    )
    while child.poll() is None:
        if leave.wait(_POLL_S):
            child.kill()
            child.wait()
    return child.returncode == 0
