"""The files of the hook directory: the hook as a small start, its compiled code and its source, and the lean child.

The agents' settings name only ``memorize_hook.py``; setup, upgrade and the daemon may write the directory again at
any time, also while hooks run: every file is replaced whole, and any mixture of old and new ones works.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_HOOK: Final = "memorize_hook"


def compiled(source: bytes) -> bytes:
    """Return the code file of this interpreter: magic number, crc32 in 8 hex digits, marshalled code."""
    code = marshal.dumps(compile(source, f"{_HOOK}.py", "exec", optimize=2))
    return importlib.util.MAGIC_NUMBER + f"{zlib.crc32(code):08x}".encode() + code


def hook_files() -> Mapping[str, bytes]:
    """Return name -> content of the program files below ``<home>/hook``; the one that agents start comes last."""
    source = (_HERE / f"{_HOOK}.py").read_bytes()
    return {
        "memorize_lean.py": (_HERE / "memorize_lean.py").read_bytes(),
        f"{_HOOK}.source": source,
        f"{_HOOK}.code": compiled(source),
        f"{_HOOK}.py": (_HERE / "memorize_stub.py").read_bytes(),
    }


def install_hook(folder: Path) -> tuple[str, ...]:
    """Write the program files into ``folder`` (made with mode 0700) and return the names of those that changed.

    ``OSError`` when one cannot be written; the others are whole then, old or new.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    changed = []
    for name, content in hook_files().items():
        path = folder / name
        if path.is_file() and path.read_bytes() == content:
            continue
        beside = folder / f".{name}.{os.getpid()}"
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        changed.append(name)
    return tuple(changed)
