"""Real tools between real folders: Syncthing, rsync, git, and a merge of directories that knows nothing."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memorize.bootstrap import App
from memorize.bootstrap.syncing import Syncing
from memorize.model import OBSERVED_NOTE, Draft
from memorize.sync.folder import skipped
from tests.counts import count, note
from tests.sync.devices import device
from tests.sync.places import Machine
from tests.sync.syncthings import Node, syncthings

SESSION_S = count("seconds of captures with Syncthing in between", quick=10, full=300)
ROUNDS = count("rounds of captures with a carrier in between", quick=4, full=20)
PATIENCE_S = 300.0


def capture(app: App, text: str) -> None:
    app.append([Draft(OBSERVED_NOTE, {"agent": "generic", "session": "세션", "text": text})])


def rounds(app: App) -> None:
    for one in Syncing(app).rounds(Syncing(app).targets()):
        assert one.bad == 0


def digests(*apps: App) -> set[tuple[str, str]]:
    return {app.reader().digest() for app in apps}


@pytest.fixture
def pair(tmp_path: Path) -> list[App]:
    """Two devices of one store, each with a folder of its own."""
    first = device(tmp_path / "A state")
    made = [first, device(tmp_path / "B state", first)]
    for app, name in zip(made, "AB", strict=True):
        folder = tmp_path / f"{name} 동기화"
        folder.mkdir()
        Syncing(app).add(("folder", str(folder)))
    return made


def folders(apps: Sequence[App]) -> list[Path]:
    return [Path(Syncing(app).targets()[0].where) for app in apps]


class Sizes:
    """Looks at folders all the time: whatever has appeared as a whole file never changes its size."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self.sizes: dict[Path, set[int]] = {}
        self.strange: set[str] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Sizes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.look()

    def _run(self) -> None:
        while not self._done.wait(0.05):
            self.look()

    def look(self) -> None:
        for root in self.roots:
            for folder, _, names in os.walk(root):
                for name in names:
                    if "sync-conflict" in name:
                        self.strange.add(name)
                    if skipped(name) or ".stfolder" in folder:
                        continue
                    path = Path(folder, name)
                    try:
                        self.sizes.setdefault(path, set()).add(path.stat().st_size)
                    except FileNotFoundError:
                        continue

    def changed(self) -> list[Path]:
        return [path for path, sizes in self.sizes.items() if len(sizes) > 1]


def until_equal(apps: Sequence[App], carry: Callable[[], None]) -> None:
    """Do rounds until all devices hold the same."""
    end = time.monotonic() + PATIENCE_S
    while True:
        for app in apps:
            rounds(app)
        carry()
        if len(digests(*apps)) == 1:
            return
        assert time.monotonic() < end, [Syncing(app).last() for app in apps]
        time.sleep(0.3)


@pytest.mark.slow
def test_two_real_syncthings_carry_a_session_of_captures_on_both_sides(tmp_path, pair):
    roots = folders(pair)
    beside = "memorize/~syncthing~mz-0011223344556677.tmp"  # what is written beside on another file system
    with syncthings(tmp_path, roots) as nodes, Sizes(*roots) as sizes:
        (roots[0] / "memorize").mkdir(exist_ok=True)
        (roots[0] / beside).write_bytes(b"not whole")
        end = time.monotonic() + SESSION_S
        captured = [0, 0]
        chance = random.Random(4)
        while time.monotonic() < end:
            for at, app in enumerate(pair):
                for _ in range(chance.randrange(1, 6)):
                    capture(app, f"{at} {captured[at]} 기억 {chance.randbytes(60).hex()}")
                    captured[at] += 1
                rounds(app)
            time.sleep(0.5)
        until_equal(pair, lambda: _scan(nodes))
        files = [path for root in roots for path in root.rglob("*.mzp")]
    assert not (roots[1] / beside).exists()
    assert digests(*pair) == digests(pair[0])
    assert sum(captured) <= pair[0].holding.digest().events
    assert sizes.strange == set()
    assert sizes.changed() == []
    assert not [path for root in roots for path in root.rglob("*sync-conflict*")]
    note(f"Syncthing: {sum(captured)} captures in {SESSION_S} s, {len(files) // 2} packs in each folder")


def _scan(nodes: Sequence[Node]) -> None:
    for node in nodes:
        node.scan()


def run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_rsync_both_ways_carries_everything(pair):
    if shutil.which("rsync") is None:
        pytest.skip("there is no rsync on this machine")
    one, other = folders(pair)

    def carry() -> None:
        run("rsync", "-rt", "--ignore-existing", f"{one}/", f"{other}/")
        run("rsync", "-rt", "--ignore-existing", f"{other}/", f"{one}/")

    with Sizes(one, other) as sizes:
        for number in range(ROUNDS):
            for app in pair:
                capture(app, f"{number} 기억")
                rounds(app)
            carry()
        until_equal(pair, carry)
    assert sizes.changed() == []


class Git:
    """Two clones of one bare repository, with the folder as work tree."""

    def __init__(self, root: Path, trees: Sequence[Path]) -> None:
        self.hub = root / "hub.git"
        self.trees = trees
        run("git", "init", "-q", "--bare", "-b", "main", str(self.hub))
        for tree in trees:
            run("git", "init", "-q", "-b", "main", cwd=tree)
            run("git", "remote", "add", "origin", str(self.hub), cwd=tree)
            (tree / ".gitattributes").write_text("*.mzp binary\n", "utf-8")
            self.commit(tree)
            pulled = ("git", "pull", "-q", "--no-rebase", "--no-edit", "--allow-unrelated-histories")
            if tree != trees[0]:
                run(*pulled, "origin", "main", cwd=tree)
            run("git", "push", "-q", "origin", "HEAD:main", cwd=tree)

    def commit(self, tree: Path) -> None:
        run("git", "add", "-A", cwd=tree)
        run("git", "commit", "-q", "--allow-empty", "-m", "packs", cwd=tree)

    def carry(self) -> None:
        for tree in (*self.trees, *self.trees):
            self.commit(tree)
            run("git", "pull", "-q", "--no-rebase", "--no-edit", "origin", "main", cwd=tree)
            run("git", "push", "-q", "origin", "HEAD:main", cwd=tree)


def test_git_carries_everything_and_a_folder_rolled_back_by_it_loses_nothing(tmp_path, pair):
    if shutil.which("git") is None:
        pytest.skip("there is no git on this machine")
    trees = folders(pair)
    git = Git(tmp_path, trees)
    for number in range(ROUNDS):
        for app in pair:
            capture(app, f"{number} 기억")
            rounds(app)
        git.carry()
    until_equal(pair, git.carry)
    before = digests(*pair)
    held = [app.holding.digest().events for app in pair]
    # Back to an older commit: the folder shows a past, and what is missing in it means nothing.
    run("git", "checkout", "-q", "HEAD~2", cwd=trees[0])
    rounds(pair[0])
    assert [app.holding.digest().events for app in pair] == held
    run("git", "add", "-A", cwd=trees[0])
    run("git", "commit", "-q", "--allow-empty", "-m", "after the rollback", cwd=trees[0])
    run("git", "checkout", "-q", "-B", "main", cwd=trees[0])
    run("git", "pull", "-q", "--no-rebase", "--no-edit", "-s", "ours", "origin", "main", cwd=trees[0])
    run("git", "push", "-q", "origin", "HEAD:main", cwd=trees[0])
    rounds(pair[0])
    until_equal(pair, git.carry)
    assert digests(*pair) == before
    assert not [path for tree in trees for path in tree.rglob("*.orig")]


MERGES = list(itertools.product(("one", "other"), repeat=3))


@pytest.mark.parametrize("winners", MERGES, ids=["".join(winner[1] for winner in merge) for merge in MERGES])
def test_a_naive_merge_of_two_directories_loses_nothing_whichever_side_wins(ram, winners):
    """Machines work apart; then a tool takes each side's changes, and where it must choose, it chooses either."""
    one, other = Machine(ram, "one"), Machine(ram, "other")
    base: dict[Path, bytes] = {}
    for number, winner in enumerate(winners):
        for machine in (one, other):
            machine.write(f"{number} 기억", f"{number} again")
            machine.sync()
            machine.wall += 1_000_000_000
            machine.sync()
        base = _merge(base, one.path, other.path, winner)
    for _ in range(3):
        for machine in (one, other):
            machine.sync()
        base = _merge(base, one.path, other.path, "one")
    assert one.holding.digest() == other.holding.digest()
    assert one.holding.digest().events == 4 * len(winners)


def _merge(base: dict[Path, bytes], one: Path, other: Path, winner: str) -> dict[Path, bytes]:
    """Merge two directories three ways, file by file; the winner also decides what was deleted on one side only."""
    mine, yours = _files(one), _files(other)
    merged: dict[Path, bytes] = {}
    for path in sorted(base.keys() | mine.keys() | yours.keys()):
        was, here, there = base.get(path), mine.get(path), yours.get(path)
        if here == there or there == was:
            chosen = here
        elif here == was:
            chosen = there
        else:
            chosen = here if winner == "one" else there
        if chosen is not None:
            merged[path] = chosen
    for root, found in ((one, mine), (other, yours)):
        for path in found.keys() - merged.keys():
            (root / path).unlink()
        for path, data in merged.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
    return merged


def _files(root: Path) -> dict[Path, bytes]:
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_interleaving_of_work_and_merges_ends_with_the_same_set(ram):
    """Two machines, two captures each, two merges: whatever comes first."""
    deeds = ("a", "a", "b", "b", "m", "m")
    orders = sorted(set(itertools.permutations(deeds)))
    for number, order in enumerate(orders):
        root = ram / f"{number}"
        one, other = Machine(root, "one"), Machine(root, "other")
        base: dict[Path, bytes] = {}
        for deed in (*order, "m", "s", "m"):
            if deed == "m":
                base = _merge(base, one.path, other.path, "one")
            elif deed == "s":
                one.sync()
                other.sync()
            else:
                machine = one if deed == "a" else other
                machine.write("기억")
                machine.sync()
        for machine in (one, other):
            machine.sync()
        assert one.holding.digest() == other.holding.digest()
        assert one.holding.digest().events == 4
        shutil.rmtree(root)
    assert len(orders) == 90
