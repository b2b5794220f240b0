"""The hook directory: the hook's programs, the interpreter that runs them, and the daemon's start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import memorize
from memorize.agents.write import make_private, read, replace
from memorize.capture import install as programs
from memorize.environment import MARKS, own
from memorize.errors import CannotRead, CannotWrite
from memorize.paths import Home

# Makes the GNU C library give freed memory back: by itself it would keep a third of what a backlog once needed.
_THRIFT: Final = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "262144"}

_FOLLOWS: Final = b"daemon.start = never\n"
_DAEMON: Final = '''"""Serves, in an environment without the marks of whoever started it."""
import os
import re
import sys
if not sys.argv[1:]:
    own = {{k: v for k, v in os.environ.items() if not re.fullmatch({marks!r}, k)}}
    os.execve(sys.executable, [sys.executable, "-I", __file__, "serve"], {{**own, **{thrift!r}}})
os.closerange(3, 1 << 16)
if {site!r} not in sys.path:
    sys.path.insert(0, {site!r})
if sys.argv[1] == "before":
    import gc
    gc.disable()  # it lives for one answer
    from memorize.daemon.once import main
else:
    from memorize.daemon.serve import main
raise SystemExit(main(sys.argv[1:]))
'''


def kept(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the daemon's environment is to be, made of the one of whoever starts it."""
    return {**own(environ), **_THRIFT}


def daemon_program() -> str:
    """Return the program that the hook and ``daemon start`` run to serve from where this package lies."""
    site = str(Path(memorize.__file__).resolve().parent.parent)
    return _DAEMON.format(site=site, marks=MARKS, thrift=_THRIFT)


def extra_files(python: str) -> Mapping[str, bytes]:
    """Return name -> content of the files that lie beside the hook's programs."""
    daemon = daemon_program().encode("utf-8", "surrogateescape")
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


def follow_start(home: Home, start: str) -> None:
    """Make the hook follow ``daemon.start``: with ``never`` a mark keeps it from starting a daemon.

    A mark that somebody else put there stays. Cheap enough for every verb; nothing is made where there is no hook.
    """
    mark = home.hook / "nodaemon"
    try:
        found = read(mark)
        if start == "never" and found is None and home.hook.is_dir():
            replace(mark, _FOLLOWS)
        elif start != "never" and found == _FOLLOWS:
            mark.unlink(missing_ok=True)
    except (OSError, CannotRead, CannotWrite):
        return  # the next verb will see to it


def remove_hook_files(home: Home) -> None:
    """Remove what ``put_hook_files`` wrote; what the hook and the daemon keep there stays."""
    for name in (*reversed(list(programs.hook_files())), *extra_files("")):
        (home.hook / name).unlink(missing_ok=True)
