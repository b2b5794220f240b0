"""One trial run of the hook, before an agent's settings name it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memorize.agents.hookline import hook_line
from memorize.errors import HookFails
from memorize.paths import Home

_TRIAL_S: Final = 20
_TRIAL_EVENT: Final = "Stop"
_GUARD: Final = " 2>/dev/null || :"


def try_hook(python: str, home: Home, agent: str, environ: Mapping[str, str]) -> None:
    """Run the hook once as the agent will, without its guard, into a state directory that is thrown away.

    Raises ``HookFails`` when it does not end well, says anything, or captures nothing.
    """
    with tempfile.TemporaryDirectory(prefix=".trial-", dir=home.root) as folder:
        keep = ("PATH", "SYSTEMROOT", "HOME", "USERPROFILE", "TMPDIR", "TEMP", "LANG")
        clean = {name: environ[name] for name in keep if name in environ} | {"MEMORIZE_HOME": folder}
        line = hook_line(python, str(home.hook_program), agent, _TRIAL_EVENT).removesuffix(_GUARD)
        direct = [python, "-I", "-S", str(home.hook_program), agent, _TRIAL_EVENT]
        command = direct if sys.platform == "win32" else ["/bin/sh", "-c", line]
        try:
            done = subprocess.run(
                command, input=b"{}", capture_output=True, cwd=folder, env=clean, timeout=_TRIAL_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HookFails(detail=str(error)) from None
        spool = Home(Path(folder)).spool / "new"
        if done.returncode or done.stdout or not (spool.is_dir() and any(spool.iterdir())):
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().rsplit("\n", 1)[-1][:200]
            raise HookFails(detail=said or f"it captured nothing, status {done.returncode}")
