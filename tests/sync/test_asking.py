"""Folders are asked in processes of their own: one that hangs holds up nobody, and nothing but its own question."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memorize.sync import names
from memorize.sync.asking import Asking
from tests.sync.hung import hung


def test_the_number_changes_with_names_and_sizes_and_with_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "동기화"
    (folder / "memorize" / "여기").mkdir(parents=True)
    ask = Asking().ask
    seen = [ask([str(folder)])[str(folder)]]
    (folder / "beside").touch()
    seen.append(ask([str(folder)])[str(folder)])
    (folder / "memorize" / "여기" / "0-1.mzp").write_bytes(b"12")
    seen.append(ask([str(folder)])[str(folder)])
    os.utime(folder / "memorize" / "여기" / "0-1.mzp", (1, 1))
    seen.append(ask([str(folder)])[str(folder)])
    (folder / "memorize" / "여기" / "0-1.mzp").write_bytes(b"1")
    seen.append(ask([str(folder)])[str(folder)])
    assert [one == other for one, other in itertools.pairwise(seen)] == [True, False, True, False]
    assert seen[-1] == names.number_of(str(folder))


@pytest.mark.parametrize("name", ["gone", b"\xff\xfe".decode("utf-8", "surrogateescape")])
def test_a_folder_that_is_not_there_answers_that_there_is_nothing(tmp_path: Path, name: str) -> None:
    assert Asking().ask([f"{tmp_path}/{name}"]) == {f"{tmp_path}/{name}": 0}


def test_the_process_that_asks_loads_nothing_of_the_program() -> None:
    code = f"import runpy, sys; runpy.run_path({names.__file__!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not [one for one in done.stdout.split() if one.split(".")[0] in ("memorize", "subprocess", "json")]


def test_one_that_hangs_is_told_and_the_others_answer(tmp_path: Path) -> None:
    stuck, fine = tmp_path / "stuck", tmp_path / "멀쩡한"
    (fine / "memorize").mkdir(parents=True)
    stuck.mkdir()
    ask = Asking()
    with hung(stuck):
        for _ in range(2):
            assert ask.ask([str(stuck), str(fine)], 1.0) == {str(stuck): None, str(fine): 0}
        assert ask.ask([str(stuck)], 60.0, lambda _: True) == {str(stuck): None}  # nobody waits any more
    assert ask.ask([str(stuck)]) == {str(stuck): 0}
