"""What a verb loads before it does anything, and the two answers that need no verb at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import memorize
from memorize import __version__
from memorize.cli import table
from memorize.cli.terminal import columns
from memorize.cli.verbs import cli
from tests.capture.kit import modules_loaded
from tests.children import hear
from tests.cli.kit import Person

# Slow to load, and of no use to a verb that only reads. A name stands for all below it.
HEAVY = set(
    """
    asyncio cryptography email http importlib.metadata multiprocessing platformdirs rich shutil socket ssl subprocess
    tempfile tomllib unittest urllib.request watchdog zstandard
    memorize.agents.base memorize.bootstrap.erasing memorize.bootstrap.intake memorize.bootstrap.watching
    memorize.consolidate memorize.daemon memorize.fold memorize.index.projector memorize.index.rebuild
    memorize.log.ingest memorize.log.redact memorize.reading memorize.recall.commands memorize.recall.context
    memorize.sync
    """.split()
)
FOLDS = {"memorize.fold"}
# It asks whether a daemon runs and which agents are there.
PROGRAMS = {"shutil", "socket", "subprocess", "tempfile", "tomllib"}
# verb -> what it may load of these, having work for it.
READING: dict[tuple[str, ...], set[str]] = {
    ("search", "환불"): set(),
    ("search", "환불", "--json"): set(),
    ("list",): set(),
    ("show", "ID"): set(),
    ("projects",): set(),
    ("log",): set(),
    ("config",): set(),
    ("version",): set(),
    ("rules",): {"memorize.recall.commands"},
    ("status",): {"memorize.agents.base", "memorize.consolidate", "memorize.daemon", *PROGRAMS},
    ("digest",): FOLDS,
    ("history", "ID"): FOLDS,
}


def environ(person: Person) -> dict[str, str]:
    package = str(Path(memorize.__file__).resolve().parent.parent)
    return {**os.environ, "MEMORIZE_HOME": str(person.home.root), "PYTHONPATH": package}


def loaded(person: Person, *words: str) -> set[str]:
    return modules_loaded([sys.executable, "-m", "memorize", *words], environ(person), person.project)


def within(names: set[str], tops: set[str]) -> set[str]:
    return {top for top in tops if any(name == top or name.startswith(f"{top}.") for name in names)}


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_verb_that_only_reads_loads_nothing_heavy(person: Person, words: tuple[str, ...]) -> None:
    identity = person.remembers("환불은 한 번만 한다.")
    found = loaded(person, *(identity if word == "ID" else word for word in words))
    assert "click" in found
    assert within(found, HEAVY) <= READING[words]


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["-h"]])
def test_version_and_help_load_neither_click_nor_a_verb(person: Person, words: list[str]) -> None:
    found = loaded(person, *words)
    assert not within(found, {"click", "json", "typing", "memorize.errors", "memorize.model"})
    assert {name for name in found if name.startswith("memorize.cli.")} <= {
        "memorize.cli.main",
        "memorize.cli.table",
        "memorize.cli.terminal",
    }


@pytest.mark.parametrize("width", [80, 81, 85, 90, 99, 100, 101, 200])
def test_the_page_is_what_click_makes_of_the_verbs(person: Person, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    made = cli.make_context("memorize", ["version"]).get_help() + "\n"
    assert table.page(width) == made
    assert person.types("--help").out == person.types("-h").out == made


def test_on_a_narrow_terminal_the_page_still_fits(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = person.types("--help").out.splitlines()
    assert "  setup" in "\n".join(lines)
    assert max(map(len, lines)) < 60


def test_the_version_is_told_as_click_tells_it(person: Person) -> None:
    made = CliRunner().invoke(cli, ["--version"], prog_name="memorize").output
    assert person.types("--version").out == made
    assert __version__ in made


def test_a_reader_who_leaves_early_is_no_error(person: Person) -> None:
    for words in (["--help"], ["--version"]):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "memorize", *words]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False, env=environ(person))
        os.close(writer)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("told", "expected"), [("120", 120), ("0", 7), ("", 7), ("wide", 7), ("-3", 7), ("²", 7)])
def test_the_width_is_what_the_person_says_or_the_one_that_is_given(
    told: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", told)
    monkeypatch.setattr(sys, "__stdout__", None)
    monkeypatch.setattr(os, "get_terminal_size", _no_terminal)
    assert columns(7) == expected


def _no_terminal(_: int) -> os.terminal_size:
    raise OSError


INTERRUPTED = """
import os, signal, sys

class Ctrl:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Ctrl())
from memorize.cli.main import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    "module", ["memorize.cli.verbs", "click", "memorize.cli.table", "memorize.cli.list_cmd", "memorize.bootstrap.app"]
)
def test_ctrl_c_while_a_verb_is_still_being_loaded_is_quiet(person: Person, module: str) -> None:
    words = ["--help"] if module == "memorize.cli.table" else ["list"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *words],
        env={**environ(person), "COLUMNS": "120"},
        capture_output=True,
        preexec_fn=hear,
        check=False,
    )
    assert done.returncode == 130
    assert (done.stdout, b"Traceback" in done.stderr) == (b"", False), done.stderr
    assert len(done.stderr.splitlines()) <= 2
