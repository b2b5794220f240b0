"""Where things lie: the state directory and the data files of the agents' adapters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from memorize.errors import BadHome


class Home:
    """The state directory (DESIGN 4). Only names; nothing here touches the disk."""

    __slots__ = ("root",)

    def __init__(self, root: Path) -> None:
        """Take the directory itself; the rest follows."""
        self.root: Final = root

    @property
    def config(self) -> Path:
        """The person's configuration."""
        return self.root / "config.toml"

    @property
    def identity(self) -> Path:
        """Store, replica and writer of this incarnation."""
        return self.root / "identity"

    @property
    def hook(self) -> Path:
        """The hook program and what it reads: interpreter and site path, briefs, marks."""
        return self.root / "hook"

    @property
    def hook_program(self) -> Path:
        """The file that the agents' settings name."""
        return self.hook / "memorize_hook.py"

    @property
    def briefs(self) -> Path:
        """The last rendered brief of each working directory."""
        return self.hook / "briefs"

    @property
    def exclude(self) -> Path:
        """Directories that are never captured, one a line."""
        return self.root / "exclude"

    @property
    def spool(self) -> Path:
        """The maildir that every append goes through: ``tmp``, ``new``, ``bad``."""
        return self.root / "spool"

    @property
    def segments(self) -> Path:
        """Append files of this replica."""
        return self.root / "segments"

    @property
    def received(self) -> Path:
        """Append files of other replicas."""
        return self.root / "received"

    @property
    def index(self) -> Path:
        """The projection; may be deleted at any time."""
        return self.root / "index.sqlite"

    @property
    def meter(self) -> Path:
        """What models were asked on this machine, and what waits; not derived from the log, and never leaves here."""
        return self.root / "meter.sqlite"

    @property
    def extractor(self) -> Path:
        """Whether a model was switched on, and which programs are logged in."""
        return self.root / "extractor.json"

    @property
    def sync(self) -> Path:
        """The folders and devices to sync with."""
        return self.root / "sync.json"

    @property
    def peers(self) -> Path:
        """The paired devices; there while any is."""
        return self.keys / "peers.json"

    @property
    def locks(self) -> Path:
        """OS locks; never unlinked."""
        return self.root / "locks"

    @property
    def keys(self) -> Path:
        """Store keys, never in the log."""
        return self.root / "keys"

    @property
    def visits(self) -> Path:
        """Who reached this device by ssh, and how that ended."""
        return self.receipts / "visits.json"

    @property
    def receipts(self) -> Path:
        """What setup changed, so that uninstall can undo exactly that."""
        return self.root / "receipts"

    @property
    def socket(self) -> Path:
        """The daemon's socket, when the path is short enough for one (``daemon.life`` decides)."""
        return self.hook / "daemon.sock"


def state_root(environ: Mapping[str, str]) -> Path:
    """Return the state directory: ``MEMORIZE_HOME``, else the platform's place for a program's data.

    Raises BadHome for a relative path: it would mean another directory wherever a program or an agent is started.
    """
    chosen = environ.get("MEMORIZE_HOME", "")
    if chosen:
        path = Path(chosen).expanduser()
        if not path.is_absolute():
            raise BadHome(path=chosen, detail="MEMORIZE_HOME is a relative path")
        return path
    from platformdirs import user_data_path  # 16 ms, so only when it is needed

    return user_data_path("memorize", appauthor=False)


def adapters_dir() -> Path:
    """Return the folder of the agents' data files: inside the wheel, or beside the package in a checkout."""
    inside = Path(__file__).parent / "_adapters"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "adapters"
