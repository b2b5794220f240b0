"""The benchmarks run, at a size that says nothing about speed, and print what they promise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.stores import Agent, Filler, new_project
from bench.timing import Conditions, show, spread
from bench.words import Author

ROOT = Path(__file__).resolve().parent.parent.parent
QUICK = {
    "hook": ["--rounds", "2", "--files", "20", "--events", "30"],
    "action": ["--rounds", "2", "--memories", "40"],
    "ingest": ["--files", "60", "--memories", "40"],
    "search": ["--sizes", "40", "--rounds", "2"],
    "start": ["--sizes", "40", "--rounds", "2"],
    "rebuild": ["--size", "100"],
    "peers": ["--events", "5000", "--differences", "40", "--first", "200"],
    "folder": ["--events", "300", "--each", "20"],
}

pytestmark = pytest.mark.skipif(os.environ.get("MEMORIZE_TEST_WHEEL") == "1", reason="benchmarks are the checkout's")


def measured(name: str, words: list[str]) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", f"bench.{name}", "--json", *words], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", QUICK)
def test_a_benchmark_prints_one_document_with_its_rows_and_the_facts_of_the_machine(name: str) -> None:
    found = measured(name, QUICK[name])
    assert found["bench"] == name
    assert {"system", "processor", "cores", "python", "sqlite"} == set(found["machine"])
    assert found["items"]
    assert all(isinstance(row["ratio"], int | float) and row["ratio"] > 0 for row in found["items"])


def test_all_benchmarks_write_one_page_without_a_path_of_this_machine(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    found = measured("all", ["--quick", "--only", "search,rebuild", "--output", str(page)])
    assert [one["bench"] for one in found["items"]] == ["search", "rebuild"]
    text = page.read_text("utf-8")
    assert "## search" in text
    assert "| in process | 40 |" in text
    assert str(ROOT) not in text
    assert str(tmp_path) not in text


def test_the_same_seed_gives_the_same_captures_and_texts_also_korean_ones(tmp_path: Path) -> None:
    once, again = (list(Agent(tmp_path, 7).calls(200)) for _ in range(2))
    assert once == again
    assert list(Agent(tmp_path, 8).calls(200)) != once
    texts = [Author(3).prose(200), Author(3).prose(200)]
    assert texts[0] == texts[1]
    assert any("가" <= char <= "힣" for _, payload in once for char in payload.decode())


def test_every_call_of_the_played_agent_becomes_an_event_unless_silent_ones_are_wanted(tmp_path: Path) -> None:
    filler = Filler(tmp_path / "home", new_project(tmp_path / "checkout"))
    filler.captures(120)
    counts = filler.app.reader().counts()
    filler.finish().close()
    assert counts.events >= 120
    assert counts.quarantined == 0
    loud, silent = (list(Agent(tmp_path, silent=wanted).calls(100)) for wanted in (False, True))
    assert not any(event == "PreToolUse" for event, _ in loud)
    assert any(event == "PreToolUse" for event, _ in silent)


def test_a_store_holds_as_many_memories_as_were_wanted_less_those_that_were_put_in_new_words(tmp_path: Path) -> None:
    filler = Filler(tmp_path / "home", new_project(tmp_path / "checkout"))
    filler.memories(100)
    app = filler.finish()
    assert app.reader().counts().memories == 100
    place = app.place(str(tmp_path / "checkout"))
    assert "memorize-context" in app.context(place).text
    assert list(app.home.briefs.iterdir())
    app.close()


def test_a_blind_log_gives_the_same_index_by_a_rebuild(tmp_path: Path) -> None:
    filler = Filler(tmp_path / "home", new_project(tmp_path / "checkout"), blind=True)
    filler.memories(40)
    filler.captures(60)
    assert not filler.app.home.index.exists()
    events = filler.app.rebuild()
    assert events == filler.app.reader().counts().events
    assert filler.app.ingest().recovered == 0
    filler.app.close()


def test_a_table_holds_every_column_of_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"case": "one", **spread([0.001, 0.002, 0.003], 0.001)}, {"case": "둘", "events": 1_000}]
    show("none", rows, Conditions(0.5, 50.0), as_json=False)
    out = capsys.readouterr().out
    assert "ratio" in out
    assert "2.0" in out
    assert "1,000" in out
