"""The spool (maildir): what was captured and is not an event yet. One file is one ordered batch.

A file is written once in ``tmp`` and renamed to ``new``; its name tells length and crc, so a file that is empty, short
or full of zeros after a power cut is known as such.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

import msgpack

from memorize.capture.memorize_hook import parse_name, spool_name
from memorize.clock import Clock
from memorize.errors import BadHome, NotKept
from memorize.ids import ID_BYTES, random_id
from memorize.limits import BAD_SPOOL_AGE_S_MAX, DEPS_MAX, KIND_CHARS_MAX, TMP_SPOOL_AGE_S_MAX
from memorize.log.codec import tidy
from memorize.log.files import Files, RealFiles, write_all
from memorize.log.identity import make_dirs
from memorize.model import Capture, Draft
from memorize.paths import Home

OWN_AGENT: Final = "memorize"
BATCH: Final = "batch"
SPOOL_BYTES_MAX: Final = 64 * 1024 * 1024  # what one file may promise; a hook keeps to CAPTURE_BYTES_MAX

_FILES: Final = RealFiles()


class Unreadable(Exception):  # noqa: N818 - called for what it says of the capture
    """A capture that can never become events; its file goes to ``bad``."""


class SpoolEntry(NamedTuple):
    """A spool file by its name."""

    name: str
    mono: int
    nonce: bytes
    length: int
    crc: int
    agent: str
    event: str
    cut: bool


def put_batch(
    home: Home,
    drafts: Sequence[Draft],
    clock: Clock,
    strict: bool = False,
    files: Files = _FILES,
    nonce: bytes | None = None,
) -> bytes:
    """Put drafts into the spool as one batch, to be written in this order; return its nonce.

    ``strict`` makes file and directory durable first. Give the ``nonce`` of an earlier attempt to repeat it without
    doubling anything. Raises ValueError for a draft that could never be written, NotKept, BadHome.
    """
    check_drafts(drafts)
    data = msgpack.packb([[draft.kind, tidy(draft.payload), draft.ordinal, list(draft.deps)] for draft in drafts])
    if len(data) > SPOOL_BYTES_MAX:
        raise ValueError(f"a batch of {len(data)} bytes, at most {SPOOL_BYTES_MAX} allowed")
    return put_capture(home, OWN_AGENT, BATCH, data, clock, strict, files, nonce)


def put_capture(
    home: Home,
    agent: str,
    event: str,
    data: bytes,
    clock: Clock,
    strict: bool = False,
    files: Files = _FILES,
    nonce: bytes | None = None,
) -> bytes:
    """Put bytes into the spool under the name of an agent and its event; return the nonce. Raises NotKept, BadHome."""
    nonce = nonce or random_id()
    name = spool_name(clock.monotonic_ns(), nonce, len(data), crc32(data), agent, event)
    spool = str(home.spool)
    try:
        if strict and not _is_settled(home, files):
            make_dirs(home, files)
        _put(home, files, name, data, strict)
    except OSError as error:
        unusable = isinstance(error, FileNotFoundError | NotADirectoryError | FileExistsError | PermissionError)
        if unusable and not home.spool.is_dir():
            raise BadHome(path=home.root, detail=error.strerror or str(error)) from error
        raise NotKept(path=spool, detail=error.strerror or str(error)) from error
    return nonce


def pending(home: Home, files: Files = _FILES) -> list[str]:
    """Return the names in ``new``, oldest first. Raises OSError."""
    try:
        return sorted(files.names(f"{home.spool}/new"))
    except FileNotFoundError:
        return []


def entry(name: str) -> SpoolEntry | None:
    """Return what a spool file's name says; None for a name that is none."""
    fields = parse_name(name)
    return None if fields is None else SpoolEntry(name, *fields)


def decode_batch(data: bytes) -> list[Draft]:
    """Return the drafts of a batch of our own programs. Raises Unreadable."""
    try:
        items = msgpack.unpackb(data, raw=False, strict_map_key=False)
        drafts = [Draft(kind, payload, ordinal, tuple(deps)) for kind, payload, ordinal, deps in items]
        check_drafts(drafts)
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise Unreadable(f"not a batch: {error}") from error
    return drafts


def check_drafts(drafts: Sequence[Draft]) -> None:
    """Raise ValueError for what no event can be made of: bad kinds, deps, or ordinals that do not come before."""
    seen: set[int] = set()
    for draft in drafts:
        if type(draft.kind) is not str or not 0 < len(draft.kind) <= KIND_CHARS_MAX or not draft.kind.isascii():
            raise ValueError(f"bad kind {draft.kind!r}")
        if not isinstance(draft.payload, dict) and not hasattr(draft.payload, "items"):
            raise ValueError("a payload is a map")
        if type(draft.ordinal) is not int or draft.ordinal < 0 or draft.ordinal in seen:
            raise ValueError(f"ordinal {draft.ordinal!r} is used twice or is none")
        if len(draft.deps) > DEPS_MAX:
            raise ValueError(f"{len(draft.deps)} deps, at most {DEPS_MAX} allowed")
        for dep in draft.deps:
            if not (dep in seen if type(dep) is int else type(dep) is bytes and len(dep) == ID_BYTES):
                raise ValueError(f"{dep!r} is neither an id nor an earlier ordinal of this batch")
        seen.add(draft.ordinal)


def take(files: Files, directory: str, found: SpoolEntry) -> Capture:
    """Return the capture in a file of ``directory``. Raises Unreadable when it is not what its name says, OSError."""
    if found.length > SPOOL_BYTES_MAX:
        raise Unreadable("larger than any capture")
    data = files.read(f"{directory}/{found.name}", found.length)
    if len(data) != found.length or crc32(data) != found.crc:
        raise Unreadable("not the bytes that its name tells")
    return Capture(found.agent, found.event, found.nonce, found.mono, data, found.cut)


def sweep(home: Home, files: Files, clock: Clock) -> int:
    """Remove what dead hooks left in ``tmp`` and what has lain in ``bad`` for a week; return how many. Never raises."""
    now_ns, now_ms = clock.monotonic_ns(), clock.wall_ms()
    gone = 0
    for folder, age_s in (("tmp", TMP_SPOOL_AGE_S_MAX), ("bad", BAD_SPOOL_AGE_S_MAX)):
        directory = f"{home.spool}/{folder}"
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = files.names(directory)
        for name in names:
            with contextlib.suppress(OSError):
                path = f"{directory}/{name}"
                if _age_ms(files, path, name, folder == "tmp", now_ns, now_ms) > age_s * 1000:
                    files.unlink(path)
                    gone += 1
    return gone


def _age_ms(files: Files, path: str, name: str, by_name: bool, now_ns: int, now_ms: int) -> int:
    # A wall clock that was just set right must not remove the file that a hook is writing.
    with contextlib.suppress(ValueError):
        if by_name and (born := int(name[:16], 16)) <= now_ns:
            return (now_ns - born) // 1_000_000
    return now_ms - files.modified_ms(path)


def _is_settled(home: Home, files: Files) -> bool:
    """Tell whether the folders were ever made durable: that is done before the identity is written."""
    try:
        return home.identity.name in files.names(str(home.root))
    except FileNotFoundError:
        return False


def _put(home: Home, files: Files, name: str, data: bytes, strict: bool) -> None:
    spool = str(home.spool)
    beside = f"{spool}/tmp/{name}"
    try:
        handle = files.create(beside)
    except FileNotFoundError:
        make_dirs(home, files)
        handle = files.create(beside)
    try:
        try:
            write_all(files, handle, data)
            if strict:
                files.fsync(handle)
        finally:
            files.close(handle)
        files.rename(beside, f"{spool}/new/{name}")
    except OSError:
        with contextlib.suppress(OSError):
            files.unlink(beside)
        raise
    if strict:
        files.sync_dir(f"{spool}/new")
