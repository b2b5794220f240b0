"""One number of the names in a sync folder.

A network mount whose server is gone may keep whoever lists it in the kernel, for ever and deaf to signals, and whatever
it holds with it. So a process of its own lists, which holds nothing (``asking``): this file, run by its path. It
imports no more than that needs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib


def number_of(folder: str) -> int:
    """Return a number that changes with the names and sizes below ``memorize`` in a folder; 0 when there is nothing."""
    found: list[tuple[str, int]] = []
    for at, _, names in os.walk(os.path.join(folder, "memorize")):  # noqa: PTH118 - a walk of thousands of names
        for name in names:
            size = -1
            with contextlib.suppress(OSError):
                size = os.lstat(os.path.join(at, name)).st_size  # noqa: PTH118
            found.append((f"{at}/{name}", size))
    return zlib.crc32(repr(sorted(found)).encode("utf-8", "surrogateescape")) if found else 0


if __name__ == "__main__":
    os.write(1, b"%d" % number_of(sys.argv[1]))
