"""The lean child: prints the stored brief of a directory when there is no daemon to ask.

Run by the hook as ``python -I -S memorize_lean.py <agent> <cwd> <nonce>`` with 1.5 s to live. Output: one line with the
delivered record (JSON, may be empty), then the exact text for the agent. Status 1 and no output for everything else.
"""
# The hook directory holds a copy of this file, run without site-packages: only os and sqlite3, as an agent is waiting
# (json would double the start; the ingester reads the record with care anyway).

import os
import sqlite3
import sys

LOCK_WAIT_S = 1.0


def project_of(index: sqlite3.Connection, cwd: str) -> str:
    """Return the project of ``cwd`` or of the nearest directory above it that is known; empty when none is."""
    path = cwd
    while True:
        row = index.execute("SELECT project FROM places WHERE path = ?", (path,)).fetchone()
        if row:
            root = index.execute("SELECT root FROM projects WHERE key = ?", (row[0],)).fetchone()
            return str(root[0] if root and root[0] else row[0])
        above = os.path.dirname(path)
        if above in ("", path):
            return ""
        path = above


def brief(home: str, agent: str, cwd: str) -> bytes:
    """Return what is to be printed; empty when nothing is stored. ``sqlite3.Error`` or ``ValueError`` on trouble."""
    name = f"{home}/index.sqlite".replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    index = sqlite3.connect(f"file:{name}?mode=ro", uri=True, timeout=LOCK_WAIT_S)
    project = project_of(index, cwd)
    row = index.execute("SELECT record, text FROM briefs WHERE project = ? AND agent = ?", (project, agent)).fetchone()
    if not row or not row[1]:
        return b""
    record, text = (cell if isinstance(cell, bytes) else str(cell or "").encode() for cell in row)
    return b"" if b"\n" in record else record + b"\n" + text


def main(argv: list[str]) -> int:
    """Print the brief; 0 when there was one, else 1. Arguments after the nonce belong to events without one."""
    try:
        _, agent, cwd, _nonce = argv
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        output = brief(os.environ.get("MEMORIZE_HOME") or here, agent, cwd)
        sys.stdout.buffer.write(output)
        sys.stdout.buffer.flush()
    except (OSError, ValueError, sqlite3.Error):
        return 1
    return 0 if output else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
