"""What holds for every test: a home of its own, nothing left behind, and the counts at the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.counts import FULL, asked, count, notes

# A deadline would make a slow machine a failing test; the whole run has its own limit.
_RULES = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]}
settings.register_profile("quick", max_examples=count("hypothesis examples", quick=100, full=2_000), **_RULES)
settings.register_profile("full", max_examples=count("hypothesis examples", quick=100, full=2_000), **_RULES)
settings.load_profile("full" if FULL else "quick")


def pytest_configure() -> None:
    """Refuse to judge the checkout where the wheel is meant: ``MEMORIZE_TEST_WHEEL`` names the unpacked wheel."""
    import memorize

    wheel = os.environ.get("MEMORIZE_TEST_WHEEL", "")
    if wheel and not Path(memorize.__file__).is_relative_to(wheel):
        raise pytest.UsageError(f"{memorize.__file__} is not in {wheel}")


# Variables through which a test could reach the person's own memory, settings or agents.
_FORGOTTEN = ("MEMORIZE_DISABLED", "MEMORIZE_GUARD", "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CODEX_HOME")
_XDG = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test an empty home and state directory of its own, and look after it: no thread, no folder changed."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("MEMORIZE_HOME", str(home / "memorize state"))
    for name in _XDG:
        monkeypatch.setenv(name, str(home / name.lower()))
    for name in _FORGOTTEN:
        monkeypatch.delenv(name, raising=False)
    # git must not read the machine's settings nor walk up out of the test's folders
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path_factory.getbasetemp()))
    for name, value in (("NAME", "Tester"), ("EMAIL", "tester@example.invalid")):
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    before, folder = set(threading.enumerate()), Path.cwd()
    yield home
    monkeypatch.undo()
    assert Path.cwd() == folder, "the test left another working directory behind"
    late = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    for thread in late:
        thread.join(timeout=5)
    assert not [thread.name for thread in late if thread.is_alive()], "the test left threads behind"


def _processes_of(folder: Path) -> list[tuple[int, str]]:
    """Return the processes whose environment names a home below ``folder`` (where the system shows it)."""
    found = []
    mark = f"MEMORIZE_HOME={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc").is_dir() else ():
        try:
            environ, words = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(entry.name) != os.getpid() and any(line.startswith(mark) for line in environ.split(b"\0")):
            found.append((int(entry.name), words.replace(b"\0", b" ").decode("utf-8", "replace").strip()))
    return found


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when a process of a test outlives it, and hand the counts to the controlling process."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None:
        for number, words in _processes_of(factory.getbasetemp()):
            os.kill(number, 15)
            _leftovers.append(f"process {number} outlived the run and was ended: {words[:100]}")
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["counts"], output["leftovers"], output["notes"] = asked(), list(_leftovers), notes()
    elif _leftovers:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


_leftovers: list[str] = []
_notes: list[str] = []
_counts: dict[str, int] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take the counts and the leftovers of a worker process."""
    output: dict[str, object] = getattr(node, "workeroutput", {})
    counts = output.get("counts")
    if isinstance(counts, dict):
        _counts.update(counts)
    for name, lines in (("leftovers", _leftovers), ("notes", _notes)):
        found = output.get(name)
        lines.extend(found if isinstance(found, list) else [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how often each repeated test repeated, and what was left behind."""
    counts = {**_counts, **asked()}
    terminalreporter.section("counts (full)" if FULL else "counts (quick; MEMORIZE_TEST_FULL=1 for full)")
    for name in sorted(counts):
        terminalreporter.write_line(f"{counts[name]:>9,}  {name}")
    for line in [*_notes, *notes()]:
        terminalreporter.write_line(line)
    for line in _leftovers:
        terminalreporter.write_line(f"left behind: {line}", red=True)
