"""What a verification may mend: as little as possible, and the set of verifiable events never gets smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memorize.counted import counted
from memorize.log.files import Files
from memorize.log.identity import peek
from memorize.log.segments import SEGMENTS, SUFFIX, scan_segment, seal
from memorize.log.spool import BATCH, OWN_AGENT, decode_batch, entry, take
from memorize.model import Capture, Draft
from memorize.paths import Home


def mend_active(home: Home, files: Files) -> list[str]:
    """Cut the torn tail of the own active segment, or seal it when it is damaged; say what was done."""
    try:
        identity = peek(home, files)
        prefix = "-" if identity is None else f"{identity.writer.hex()}-"
        own = [name for name in files.names(str(home.segments)) if name.startswith(prefix) and name.endswith(SUFFIX)]
        if not own:
            return []
        name = max(own)
        path = f"{home.segments}/{name}"
        data = files.pread(path, 0, -1)
        found = scan_segment(data)
        if found.header is None or found.footer_at >= 0 or not (found.damages or found.torn):
            return []
        handle = files.reopen(path)
        try:
            if found.damages:
                seal(files, path, handle)
                return [f"sealed {SEGMENTS}/{name}, which is damaged; the next event begins a new segment"]
            files.truncate(handle, len(data) - found.torn)
            files.fdatasync(handle)
        finally:
            files.close(handle)
    except OSError:
        return []  # whatever is wrong with it, the look that follows will say so
    return [f"cut {found.torn} bytes of an unfinished event from the end of {SEGMENTS}/{name}"]


def put_back(home: Home, files: Files, normalise: Callable[[Capture], Sequence[Draft]] | None) -> list[str]:
    """Move what can be read by now from ``bad`` back to ``new``; say what was done."""
    bad, new = f"{home.spool}/bad", f"{home.spool}/new"
    moved = 0
    try:
        for name in sorted(files.names(bad)):
            if _readable(files, bad, name, normalise):
                files.rename(f"{bad}/{name}", f"{new}/{name}")
                moved += 1
        if moved:
            files.sync_dir(new)
            files.sync_dir(bad)
    except OSError:
        pass  # the rest stays where it is and is counted
    return [f"put {counted(moved, 'capture')} back into the spool: readable by now"] if moved else []


def _readable(files: Files, directory: str, name: str, normalise: Callable[[Capture], Sequence[Draft]] | None) -> bool:
    found = entry(name)
    if found is None:
        return False
    try:
        capture = take(files, directory, found)
        if capture.agent == OWN_AGENT and capture.event == BATCH:
            decode_batch(capture.data)
        elif normalise is not None:
            normalise(capture)
    except Exception:  # whatever is wrong with it, it stays where it is
        return False
    return True
