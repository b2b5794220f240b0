"""The one shell line in an agent's settings. It never changes between versions: Codex ties its trust to it."""

from __future__ import annotations

from typing import Final

from memorize.errors import BadHome
from memorize.patterns import late

_SPECIAL: Final = late(r'([\\"$`])')


def hook_line(python: str, program: str, agent: str, event: str, *, windows: bool = False) -> str:
    """Return the command by which ``agent`` calls the hook program at ``event``.

    The guard at the end is what keeps a missing file from blocking the agent: python exits with 2 then, which most
    agents take for "no". Raises ``BadHome`` for a path that no settings file can hold.
    """
    for path in (python, program):
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            shown = path.encode("utf-8", "replace").decode("utf-8")
            raise BadHome(path=shown, detail="the path is not valid UTF-8") from None
    if windows:
        return _windows_line(python, program, agent, event)
    return f"{quoted(python)} -I -S {quoted(program)} {agent} {event} 2>/dev/null || :"


def quoted(path: str) -> str:
    """Quote for a POSIX shell. A newline stands for itself between double quotes."""
    return '"' + _SPECIAL.sub(r"\\\1", path) + '"'


def _windows_line(python: str, program: str, agent: str, event: str) -> str:
    """Claude Code runs hooks by Git Bash, so its line is POSIX with forward slashes; the others' is for cmd.

    Written from documentation and never run: there is no Windows where this was made.
    """
    if agent == "claude":
        return hook_line(python.replace("\\", "/"), program.replace("\\", "/"), agent, event)
    return f'"{python}" -I -S "{program}" {agent} {event} 2>nul || ver>nul'
