"""What the tests of folders share: devices that write events and sync through a real directory."""

from __future__ import annotations

from pathlib import Path

from memorize.clock import FixedClock
from memorize.ids import random_id
from memorize.log import codec
from memorize.log.files import Files, RealFiles
from memorize.model import Header
from memorize.sync.catalog import Catalog
from memorize.sync.folder import RealFolder
from memorize.sync.folder_sync import FolderReport, Keys, sync_folder
from memorize.sync.plan import PACE, Pace
from memorize.sync.port import Envelope
from memorize.sync.ring import Keyring, StoreKey, key_id
from tests.sync.simulator.holding import MemoryHolding

STORE = b"\x01" * 16
SECRET = b"\x02" * 32
OTHER_SECRET = b"\x03" * 32
WALL = 1_796_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR


def ring(secret: bytes = SECRET, store: bytes = STORE) -> Keyring:
    """Return the keys of a device that has one key."""
    return Keyring(store, (StoreKey(key_id(secret), secret, store),))


class Machine:
    """A device with a holding in memory, and its copy of the sync folder on a real disk."""

    def __init__(
        self, root: Path, name: str, folder: Path | None = None, keys: Keyring | None = None, files: Files | None = None
    ) -> None:
        self.home = root / f"{name} state"
        self.home.mkdir(parents=True, exist_ok=True)
        self.path = folder if folder is not None else root / f"{name} 동기화"
        self.path.mkdir(parents=True, exist_ok=True)
        self.replica = random_id()
        self.holding = MemoryHolding()
        self.keys = Keys(keys or ring())
        self.folder = RealFolder(str(self.path), str(self.home / "outbox"), files or RealFiles())
        self.catalog = Catalog()
        self.wall = WALL
        self.begin_writer()

    def begin_writer(self) -> None:
        self.writer, self.seq, self.prev = random_id(), 0, b""
        self.holding.mine.add(self.writer)

    def write(self, *texts: str, **payload: object) -> list[Envelope]:
        """Capture something."""
        made = []
        for text in texts:
            self.seq += 1
            lamport = self.holding.top + 1
            fields = (1, STORE, self.replica, self.writer, self.seq, self.prev, lamport, (), "observed.note", 0, b"")
            header = Header(*fields, b"", 0, b"", 1, self.wall)
            encoded = codec.encode(header, codec.tidy({"text": text, **payload}), random_id())
            self.prev = encoded.event.id
            made.append(Envelope(encoded.event.id, lamport, encoded.header, encoded.body))
            self.holding.receive(made[-1:])
        return made

    def sync(self, pace: Pace = PACE, **options: object) -> FolderReport:
        """Do one round."""
        clock = FixedClock(self.wall)
        options.setdefault("erased", frozenset(self.holding.erased))
        return sync_folder(
            self.holding, self.keys, self.folder, self.catalog, clock, self.replica, pace=pace, **options
        )

    def wait(self, ms: int, pace: Pace = PACE, **options: object) -> FolderReport:
        """Do rounds while so much time goes by; return the last report."""
        report = self.sync(pace, **options)
        while ms > 0:
            self.wall += min(ms, HOUR)
            ms -= HOUR
            report = self.sync(pace, **options)
        return report

    def packs(self) -> list[Path]:
        """Return the files in the folder."""
        return sorted(path for path in (self.path / "memorize").rglob("*") if path.is_file())

    def own(self) -> list[Path]:
        """Return this device's files in the folder."""
        return [path for path in self.packs() if path.parent.name == self.replica.hex()]
