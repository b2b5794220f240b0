"""Whatever happened to the bytes of the index, every verb answers, and answers right once the index was made anew."""

from __future__ import annotations

import gc
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.kit import Person
from tests.counts import count

READING = (
    ("list",),
    ("search", "환불 refund key"),
    ("search", "refund", "--observations", "--explain"),
    ("status",),
    ("projects",),
    ("sessions",),
    ("log",),
    ("digest",),
    ("doctor",),
    ("pack", "refund"),
    ("consolidate", "--dry-run"),
)
ROUNDS = count("damaged indexes, each asked by every reading verb", quick=8, full=40)


@pytest.fixture
def filled(person: Person) -> Person:
    person.works()
    person.gets("consolidate", "--wait")
    for number in range(20):
        person.remembers(f"결정 {number}: refunds reuse key {number}.", "--kind", "decision")
    return person


def _flip(path: Path, chance: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    # A damaged page is rarely hurt in one place only.
    page = chance.randrange(max(1, len(raw) // 4096)) * 4096
    for _ in range(chance.choice([1, 5, 40, 400])):
        at = chance.randrange(len(raw)) if chance.random() < 0.5 else min(len(raw) - 1, page + chance.randrange(4096))
        raw[at] ^= 1 << chance.randrange(8)
    path.write_bytes(raw)


def test_flipped_bits_in_the_index_end_no_verb_and_a_rebuild_makes_it_right(filled: Person, tmp_path: Path) -> None:
    before = {words: _steady(filled, *words) for words in (("list",), ("projects",), ("digest",))}
    sound = tmp_path / "sound.sqlite"
    with sqlite3.connect(filled.home.index) as index:
        index.execute("pragma wal_checkpoint(truncate)")
    shutil.copyfile(filled.home.index, sound)
    for seed in range(ROUNDS):
        chance = random.Random(seed)
        for words in READING:
            for path in filled.home.root.glob("index.sqlite*"):
                path.unlink()
            shutil.copyfile(sound, filled.home.index)
            _flip(filled.home.index, chance)
            said = filled.types(*words)
            assert said.code == 0, (seed, words, said)
        filled.gets("rebuild")
        assert {words: _steady(filled, *words) for words in before} == before, seed


def _steady(person: Person, *words: str) -> object:
    found = person.gets(*words)
    for item in found.get("items", ()):
        item.pop("score", None)
    found.pop("set", None)  # a pack is on record
    return found


@pytest.mark.parametrize("words", READING)
def test_an_index_of_nonsense_values_is_made_anew_by_the_verb_that_meets_it(filled: Person, words: tuple[str]) -> None:
    with sqlite3.connect(filled.home.index) as index:
        index.execute("update shown set disputed = x'ff', sources = x'c1', recency_ms = 'soon'")
        index.execute("update sessions set agent = cast(x'ff6f' as text), last = 'x'")
        index.execute("update projects set name = cast(x'fe' as text)")
        index.execute("update events set offset = -5, length = 1 << 60 where kind = 'observed.prompt'")
    said = filled.types(*words)
    assert said.code == 0, said
    assert "Traceback" not in said.out + said.err


def test_what_is_remembered_over_a_damaged_index_is_there_afterwards(filled: Person) -> None:
    with sqlite3.connect(filled.home.index) as index:
        index.execute("update shown set disputed = x'ff', sources = x'c1'")
        index.execute("update memories set paths = 'no json'")
    identity = filled.remembers("Written all the same. 그래도 적혔다.")
    assert identity in [item["id"] for item in filled.gets("list", "--limit", "100")["items"]]


def test_a_locked_index_is_no_damaged_one(filled: Person) -> None:
    gc.collect()  # what the verbs before have open
    before = filled.home.index.stat().st_ino
    holder = sqlite3.connect(filled.home.index, isolation_level=None)
    holder.execute("pragma locking_mode = exclusive")
    holder.execute("begin immediate")
    try:
        filled.types("list")
    finally:
        holder.close()
    assert filled.home.index.stat().st_ino == before
    assert filled.gets("list")["total"] > 20
