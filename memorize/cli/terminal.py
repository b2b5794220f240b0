"""How wide the terminal is."""

from __future__ import annotations

import os
import sys


def columns(otherwise: int) -> int:
    """Return COLUMNS, else the width of the terminal that standard output is, else ``otherwise``.

    As ``shutil.get_terminal_size`` does it, but that module brings every kind of archive with it.
    """
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and int(told):
        return int(told)
    try:
        found = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1).columns
    except (OSError, ValueError):
        return otherwise
    return found or otherwise
