"""Where captures go that can never become events: ``bad``, for a week, so that a later version may read them.

What lies there is redacted as the log is: a payload that could not be parsed holds secrets like any other.
"""

from __future__ import annotations

import contextlib
import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from typing import Final
from zlib import crc32

import msgpack

from memorize.capture.memorize_hook import spool_name
from memorize.limits import CAPTURE_BYTES_MAX
from memorize.log.files import Files, write_all
from memorize.log.redact import redact, redact_value
from memorize.log.spool import BATCH, OWN_AGENT, SpoolEntry, entry
from memorize.paths import Home

# Of a larger file, which no hook wrote, the head is kept.
_KEPT_BYTES_MAX: Final = 2 * CAPTURE_BYTES_MAX


def set_aside(home: Home, files: Files, name: str, wall_ms: int) -> None:
    """Move a spool file to ``bad``, redacted, where it is kept for a week. Raises OSError.

    One that was whole gets a name that fits what is left of it, so that it can be tried again; one that was not what
    its name tells keeps its name.
    """
    source, bad = f"{home.spool}/new/{name}", f"{home.spool}/bad"
    data = b""
    with contextlib.suppress(IsADirectoryError):
        data = files.read(source, _KEPT_BYTES_MAX + 1)
    found = entry(name)
    clean = _clean(data[:_KEPT_BYTES_MAX], found)
    if clean == data:
        _into(files, source, bad, name)
    else:
        whole = found is not None and len(data) == found.length and crc32(data) == found.crc
        named = _renamed(found, clean) if whole and found is not None else name
        beside = f"{home.spool}/tmp/{named}"
        _write(files, beside, clean)
        _into(files, beside, bad, named)
        files.unlink(source)
        name = named
    with contextlib.suppress(OSError):
        files.touch(f"{bad}/{name}", wall_ms)


def _into(files: Files, source: str, bad: str, name: str) -> None:
    try:
        files.rename(source, f"{bad}/{name}")
    except FileNotFoundError:
        files.make_dir(bad)
        files.rename(source, f"{bad}/{name}")


def _write(files: Files, path: str, data: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        files.unlink(path)  # of an earlier attempt
    handle = files.create(path)
    try:
        write_all(files, handle, data)
    finally:
        files.close(handle)


def _renamed(found: SpoolEntry, data: bytes) -> str:
    return spool_name(found.mono, found.nonce, len(data), crc32(data), found.agent, found.event, found.cut)


def _clean(data: bytes, found: SpoolEntry | None) -> bytes:
    """Return the bytes without secrets; the same ones when there are none."""
    with contextlib.suppress(ValueError, TypeError, RecursionError, msgpack.UnpackException):
        if found is not None and (found.agent, found.event) == (OWN_AGENT, BATCH):
            value = msgpack.unpackb(data, raw=False, strict_map_key=False)
            clean = redact_value(value)
            return data if clean == value else bytes(msgpack.packb(clean))
        value = json.loads(data)
        clean = redact_value(value)
        return data if clean == value else json.dumps(clean, ensure_ascii=False).encode("utf-8", "replace")
    for text in _readings(data):
        if (clean_text := redact(text)) != text:
            return clean_text.encode("utf-8", "surrogateescape")
    return data


def _readings(data: bytes) -> Iterator[str]:
    """Yield the text in every encoding that it may have, so that no secret hides behind one."""
    yield data.decode("utf-8", "surrogateescape")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        yield data.decode("utf-16", "replace")
    if data.count(0) * 4 > len(data):
        yield data.replace(b"\0", b"").decode("utf-8", "surrogateescape")  # UTF-16 without its mark
