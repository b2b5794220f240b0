"""A watcher is a hint: it may fail in any way, and nothing but the time of arrival depends on it."""

from __future__ import annotations

import threading
import time

import pytest

from memorize.sync.watch import FolderWatch
from tests.sync.places import Machine

PATIENCE_S = 120.0


def test_a_file_that_appears_anywhere_below_is_told(tmp_path):
    changed = threading.Event()
    watch = FolderWatch(changed)
    if not watch.watch([str(tmp_path)]):
        pytest.skip("this machine cannot watch")
    try:
        end = time.monotonic() + PATIENCE_S
        number = 0
        while not changed.wait(0.2):
            number += 1
            place = tmp_path / "memorize" / f"{number}"
            place.mkdir(parents=True)
            (place / "0-1.mzp").write_bytes(b"x")
            assert time.monotonic() < end
    finally:
        watch.close()
    assert not watch.is_alive()


def test_our_own_reading_is_no_change(tmp_path):
    (tmp_path / "0-1.mzp").write_bytes(b"x")
    watch = FolderWatch()
    if not watch.watch([str(tmp_path)]):
        pytest.skip("this machine cannot watch")
    try:
        time.sleep(0.3)
        watch.changed.clear()
        for _ in range(20):
            (tmp_path / "0-1.mzp").read_bytes()
        time.sleep(0.3)
        assert not watch.changed.is_set()
    finally:
        watch.close()


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    watch = FolderWatch()
    assert watch.watch([str(tmp_path / "missing")]) is False
    assert not watch.changed.is_set()
    watch.close()


def test_a_system_that_cannot_watch_is_no_error(tmp_path, monkeypatch):
    def refuse(self, folders):
        raise OSError(28, "no space left for another watch")

    monkeypatch.setattr(FolderWatch, "_start", refuse)
    watch = FolderWatch()
    assert watch.watch([str(tmp_path)]) is False
    assert not watch.is_alive()


def test_watching_the_same_again_starts_nothing_new(tmp_path):
    watch = FolderWatch()
    if not watch.watch([str(tmp_path)]):
        pytest.skip("this machine cannot watch")
    before = threading.active_count()
    for _ in range(3):
        assert watch.watch([str(tmp_path)])
    assert threading.active_count() == before
    watch.close()
    watch.close()


def test_without_any_watcher_everything_still_arrives(ram):
    a, b = Machine(ram, "A", ram / "f"), Machine(ram, "B", ram / "f")
    for number in range(5):
        a.write(f"{number} 기억")
        a.sync()
    place = a.own()[0].parent
    moved = place.with_name("0" * 32)
    place.rename(moved)
    moved.rename(place)
    b.sync()
    assert a.holding.digest() == b.holding.digest()
