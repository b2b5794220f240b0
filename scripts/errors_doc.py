"""Writes docs/errors.md from the table in memorize/errors.py.

Usage: python scripts/errors_doc.py            (from the project's folder; rewrites the page)
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from memorize.errors import Problem  # noqa: E402  # the checkout that this script lies in, wherever it is run from

PAGE = ROOT / "docs" / "errors.md"

_HEAD = """\
# Errors

Every problem that a person can meet, by the exit code of the command. The page is made from `memorize/errors.py` by
`scripts/errors_doc.py`; a test compares both. Words in angle brackets are filled in when it happens.

An error is written to standard error as `memorize: <what happened>` and `hint: <what to do>`; `--debug` adds a
traceback. Exit code 0 means that all went well, 2 that the command line was wrong, 130 that it was stopped by hand.
A hook always exits 0.

Two verbs answer by their exit code and have a table of their own: `memorize verify` leaves with 0 clean, 1 repaired,
2 data missing, 3 something could not be read; `memorize doctor` with 1 when a check failed.

| exit | name | what happened | what to do |
| ---: | --- | --- | --- |
"""


def problems(base: type[Problem] = Problem) -> list[type[Problem]]:
    """Return the base and everything derived from it, by exit code."""
    found = [base]
    for child in base.__subclasses__():
        found += problems(child)
    return sorted(found, key=lambda kind: (kind.exit, kind.__name__))


def _cell(text: str) -> str:
    return re.sub(r"\{(\w+)\}", r"\\<\1\\>", " ".join(text.split())).replace("|", "\\|")


def page() -> str:
    """Return the page."""
    rows = [
        f"| {kind.exit} | {kind.__name__} | {_cell(kind.__doc__ or '')} | {_cell(kind.hint)} |\n" for kind in problems()
    ]
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
