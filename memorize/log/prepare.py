"""From a spool file to drafts: the part of ingesting that touches neither the log nor the index.

It is apart from the rest so that whoever ingests a large backlog may have another process do it ahead (``Prepare``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from memorize.log.files import Files
from memorize.log.spool import BATCH, OWN_AGENT, Unreadable, decode_batch, entry, take
from memorize.model import Capture, Draft

Normalise = Callable[[Capture], Sequence[Draft]]


class Prepared(NamedTuple):
    """What a spool file holds: the nonce and monotonic time of its capture, its bytes, the drafts made of it."""

    nonce: bytes
    mono: int
    size: int
    drafts: Sequence[Draft]


# Prepares the file of a name, None when it is gone. Raises Unreadable for what can never be read, OSError.
Read = Callable[[str], Prepared | None]
# Given the names of a run and the way to prepare one, returns the way to prepare each of them once, in that order.
Prepare = Callable[[Sequence[str], Read], AbstractContextManager[Read]]


def here(_: Sequence[str], read: Read) -> AbstractContextManager[Read]:
    """Prepare every file when it is asked for, in this process."""
    return nullcontext(read)


def captured(files: Files, directory: str, name: str) -> Capture:
    """Return the capture in a spool file. Raises Unreadable when it is none, FileNotFoundError, OSError."""
    found = entry(name)
    if found is None:
        raise Unreadable("not a spool file's name")
    return take(files, directory, found)


def prepared(files: Files, directory: str, normalise: Normalise, name: str) -> Prepared | None:
    """Return what a spool file holds. Raises as ``Read``."""
    try:
        capture = captured(files, directory, name)
    except FileNotFoundError:
        return None
    return Prepared(capture.nonce, capture.mono, len(capture.data), _drafts(capture, normalise))


def _drafts(capture: Capture, normalise: Normalise) -> Sequence[Draft]:
    if capture.agent == OWN_AGENT and capture.event == BATCH:
        return decode_batch(capture.data)
    try:
        return normalise(capture)
    except (Unreadable, OSError, MemoryError):
        raise
    except Exception as error:
        # An agent's next version must not stop the captures of all others.
        raise Unreadable(f"{type(error).__name__}: {error}") from error
