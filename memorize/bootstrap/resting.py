"""Whether the log and its index are at rest: a look that takes no lock and loads nothing that writes.

Most verbs only read, and mostly nothing has come since the last one. What the look cannot tell for sure is the
ingester's to find out, so it never says "at rest" where a run of it would change an answer.
"""

from __future__ import annotations

from memorize.index.erasures import is_open
from memorize.index.read import Reader
from memorize.log.files import Files
from memorize.log.segments import RECEIVED, SEGMENTS, SUFFIX
from memorize.paths import Home


def spool_is_empty(home: Home, files: Files) -> bool:
    """Tell whether nothing waits in the spool. Raises OSError, FileNotFoundError where there is no spool yet."""
    return not files.names(f"{home.spool}/new")


def is_at_rest(home: Home, files: Files, view: Reader, replica: bytes) -> bool:
    """Tell whether the index reaches to the end of each file of the log, and nothing that was erased is left to do.

    To be asked behind ``spool_is_empty``: what leaves the spool is indexed before. Raises OSError, IndexDamaged, Busy.
    """
    sizes = {
        f"{folder}/{name}": size
        for folder in (SEGMENTS, RECEIVED)
        for name, size in files.sizes(f"{home.root}/{folder}").items()
        if name.endswith(SUFFIX)
    }
    return sizes == dict(view.offsets()) and not is_open(view.connection, replica)
