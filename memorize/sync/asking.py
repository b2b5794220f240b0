"""Whether a sync folder answers at all: asked in a process of its own, which may hang without holding anything up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from memorize.sync import names

# So long a folder may take for the names of everything in it.
ANSWER_S: Final = 30.0
_POLL_S: Final = 0.02
_KILL_S: Final = 1.0


class Asking:
    """Asks folders for their names. One that hangs is not asked again while the question before still does."""

    def __init__(self) -> None:
        """Nobody was asked yet."""
        self._hanging: dict[str, subprocess.Popen[bytes]] = {}

    def ask(
        self, folders: Iterable[str], seconds: float = ANSWER_S, wait: Callable[[float], object] = time.sleep
    ) -> Mapping[str, int | None]:
        """Return folder -> a number of its names (``names.number_of``), None when it does not answer within the time.

        ``wait`` is called with seconds between two looks; what it returns that is true ends the waiting.
        """
        stuck = {folder: child for folder, child in self._hanging.items() if child.poll() is None}
        wanted = list(dict.fromkeys(folders))
        asked = {folder: _started(folder) for folder in wanted if folder not in stuck}
        end = time.monotonic() + seconds
        while any(child.poll() is None for child in asked.values()) and time.monotonic() < end:
            if wait(_POLL_S):
                break
        late = [folder for folder, child in asked.items() if child.poll() is None]
        for folder in late:
            if not _ended(asked[folder]):
                stuck[folder] = asked[folder]
        self._hanging = stuck
        return {folder: None if folder in stuck or folder in late else _number(asked[folder]) for folder in wanted}


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """Kill a process; False when it does not hear that, as one that waits in the kernel may not."""
    assert child.stdout is not None
    child.stdout.close()
    child.kill()
    try:
        child.wait(_KILL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _started(folder: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-I", "-S", names.__file__, folder]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def _number(child: subprocess.Popen[bytes]) -> int:
    """Return what it said; 0 when it failed otherwise than by hanging: a round will say why."""
    assert child.stdout is not None
    with child.stdout as out:
        said = out.read()
    return int(said) if said.isdigit() else 0
