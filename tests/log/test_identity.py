from __future__ import annotations

import contextlib
import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memorize.clock import FixedClock
from memorize.errors import BadHome, CannotRead, CannotWrite
from memorize.log.identity import key_path, load_or_renew, note_progress, renew_replica, renew_writer
from memorize.paths import Home
from tests.log.fakes import FailingFiles, QuickFiles, ingester, no_machine

FILES = QuickFiles()
CLOCK = FixedClock()
AFTER_BOOT = FixedClock(mono=5_000_000, boot_id=b"\x02" * 16)

START = """
import sys
from pathlib import Path
from memorize.clock import FixedClock
from memorize.log.files import RealFiles
from memorize.log.identity import load_or_renew
from memorize.paths import Home
print(load_or_renew(Home(Path(sys.argv[1])), RealFiles(), FixedClock(), lambda: "m")[:4])
"""


def load(home: Home, clock=CLOCK, machine=no_machine, files=FILES):
    return load_or_renew(home, files, clock, machine)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "기억 state")


def test_the_first_start_makes_everything_private(home: Home):
    identity = load(home)
    assert len({identity.store, identity.device, identity.replica, identity.writer}) == 4
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert home.identity.stat().st_mode & 0o777 == 0o600
    key = key_path(home, identity.store)
    assert len(key.read_bytes()) == 32
    assert key.stat().st_mode & 0o777 == 0o600
    for folder in (home.spool / "new", home.spool / "tmp", home.spool / "bad", home.segments, home.received):
        assert folder.is_dir()
    assert [note.what for note in identity.notes] == ["made"]


def test_the_second_start_changes_nothing(home: Home):
    first = load(home)
    before = home.identity.read_bytes()
    assert load(home) == first
    assert home.identity.read_bytes() == before


def test_sixteen_processes_that_start_at_once_agree(home: Home):
    starts = [
        subprocess.Popen([sys.executable, "-c", START, str(home.root)], stdout=subprocess.PIPE) for _ in range(16)
    ]
    answers = {start.communicate(timeout=120)[0] for start in starts}
    assert [start.returncode for start in starts] == [0] * 16
    assert len(answers) == 1
    assert len(list(home.keys.iterdir())) == 1


def test_a_boot_renews_the_writer_only(home: Home):
    first = load(home)
    second = load(home, AFTER_BOOT)
    assert second.writer != first.writer
    assert second[:3] == first[:3]
    assert (second.boot, second.swept) == (AFTER_BOOT.boot_id, False)
    assert second.notes[-1].what == "the machine was started again"


def test_a_copy_of_the_directory_renews_replica_and_writer_but_not_the_device(home: Home, tmp_path: Path):
    first = load(home)
    shutil.copytree(home.root, tmp_path / "copy")
    copy = load(Home(tmp_path / "copy"))
    assert (copy.store, copy.device) == (first.store, first.device)
    assert copy.replica != first.replica
    assert copy.writer != first.writer
    assert "copy" in copy.notes[-1].what
    assert load(home) == first


def test_another_machine_is_another_device(home: Home):
    first = load(home)
    second = load(home, machine=lambda: "another machine")
    assert second.store == first.store
    assert len({first.device, second.device}) == len({first.replica, second.replica}) == 2


def test_a_machine_that_does_not_name_itself_raises_no_doubt(home: Home):
    first = load(home)
    assert load(home, machine=lambda: "") == first


def test_a_device_number_counts_within_one_boot_only(home: Home):
    first = load(home)

    class Moved(QuickFiles):
        def place(self, path: str) -> tuple[int, int, int]:
            device, inode, birth = super().place(path)
            return device + 1, inode, birth

    assert load(home, AFTER_BOOT, files=Moved()).replica == first.replica
    assert load(home, AFTER_BOOT).replica != first.replica


@pytest.mark.parametrize(
    "raw",
    [b"", b"\0" * 300, b"{", b"[]", b"null", b'{"store": "zz"}', b"\xff\xfe", b"[" * 50_000, b'{"store": 1}'],
)
def test_an_unreadable_identity_keeps_the_store_by_its_key(home: Home, raw):
    first = load(home)
    home.identity.write_bytes(raw)
    second = load(home)
    assert second.store == first.store
    assert len({first.replica, second.replica, first.writer, second.writer}) == 4
    assert second.notes[-1].what == "the identity file was lost or unreadable"


def test_every_cut_of_an_identity_is_unreadable_or_whole(home: Home):
    first = load(home)
    raw = home.identity.read_bytes()
    for size in range(0, len(raw) - 1, 7):
        home.identity.write_bytes(raw[:size])
        assert load(home).store == first.store


def test_a_lost_identity_keeps_the_store_by_its_segments(home: Home):
    from memorize.log.spool import put_capture

    put_capture(home, "claude", "Stop", b"x", CLOCK)
    ingester(home).run()
    first = load(home)
    home.identity.unlink()
    shutil.rmtree(home.keys)
    assert load(home).store == first.store


def test_a_field_of_a_newer_program_does_not_disturb(home: Home):
    first = load(home)
    fields = json.loads(home.identity.read_text())
    home.identity.write_text(json.dumps(fields | {"later": 1}))
    assert load(home) == first


def test_renewals_are_saved_and_noted_and_the_notes_stay_few(home: Home):
    identity = load(home)
    for n in range(60):
        identity = renew_writer(home, FILES, CLOCK, identity, f"reason {n}")
    again = renew_replica(home, FILES, CLOCK, identity, "a peer knows more")
    assert load(home) == again
    assert len(again.notes) == 50
    assert again.notes[-1] == (CLOCK.wall, "a peer knows more")
    assert again.replica != identity.replica


def test_progress_never_undoes_a_renewal(home: Home):
    old = load(home)
    new = renew_replica(home, FILES, CLOCK, old, "a folder knows more")
    note_progress(home, FILES, old._replace(seq=5))
    assert load(home) == new
    note_progress(home, FILES, new._replace(seq=7))
    assert load(home).seq == 7


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE, "short"])
def test_a_start_that_fails_at_any_call_is_made_good_by_the_next(home: Home, error):
    files = FailingFiles()
    load(home, files=files)
    for at in range(1, len(files.calls) + 1):
        shutil.rmtree(home.root, ignore_errors=True)
        failing = FailingFiles(at, error)
        with contextlib.suppress(CannotRead, CannotWrite, BadHome):  # some calls are only asked out of curiosity
            load(home, files=failing)
        identity = load(home)
        assert load(home) == identity
        assert len(key_path(home, identity.store).read_bytes()) == 32


def test_a_home_that_is_a_file_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadHome, match="file"):
        load(Home(tmp_path / "file"))
