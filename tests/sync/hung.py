"""A folder that never answers: a real file system whose server takes no request, as a network mount may have it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_DETACH = 2


@contextlib.contextmanager
def hung(folder: Path) -> Iterator[None]:
    """Mount a file system over a folder whose every request waits, until this ends."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root on Linux may mount here")
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"there is no FUSE: {error}")
    try:
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % server
        if libc.mount(b"hung", os.fsencode(folder), b"fuse", 0, options):
            pytest.skip(f"nothing can be mounted: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.umount2(os.fsencode(folder), _DETACH)
    finally:
        os.close(server)  # whoever still waits gets an error
