"""The doors to the disk for setup: read, and replace whole."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memorize.errors import BadHome, CannotRead, CannotWrite


def read(path: Path) -> bytes | None:
    """Return a file's bytes, None where there is none. Raises ``CannotRead``."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotRead(path=path, detail=error.strerror or error) from None


def replace(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file beside ``path``, sync it, and put it in its place. Raises ``CannotWrite``.

    Mode and owner stay as they were; a new file is private unless ``mode`` says otherwise.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        old = path.stat() if path.exists() else None
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(mode if mode is not None else (old.st_mode & 0o7777 if old else 0o600))
        if old is not None and hasattr(os, "chown") and (old.st_uid, old.st_gid) != _owner(beside):
            os.chown(beside, old.st_uid, old.st_gid)
        beside.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise CannotWrite(path=path, detail=error.strerror or error) from None
    finally:
        beside.unlink(missing_ok=True)


def _owner(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":  # a folder cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private(*folders: Path) -> None:
    """Make directories that nobody else can look into. Raises ``CannotWrite``; ``BadHome`` where none can be."""
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileNotFoundError, NotADirectoryError, FileExistsError, PermissionError) as error:
            raise BadHome(path=folder, detail=error.strerror or error) from None
        except OSError as error:
            raise CannotWrite(path=folder, detail=error.strerror or error) from None


def created_folders(path: Path) -> tuple[Path, ...]:
    """Return the parents of ``path`` that are not there yet, the outermost first."""
    return tuple(reversed([folder for folder in path.parents if not folder.exists()]))
