from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memorize.errors import Busy, CannotWrite
from memorize.log.lock import Lock

HOLD = """
import sys, time
from memorize.log.lock import Lock
lock = Lock(sys.argv[1])
assert lock.acquire(10)
print("held", flush=True)
time.sleep(60)
"""


def test_two_locks_of_one_process_exclude_each_other(tmp_path: Path):
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert first.acquire()
    assert first.held
    assert not second.acquire()
    assert not first.acquire()
    first.release()
    assert second.acquire()
    second.release()
    second.release()
    assert (tmp_path / "lock").exists()


def test_closing_another_descriptor_of_the_file_does_not_free_the_lock(tmp_path: Path):
    path = tmp_path / "잠금"
    with Lock(path):
        path.open("r+").close()
        assert not Lock(path).acquire()


def test_waiting_ends_with_busy_which_names_the_lock(tmp_path: Path):
    with Lock(tmp_path / "ingest"), pytest.raises(Busy, match="ingest lock"), Lock(tmp_path / "ingest", 0.05):
        pass


def test_waiting_ends_with_the_lock_when_the_holder_lets_go(tmp_path: Path):
    first = Lock(tmp_path / "lock")
    assert first.acquire()
    timer = threading.Timer(0.05, first.release)
    timer.start()
    second = Lock(tmp_path / "lock")
    assert second.acquire(10)
    timer.join()
    second.release()


def test_a_killed_holder_frees_the_lock(tmp_path: Path):
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder.stdout as stdout:
        assert stdout.readline().strip() == b"held"
        assert not Lock(path).acquire()
        holder.kill()
        holder.wait()
    lock = Lock(path)
    assert lock.acquire(5)
    lock.release()


def test_a_lock_file_that_somebody_deletes_is_not_held_by_two(tmp_path: Path):
    path = tmp_path / "lock"
    inside = []
    most = []

    def contend() -> None:
        for _ in range(30):
            lock = Lock(path)
            assert lock.acquire(30)
            # A deleted file may only ever be followed by a new one that everybody sees.
            if lock._still_there(lock._fd):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
            lock.release()

    def delete() -> None:
        for _ in range(50):
            guard = Lock(path)
            if guard.acquire(30):
                path.unlink(missing_ok=True)
                guard.release()

    threads = [threading.Thread(target=contend) for _ in range(4)] + [threading.Thread(target=delete)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def test_the_folder_of_a_lock_is_made(tmp_path: Path):
    with Lock(tmp_path / "locks" / "ingest"):
        assert (tmp_path / "locks" / "ingest").exists()


def test_a_lock_that_cannot_be_opened_says_where(tmp_path: Path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(CannotWrite, match="lock"), Lock(tmp_path / "lock"):
        pass
