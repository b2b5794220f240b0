from __future__ import annotations

import random
import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memorize.fold import digest, finish, fold, rows
from memorize.fold.intake import _SORTS
from memorize.index import meta, schema
from memorize.index.rows import FOLDABLE
from memorize.model import Event
from tests.counts import count
from tests.fold.events import event_set
from tests.index.make import FILE, NOW, groups, new_index, readable, stored

_TABLES = (
    "aliases", "erased", "quarantined", "claims", "claimed", "memories", "shown", "memory_fts", "observation_fts",
)  # fmt: skip


def test_the_index_knows_the_kinds_that_the_fold_reads() -> None:
    assert frozenset(_SORTS) == FOLDABLE


def _state_of(path: Path) -> bytes:
    connection = schema.open_read(path)
    try:
        return finish(*meta.totals(connection, "state"))
    finally:
        connection.close()


def _content(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return what the tables say, with event ids in place of numbers."""
    connection = sqlite3.connect(path)
    ids = dict(connection.execute("select n, id from events"))
    found: dict[str, list[tuple[object, ...]]] = {}
    for table in _TABLES:
        cursor = connection.execute(f"select {'rowid as n, *' if table.endswith('fts') else '*'} from {table}")
        names = [column[0] for column in cursor.description]
        at = names.index("n") if "n" in names else None
        rows_ = [
            tuple(ids.get(value, value) if place == at else value for place, value in enumerate(row)) for row in cursor
        ]
        found[table] = sorted(rows_, key=repr)
    connection.close()
    return found


@settings(max_examples=count("random event sets, indexed piece by piece", quick=150, full=2_000))
@given(st.integers(0, 2**64))
def test_an_index_filled_piece_by_piece_has_the_state_of_the_whole_set(seed: int) -> None:
    chance = random.Random(seed)
    events = [readable(event) for event in event_set(chance, 26)]
    chance.shuffle(events)
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "index.sqlite", Path(folder) / "at once.sqlite"
        projector = new_index(path)
        for part in groups(stored(events), chance, 6):
            projector.apply(part, {FILE: 1}, NOW)
        projector.close()
        assert _state_of(path) == digest(rows(fold(events)))
        whole = new_index(other)
        whole.apply(stored(events), {FILE: 1}, NOW)
        whole.close()
        assert _content(path) == _content(other)
        _check_set(path, events)


@settings(max_examples=count("random event sets, bodies that come later", quick=80, full=1_000))
@given(st.integers(0, 2**64))
def test_a_body_that_comes_later_counts_from_then_on(seed: int) -> None:
    chance = random.Random(seed)
    events = [readable(event) for event in event_set(chance, 20)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.sqlite"
        projector = new_index(path)
        bare = [one._replace(payload=None, malformed=False) if chance.random() < 0.5 else one for one in events]
        for part in groups(stored(bare), chance, 6):
            projector.apply(part, {}, NOW)
        assert _state_of(path) == digest(rows(fold(bare)))
        chance.shuffle(events)
        for part in groups(stored(events), chance, 6):
            projector.apply(part, {}, NOW)
        projector.close()
        assert _state_of(path) == digest(rows(fold([*bare, *events])))
        _check_set(path, events)


def _check_set(path: Path, events: list[Event]) -> None:
    erased = fold(events).erased
    counted = [one.id for one in events if one.payload is not None or one.malformed or one.id in erased]
    connection = schema.open_read(path)
    total = sum(int.from_bytes(identity, "big") for identity in counted) % 2**256
    assert meta.totals(connection, "set") == (len(counted), total)
    connection.close()
