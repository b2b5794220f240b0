"""The catalog is a memory of work done: it outlives processes, and nothing is lost with it."""

from __future__ import annotations

import sqlite3

import pytest

from memorize.errors import CannotWrite
from memorize.sync.catalog import TAKEN, Catalog, Facts, Row
from memorize.sync.chains import Run

ROW = Row(
    "aa/bb/0-1 한글.mzp",
    123,
    TAKEN,
    1,
    store=b"s" * 16,
    key=b"k" * 16,
    events=2,
    runs=(Run(b"w" * 16, 1, 2, b"i" * 32),),
    missing=(b"m" * 16,),
    covered="aa/bb/1-2.mzp",
    since=7,
    soiled=True,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sync.sqlite"


def test_what_was_flushed_is_there_again_by_folder(path):
    catalog = Catalog.open(path, "/공유")
    catalog.put(ROW)
    catalog.put(ROW._replace(path="gone"))
    catalog.add_erased([b"e" * 32])
    catalog.facts = Facts(5, 6, 7, catalog.next_number(), ((b"w" * 16, 9),), b"told", (b"r" * 16,))
    catalog.flush()
    catalog.drop("gone")
    catalog.flush()
    catalog.put(ROW._replace(path="not flushed"))
    catalog.close()
    again = Catalog.open(path, "/공유")
    assert (again.rows, again.facts, again.erased) == ({ROW.path: ROW}, catalog.facts, {b"e" * 32})
    again.close()
    other = Catalog.open(path, "/other")
    assert (other.rows, other.facts) == ({}, Facts())
    other.close()


def test_nobody_else_may_read_it(path):
    Catalog.open(path, "f").close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 300, b"SQLite format 3\0" + b"\xff" * 9_000])
def test_a_damaged_file_is_begun_again(path, content):
    path.write_bytes(content)
    catalog = Catalog.open(path, "f")
    assert catalog.rows == {}
    catalog.put(ROW)
    catalog.flush()
    catalog.close()
    again = Catalog.open(path, "f")
    assert again.rows == {ROW.path: ROW}
    again.close()


@pytest.mark.parametrize("blob", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\xa3abc"])
def test_a_row_that_nobody_wrote_makes_it_begin_again(path, blob):
    catalog = Catalog.open(path, "f")
    catalog.put(ROW)
    catalog.flush()
    catalog.close()
    with sqlite3.connect(path) as database:
        database.execute("update packs set row = ?", (blob,))
    database.close()
    again = Catalog.open(path, "f")
    assert again.rows == {}
    again.close()


def test_one_of_another_version_is_begun_again(path):
    catalog = Catalog.open(path, "f")
    catalog.put(ROW)
    catalog.flush()
    catalog.close()
    with sqlite3.connect(path) as database:
        database.execute("pragma user_version = 99")
    database.close()
    again = Catalog.open(path, "f")
    assert again.rows == {}
    again.put(ROW)
    again.flush()
    again.close()
    assert Catalog.open(path, "f").rows == {ROW.path: ROW}


def test_damage_that_shows_while_it_is_written_costs_nothing(path):
    catalog = Catalog.open(path, "f")
    catalog.put(ROW)
    catalog.flush()
    path.write_bytes(b"\0" * path.stat().st_size)
    catalog.put(ROW._replace(path="second"))
    catalog.flush()
    catalog.close()
    again = Catalog.open(path, "f")
    assert set(again.rows) == {ROW.path, "second"}
    again.close()


def test_what_cannot_be_made_is_a_problem_with_a_name(tmp_path):
    with pytest.raises(CannotWrite):
        Catalog.open(tmp_path / "missing" / "sync.sqlite", "f")
    (tmp_path / "directory").mkdir()
    with pytest.raises(CannotWrite):
        Catalog.open(tmp_path / "directory", "f")
