"""The real folder: files appear whole, whatever fails; what is listed is a file of somebody's, never a tool's rest."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from memorize.log.files import RealFiles
from memorize.sync.folder import Entry, RealFolder, skipped

TOOLS_LEAVE = (
    ".syncthing.0-00112233.mzp.tmp",
    "~syncthing~0-00112233.mzp.tmp",
    ".stfolder",
    ".dropbox.cache",
    "~$0-0011.mzp",
    ".~lock.0-0011.mzp#",
    ".0-0011.mzp.icloud",
    "0-0011.mzp.tmp",
    "0-0011.mzp.partial",
    "0-0011.mzp.!sync",
    ".0-0011.mzp.X1y2Z3",
    "._0-0011.mzp",
    ".DS_Store",
    "desktop.ini",
    "Thumbs.db",
    "0-0011.mzp~",
    ".0-0011.mzp.swp",
)
CONFLICTS = (
    "0-0011.sync-conflict-20261201-101500-ABCDEFG.mzp",
    "0-0011 (기기's conflicted copy 2026-12-01).mzp",
    "0-0011-DESKTOP.mzp",
    "0-0011 (1).mzp",
    "0-0011_conflict-20261201-101500.mzp",
    "0-0011.mzp.orig",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "공유 folder"
    path.mkdir()
    return path


def folder(root: Path, files: RealFiles | None = None, read_s: float = 30.0) -> RealFolder:
    outbox = root.parent / "state" / "outbox"
    return RealFolder(str(root), str(outbox), files or RealFiles(), read_s)


def paths(found: RealFolder) -> list[str]:
    return sorted(entry.path for entry in found.listing().entries)


class TestListing:
    def test_a_folder_that_is_not_there_is_an_error_and_not_empty(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            folder(tmp_path / "missing").listing()

    def test_a_folder_without_ours_in_it_is_empty(self, root):
        assert folder(root).listing() == ([], ())

    def test_a_file_in_its_place_is_an_error(self, root):
        (root / "file").write_bytes(b"")
        with pytest.raises(OSError):
            folder(root / "file").listing()
        (root / "memorize").write_bytes(b"")
        with pytest.raises(OSError):
            folder(root).listing()

    @pytest.mark.parametrize("name", TOOLS_LEAVE)
    def test_what_tools_leave_is_passed_over(self, root, name):
        (root / "memorize").mkdir()
        (root / "memorize" / name).write_bytes(b"x")
        assert skipped(name)
        assert paths(folder(root)) == []

    @pytest.mark.parametrize("name", CONFLICTS)
    def test_conflict_copies_are_files_like_all_others(self, root, name):
        place = root / "memorize" / "aa" / "bb"
        place.mkdir(parents=True)
        (place / name).write_bytes(b"content")
        assert folder(root).listing().entries == [Entry(f"aa/bb/{name}", 7, False)]

    def test_links_are_not_followed(self, root, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "0-0011.mzp").write_bytes(b"x")
        (root / "memorize").mkdir()
        (root / "memorize" / "link").symlink_to(outside)
        (root / "memorize" / "0-22.mzp").symlink_to(outside / "0-0011.mzp")
        (root / "memorize" / "loop").symlink_to(root)
        assert paths(folder(root)) == []
        with pytest.raises(OSError):
            folder(root).read("0-22.mzp")
        with pytest.raises(OSError):
            folder(root).create("link/0-33.mzp", b"data")
        with pytest.raises(OSError):
            folder(root).delete("link/0-0011.mzp")
        assert [path.name for path in outside.iterdir()] == ["0-0011.mzp"]

    def test_a_link_in_place_of_our_directory_is_refused(self, root, tmp_path):
        (root / "memorize").symlink_to(tmp_path)
        with pytest.raises(OSError):
            folder(root).listing()
        with pytest.raises(OSError):
            folder(root).create("aa/bb/0-33.mzp", b"data")

    def test_pipes_are_no_files(self, root):
        (root / "memorize").mkdir()
        os.mkfifo(root / "memorize" / "0-44.mzp")
        assert paths(folder(root)) == []
        assert folder(root, read_s=20).read("0-44.mzp") == b""

    def test_a_directory_that_may_not_be_read_hides_what_is_in_it(self, root, monkeypatch):
        (root / "memorize" / "aa").mkdir(parents=True)
        (root / "memorize" / "0-55.mzp").write_bytes(b"x")
        self._fail(monkeypatch, PermissionError(errno.EACCES, "denied"))
        found = folder(root).listing()
        assert ([entry.path for entry in found.entries], found.hidden) == (["0-55.mzp"], ("aa/",))

    def test_what_vanishes_while_it_is_listed_is_not_listed(self, root, monkeypatch):
        place = root / "memorize" / "aa"
        place.mkdir(parents=True)
        (place / "0-1.mzp").write_bytes(b"x")
        (root / "memorize" / "0-2.mzp").write_bytes(b"x")
        self._fail(monkeypatch, FileNotFoundError(errno.ENOENT, "gone"))
        assert paths(folder(root)) == ["0-2.mzp"]

    def _fail(self, monkeypatch, error: OSError) -> None:
        """Let the listing of one directory fail."""
        real = os.scandir

        def scandir(path: str):
            if path.endswith("aa/"):
                raise error
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)


class TestPlaceholders:
    def test_a_file_with_a_size_and_no_blocks_is_a_placeholder(self, root):
        (root / "memorize").mkdir()
        (root / "memorize" / "0-1.mzp").write_bytes(os.urandom(70_000))
        with (root / "memorize" / "0-2.mzp").open("wb") as stub:
            stub.truncate(70_000)
        os.sync()
        found = {entry.path: entry.stub for entry in folder(root).listing().entries}
        if not (root / "memorize" / "0-1.mzp").stat().st_blocks:
            pytest.skip("this file system tells of no blocks")
        assert found == {"0-1.mzp": False, "0-2.mzp": True}

    def test_where_no_file_has_blocks_nothing_is_concluded(self, root):
        (root / "memorize").mkdir()
        with (root / "memorize" / "0-2.mzp").open("wb") as stub:
            stub.truncate(70_000)
        assert [entry.stub for entry in folder(root).listing().entries] == [False]

    def test_content_that_does_not_come_is_waited_for_only_so_long(self, root, monkeypatch):
        place = folder(root, read_s=0.05)
        release = threading.Event()
        monkeypatch.setattr("memorize.sync.folder._content", lambda path: release.wait(60) and b"")
        try:
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    place.read("0-1.mzp")
            stuck = [thread for thread in threading.enumerate() if thread.name == "memorize-read"]
            assert len(stuck) == 2
        finally:
            release.set()
        for thread in stuck:
            thread.join(60)
        monkeypatch.undo()
        (root / "memorize").mkdir()
        (root / "memorize" / "0-1.mzp").write_bytes(b"here")
        assert folder(root).read("0-1.mzp") == b"here"

    @pytest.mark.parametrize("number", [errno.EDEADLK, errno.EIO, errno.ETIMEDOUT, errno.EACCES])
    def test_an_error_of_reading_is_an_error_of_that_file(self, root, monkeypatch, number):
        def fail(path: str) -> bytes:
            raise OSError(number, "no content")

        monkeypatch.setattr("memorize.sync.folder._content", fail)
        with pytest.raises(OSError) as caught:
            folder(root).read("0-1.mzp")
        assert caught.value.errno == number


class Failing(RealFiles):
    """A disk that fails, or a process that dies, at one of its changes."""

    CHANGES = ("create", "write", "fsync", "close", "sync_dir", "rename", "unlink", "make_dir")

    def __init__(self, at: int, error: BaseException, *, across: bool = False) -> None:
        self.at, self.error, self.across, self.calls, self.dead = at, error, across, 0, False
        for name in self.CHANGES:
            setattr(self, name, self._wrapped(name, getattr(self, name)))

    def _wrapped(self, name, call):
        def checked(*arguments):
            if self.dead:
                raise self.error
            self.calls += 1
            if self.calls == self.at:
                self.dead = not isinstance(self.error, OSError)
                if name == "write" and len(arguments[1]) > 1:
                    call(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise self.error
            if name == "rename" and self.across and "outbox" in arguments[0]:
                raise OSError(errno.EXDEV, "another file system")
            return call(*arguments)

        return checked


class Killed(BaseException):
    """The process ends here: nothing more is done, nothing is cleaned away."""


DATA = os.urandom(3_000) * 500


@pytest.mark.parametrize("across", [False, True], ids=["one file system", "two file systems"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), Killed()], ids=["full disk", "kill"])
def test_whatever_stops_a_publisher_leaves_no_partial_file_and_the_next_one_cleans_up(tmp_path, across, error):
    step = 0
    while True:
        step += 1
        root = tmp_path / f"{step}"
        root.mkdir()
        files = Failing(step, error, across=across)
        place = RealFolder(str(root / "f"), str(root / "outbox"), files)
        (root / "f").mkdir()
        try:
            place.create("aa/bb/0-11.mzp", DATA)
            done = True
        except (OSError, Killed):
            done = False
        if files.calls < step:
            assert done
            break
        for entry in place.listing().entries:
            assert (entry.path, entry.size) == ("aa/bb/0-11.mzp", len(DATA))
            assert place.read(entry.path) == DATA
        after = RealFolder(str(root / "f"), str(root / "outbox"), RealFiles())
        after.create("aa/bb/0-22.mzp", b"next")
        left = {path.name for path in root.rglob("*") if path.is_file()}
        assert left in ({"0-22.mzp"}, {"0-11.mzp", "0-22.mzp"})
    assert step > 8


class TestCreating:
    def test_a_file_appears_under_its_name_with_everything_in_it(self, root):
        """Somebody looks all the time: there is no moment at which the file is there and not whole."""
        place, done, seen = folder(root), threading.Event(), set()

        def look() -> None:
            while not done.is_set():
                for entry in place.listing().entries:
                    seen.add((entry.path, entry.size))

        looker = threading.Thread(target=look)
        looker.start()
        try:
            for number in range(30):
                place.create(f"aa/bb/0-{number:016x}.mzp", DATA)
        finally:
            done.set()
            looker.join()
        assert {size for _, size in seen} <= {len(DATA)}

    def test_there_is_no_lock_and_nothing_but_the_file(self, root):
        folder(root).create("aa/bb/0-11.mzp", b"data")
        assert [path.name for path in root.rglob("*") if path.is_file()] == ["0-11.mzp"]

    def test_a_name_is_never_used_twice(self, root):
        place = folder(root)
        place.create("aa/bb/0-11.mzp", b"data")
        with pytest.raises(FileExistsError):
            place.create("aa/bb/0-11.mzp", b"other")
        assert place.read("aa/bb/0-11.mzp") == b"data"

    def test_the_folder_itself_is_never_made(self, tmp_path):
        """It may be a mount point whose file system is not there: what is made would lie below it, unseen."""
        place = folder(tmp_path / "not mounted")
        with pytest.raises(FileNotFoundError):
            place.create("aa/bb/0-11.mzp", b"data")
        assert not (tmp_path / "not mounted").exists()

    def test_what_reads_back_as_something_else_is_an_error(self, root, monkeypatch):
        place = folder(root)
        monkeypatch.setattr(place, "read", lambda path: b"dust")
        with pytest.raises(OSError) as caught:
            place.create("aa/bb/0-11.mzp", b"data")
        assert caught.value.errno == errno.EIO
        assert paths(place) == []

    def test_a_file_system_that_cannot_sync_directories_will_do(self, root):
        class Simple(RealFiles):
            def sync_dir(self, directory: str) -> None:
                raise OSError(errno.EINVAL, "a directory cannot be synced")

        folder(root, Simple()).create("aa/bb/0-11.mzp", b"data")
        assert paths(folder(root)) == ["aa/bb/0-11.mzp"]

    def test_deleting_what_is_gone_is_no_error(self, root):
        place = folder(root)
        place.create("aa/bb/0-11.mzp", b"data")
        for _ in range(2):
            place.delete("aa/bb/0-11.mzp")
        assert paths(place) == []
