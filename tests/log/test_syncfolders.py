"""A state directory inside a synchronised folder is recognised before anything is written to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memorize.bootstrap import open_app
from memorize.errors import SyncedHome
from memorize.log.syncfolders import syncing_tool


@pytest.mark.parametrize(
    ("path", "tool"),
    [
        ("/home/u/Dropbox/state", "Dropbox"),
        ("/home/u/Dropbox (Personal)/메모/state", "Dropbox"),
        ("/Users/u/OneDrive - Shop/state", "OneDrive"),
        ("/Users/u/Library/Mobile Documents/com~apple~CloudDocs/state", "iCloud Drive"),
        ("/home/u/nextcloud/state", "Nextcloud"),
        ("/home/u/.local/share/memorize", None),
        ("/home/u/dropboxes/state", None),
        ("/home/u/동기화/state", None),
    ],
)
def test_a_tools_folder_is_known_by_its_name(path: str, tool: str | None) -> None:
    assert syncing_tool(Path(path), exists=lambda _: False) == tool


def test_a_tools_folder_is_known_by_the_mark_at_its_top(tmp_path: Path) -> None:
    (tmp_path / ".stfolder").mkdir()
    assert syncing_tool(tmp_path / "a" / "b") == "Syncthing"


def test_a_state_directory_in_such_a_folder_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / ".stfolder").mkdir()
    app = open_app({"MEMORIZE_HOME": str(tmp_path / "state")})
    with pytest.raises(SyncedHome, match="Syncthing"):
        app.ingest()
    assert not (tmp_path / "state").exists()
