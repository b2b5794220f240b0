"""Whole state directories on a disk, their folders, and a tool between these: what the simulator does, for real."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from memorize import model
from memorize.bootstrap import App, keeping
from memorize.bootstrap.syncing import Round, Syncing
from memorize.config import Config
from memorize.model import Draft, text_key
from memorize.paths import Home
from memorize.sync import keys, peer
from memorize.sync.handshake import Role
from memorize.sync.ring import offer
from tests.counts import count
from tests.sync.simulator.clock import DAY_MS, LocalClock, WorldTime

LIVES = count("sync: lives of whole state directories", quick=2, full=12)
# As often everything is carried and every device does a round; it is still long before.
ROUNDS_MAX = 12


class Device:
    """A state directory with a folder of its own."""

    def __init__(self, root: Path, folder: Path, time: WorldTime, offset_ms: int = 0) -> None:
        self.root, self.folder = root, folder
        self.clock = LocalClock(time, offset_ms, b"\x07" * 16)
        folder.mkdir(exist_ok=True)
        self.start()

    def start(self) -> None:
        self.app = App(Home(self.root), Config(), self.clock)
        self.app.ingest()

    def join(self, other: Device) -> None:
        keeping.take(self.app, offer(keeping.keyring(other.app)))

    def use_folder(self) -> None:
        Syncing(self.app).add(["folder", str(self.folder)])

    def remember(self, text: str) -> bytes:
        payload = {
            "kind": "fact",
            "text": text,
            "text_key": text_key(text),
            "importance": 5,
            "confidence": 80,
            "scope": "personal",
            "trust": "user",
            "sources": [],
        }
        return self.app.append([Draft(model.MEMORY_FORMED, payload)])[0]

    def act(self, kind: str, *names: bytes) -> None:
        self.app.append([Draft(kind, {"reason": "고침"}, 0, names)])

    def erase(self, *names: bytes) -> None:
        self.app.append([Draft(model.ERASE_REQUESTED, {"ids": list(names), "reason": "비밀"})])

    def sync(self) -> list[Round]:
        syncing = Syncing(self.app)
        return syncing.rounds(syncing.targets(), by_hand=True)

    def rotate(self) -> None:
        keeping.update(self.app, lambda ring: keys.rotate(ring, keys.new_secret(), keys.new_salt()))

    def talk(self, other: Device, turns_max: int) -> None:
        """Exchange with another device directly, until both are done or the connection breaks behind some turn."""
        roles = ((self, Role.INITIATOR), (other, Role.RESPONDER))
        sides = [peer.session(one.app.holding, keeping.keyring(one.app), role) for one, role in roles]
        frames, turns = sides[0].opening(), 0
        while frames and turns < turns_max:
            turns += 1
            frames = sides[turns % 2].on(frames)
        for one, side in zip((self, other), sides, strict=True):
            assert side.problem is None
            given = peer.given(side)
            keeping.update(one.app, lambda ring, given=given: keys.adopt(ring, given))

    def texts(self) -> list[str]:
        return sorted(hit.row.text for hit in self.app.search("", None, limit=1000).hits)

    def digest(self) -> tuple[str, str]:
        return tuple(self.app.reader().digest())

    def back_up(self, place: Path) -> None:
        self.app.close()
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.root, place)
        self.start()

    def restore(self, place: Path) -> None:
        """Put a backup back into the directory, which stays the same one."""
        self.app.close()
        for entry in self.root.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        shutil.copytree(place, self.root, dirs_exist_ok=True)
        self.start()


class Tool:
    """Carries files between folders: late, in parts, in any order."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.truth: dict[str, bytes] = {}
        self.brought: dict[Path, set[str]] = {}

    def carry(self, folders: list[Path], *, everything: bool = False) -> None:
        for folder in folders:
            self._look(folder)
        for folder in folders:
            had = self.brought.setdefault(folder, set())
            for name in sorted(had - self.truth.keys()):
                (folder / name).unlink(missing_ok=True)
                had.discard(name)
            for name in self.random.sample(sorted(self.truth), len(self.truth)):
                if name not in had:
                    self._bring(folder, name, whole=everything)

    def _look(self, folder: Path) -> None:
        there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        had = self.brought.setdefault(folder, set())
        for name in had - there:
            self.truth.pop(name, None)
        for name in there - self.truth.keys() - had:
            self.truth[name] = (folder / name).read_bytes()
            had.add(name)

    def _bring(self, folder: Path, name: str, *, whole: bool) -> None:
        path, data = folder / name, self.truth[name]
        way = 1.0 if whole else self.random.random()
        if way < 0.2:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if way < 0.35:
            path.write_bytes(data[: self.random.randint(0, len(data))])
            return
        path.write_bytes(data)
        self.brought[folder].add(name)


def settle(devices: list[Device], tool: Tool) -> None:
    folders = sorted({device.folder for device in devices})
    last: list[object] = []
    for _ in range(ROUNDS_MAX):
        devices[0].clock.world.advance(DAY_MS // 4)
        tool.carry(folders, everything=True)
        for device in devices:
            device.sync()
        now: list[object] = [*(device.digest() for device in devices), sorted(tool.truth)]
        if now == last:
            return
        last = now


def traces(word: str, *places: Path) -> Iterator[Path]:
    """Yield the files in which a word can be read."""
    for place in places:
        yield from (path for path in place.rglob("*") if path.is_file() and word.encode() in path.read_bytes())


def three(ram: Path, offsets: tuple[int, int, int] = (0, 0, 0)) -> list[Device]:
    time = WorldTime()
    devices = [
        Device(ram / f"집 {name}", ram / f"folder {name}", time, offset)
        for name, offset in zip("abc", offsets, strict=True)
    ]
    for device in devices[1:]:
        device.join(devices[0])
    for device in devices:
        device.use_folder()
    return devices


def close(devices: list[Device]) -> None:
    for device in devices:
        device.app.close()


def live(random: Random, devices: list[Device], tool: Tool, ram: Path) -> tuple[set[str], set[str]]:
    """Let things happen; return what is to be found everywhere in the end, and what nowhere."""
    kept: set[str] = set()
    gone: set[str] = set()
    names: dict[str, bytes] = {}
    backups: dict[int, set[str]] = {}
    for step in range(random.randint(12, 22)):
        device = random.choice(devices)
        at = devices.index(device)
        way = random.random()
        if way < 0.45:
            text = f"기억 {step} word{random.getrandbits(60):x}"
            names[text] = device.remember(text)
            kept.add(text)
        elif way < 0.52:
            device.talk(random.choice([one for one in devices if one is not device]), random.choice((2, 3, 4, 99)))
        elif way < 0.54:
            device.rotate()
        elif way < 0.72:
            device.sync()
            tool.carry([one.folder for one in devices])
        elif way < 0.79 and kept:
            text = random.choice(sorted(kept))
            device.erase(names[text])
            kept.discard(text)
            gone.add(text)
        elif way < 0.84:
            device.back_up(ram / f"backup {at}")
            backups[at] = set(kept)
        elif way < 0.9 and at in backups:
            # What existed nowhere else would be gone with the disk: it is published before.
            device.sync()
            device.restore(ram / f"backup {at}")
        elif way < 0.94 and len(devices) < 4:
            device.app.close()
            copy = Device.__new__(Device)
            copy.root, copy.folder, copy.clock = ram / f"copy {step}", device.folder, device.clock
            shutil.copytree(device.root, copy.root)
            device.start()
            copy.start()
            devices.append(copy)
        else:
            # Everybody publishes before: what a folder alone holds is gone with it.
            settle(devices, tool)
            shutil.rmtree(device.folder / "memorize", ignore_errors=True)
    return kept, gone


def test_whole_state_directories_end_up_with_the_same_memory(ram: Path) -> None:
    for seed in range(LIVES):
        random, place = Random(seed), ram / str(seed)
        place.mkdir()
        devices, tool = three(place, random.choice(((0, 0, 0), (0, 30 * DAY_MS, -30 * DAY_MS)))), Tool(random)
        kept, gone = live(random, devices, tool, place)
        settle(devices, tool)
        assert len({device.digest() for device in devices}) == 1, f"seed {seed}"
        for device in devices:
            assert set(device.texts()) == kept, f"seed {seed}, {device.root.name}"
        for text in gone:
            word = text.split()[-1]
            assert list(traces(word, *(one.root for one in devices), *(one.folder for one in devices))) == [], text
        close(devices)


def day(devices: list[Device], tool: Tool) -> None:
    """Have three devices edit the same things, sometimes without knowing of each other."""
    a, b, c = devices
    first = a.remember("배포는 금요일에 하지 않는다")
    settle(devices, tool)
    second, third = b.remember("배포는 목요일에만 한다"), c.remember("use tabs")
    b.act(model.MEMORY_SUPERSEDED, second, first)
    c.act(model.MEMORY_PINNED, first)
    settle(devices, tool)
    a.act(model.MEMORY_RETRACTED, third)
    fourth = c.remember("Use spaces")
    settle(devices, tool)
    b.clock.offset_ms = -b.clock.offset_ms  # it is set right, or steps back
    b.act(model.MEMORY_CONFIRMED, fourth)
    c.remember("메모리는 4 GiB")
    settle(devices, tool)


def test_clocks_thirty_days_apart_give_the_same_state_as_right_ones(ram: Path) -> None:
    found = []
    for offsets in ((0, 0, 0), (0, 30 * DAY_MS, -30 * DAY_MS), (-30 * DAY_MS, 0, 30 * DAY_MS)):
        place = ram / str(len(found))
        place.mkdir()
        devices = three(place, offsets)
        day(devices, Tool(Random(1)))
        assert len({device.digest() for device in devices}) == 1
        found.append([device.texts() for device in devices])
        close(devices)
    assert found[0] == found[1] == found[2]
    assert found[0][0] == ["Use spaces", "메모리는 4 GiB", "배포는 목요일에만 한다"]
