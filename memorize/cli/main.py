"""The command ``memorize``. Help and version are answered here; everything else is a verb's.

Nothing is imported before ``main`` but what Python has loaded by then: Ctrl-C is to be quiet from the first moment on.
"""

from __future__ import annotations

import gc
import os
import sys

from memorize import __version__

# What is loaded at the start stays: to look through it for garbage, as Python does after each 700 objects, takes a
# twelfth of a short verb's time.
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


def main(arguments: list[str] | None = None) -> None:
    """Run one verb and leave with the exit code of the error table (docs/errors.md)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        said = _at_once(words)
        if said is None:
            from memorize.cli.verbs import run  # with click, which takes three times as long as Python itself

            run(words)
        else:
            sys.stdout.write(said)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, a pager) has enough. Python would complain again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:  # before a verb has begun, or behind it: there is nothing to say
        sys.exit(130)


def _at_once(words: list[str]) -> str | None:
    """Return what there is to say without any verb: the version, or the page of help where it fits the terminal."""
    if words == ["--version"]:
        return f"memorize, version {__version__}\n"
    if words in (["--help"], ["-h"]):
        from memorize.cli.table import COLUMNS_MIN, page
        from memorize.cli.terminal import columns

        width = columns(COLUMNS_MIN)
        return page(width) if width >= COLUMNS_MIN else None
    return None


if __name__ == "__main__":
    main()
