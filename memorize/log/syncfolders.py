"""Recognise folders that a file-sync tool keeps equal between machines. The state directory must not lie in one.

Two machines would append to the same segment and share one identity; what is meant to travel are packs, in a folder
that is given to ``memorize sync``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

# A file or folder with this name at the top of a synchronised tree gives the tool away.
_MARKS: Final = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".tmp.drivedownload": "Google Drive",
    ".sync_nextcloud.db": "Nextcloud",
    ".nextcloudsync.log": "Nextcloud",
    ".owncloudsync.log": "ownCloud",
    ".sync": "Resilio Sync",
}
# Names under which the tools make their folders in a person's home.
_NAMES: Final = {
    "dropbox": "Dropbox",
    "onedrive": "OneDrive",
    "google drive": "Google Drive",
    "googledrive": "Google Drive",
    "my drive": "Google Drive",
    "mobile documents": "iCloud Drive",
    "icloud drive": "iCloud Drive",
    "icloudrive": "iCloud Drive",
    "nextcloud": "Nextcloud",
    "owncloud": "ownCloud",
    "syncthing": "Syncthing",
}


def syncing_tool(path: Path, exists: Callable[[Path], bool] = Path.exists) -> str | None:
    """Return the name of the tool that synchronises ``path`` or a folder above it, None when there is no sign of one.

    ``OneDrive - Company`` and ``Dropbox (Personal)`` are recognised by how they begin.
    """
    for folder in (path, *path.parents):
        if (tool := _by_name(folder.name)) is not None:
            return tool
        if (tool := _by_mark(folder, _MARKS, exists)) is not None:
            return tool
    return None


def _by_name(name: str) -> str | None:
    folded = name.casefold()
    for known, tool in _NAMES.items():
        if folded == known or folded.startswith((f"{known} -", f"{known} (")):
            return tool
    return None


def _by_mark(folder: Path, marks: Iterable[str], exists: Callable[[Path], bool]) -> str | None:
    for mark in marks:
        try:
            if exists(folder / mark):
                return _MARKS[mark]
        except OSError:
            continue
    return None
