"""The lean child: prints the stored brief of a directory when there is no daemon to ask.

Run by the hook as ``python -I -S memorize_lean.py <agent> <cwd> <nonce>`` with 1.5 s to live. Output: one line with the
delivered record (JSON, may be empty), then the exact text for the agent. Status 1 and no output for everything else.

Before a tool, ``<agent> <cwd> <nonce> <event> <name>``, it becomes the full program, which answers once in that form.
"""
# The hook directory holds a copy of this file, run without site-packages: only os and sqlite3, as an agent is waiting
# (json would double the start; the ingester reads the record with care anyway).

import os
import sqlite3
import sys

LOCK_WAIT_S = 1.0
_OF_DIRECTORY = "select record, text from briefs where agent = ? and directory = ?"
# A path may be known from several devices; the latest word on it counts.
_OF_PLACE = """
select b.record, b.text from places p left join projects r on r.key = p.project
join briefs b on b.project in (p.project, r.root) where p.path = ? and b.agent = ?
order by p.lamport desc, b.project = r.root desc, length(b.directory) limit 1
"""


def upwards(cwd: str) -> list[str]:
    """Return ``cwd`` and the directories above it, ending with the root of the repository that it lies in."""
    found = [cwd]
    while not os.path.lexists(os.path.join(found[-1], ".git")):
        above = os.path.dirname(found[-1])
        if above in ("", found[-1]):
            break
        found.append(above)
    return found


def stored(index: sqlite3.Connection, agent: str, cwd: str) -> tuple[object, object] | None:
    """Return record and text of the brief for ``cwd`` or the nearest known directory above it."""
    for path in upwards(cwd):
        row = (
            index.execute(_OF_DIRECTORY, (agent, path)).fetchone() or index.execute(_OF_PLACE, (path, agent)).fetchone()
        )
        if row:
            return row[0], row[1]
    return None


def brief(home: str, agent: str, cwd: str) -> bytes:
    """Return what is to be printed; empty when nothing is stored. ``sqlite3.Error`` on trouble."""
    name = f"{home}/index.sqlite".replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    index = sqlite3.connect(f"file:{name}?mode=ro", uri=True, timeout=LOCK_WAIT_S)
    row = stored(index, agent, cwd)
    record, text = (cell if isinstance(cell, bytes) else str(cell or "").encode() for cell in row or ("", ""))
    return record + b"\n" + text if text and b"\n" not in record else b""


def main(argv: list[str]) -> int:
    """Print the brief; 0 when there was one, else 1."""
    try:
        if len(argv) == 6:
            program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memorize_daemon.py")
            os.execv(sys.executable, [sys.executable, "-I", program, "before", argv[5]])
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
