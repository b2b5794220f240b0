"""The hook directory: the hook's programs, the interpreter that runs them, and the daemon's start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import memorize
from memorize.agents.write import make_private, read, replace
from memorize.capture import install as programs
from memorize.errors import CannotWrite
from memorize.paths import Home

_DAEMON: Final = '''"""Started by the hook: puts memorize on the path and serves. Written by setup."""
import sys
sys.path.insert(0, {site!r})
from memorize.daemon.serve import main
raise SystemExit(main())
'''


def extra_files(python: str) -> Mapping[str, bytes]:
    """Return name -> content of the files that lie beside the hook's programs."""
    site = str(Path(memorize.__file__).resolve().parent.parent)
    daemon = _DAEMON.format(site=site).encode("utf-8", "surrogateescape")
    return {"python": python.encode("utf-8", "surrogateescape"), "memorize_daemon.py": daemon}


def put_hook_files(home: Home, python: str) -> None:
    """Bring the hook directory up to date. Raises ``CannotWrite``."""
    make_private(home.root)
    try:
        programs.install_hook(home.hook)
    except OSError as error:
        raise CannotWrite(path=home.hook, detail=error.strerror or error) from None
    for name, content in extra_files(python).items():
        if read(home.hook / name) != content:
            replace(home.hook / name, content)


def remove_hook_files(home: Home) -> None:
    """Remove what ``put_hook_files`` wrote; what the hook and the daemon keep there stays."""
    for name in (*reversed(list(programs.hook_files())), *extra_files("")):
        (home.hook / name).unlink(missing_ok=True)
