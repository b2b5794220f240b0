"""The checks of ``memorize doctor``: each looks at one thing and says what to do when it is wrong."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from memorize.agents import install, receipt
from memorize.agents.base import Found
from memorize.bootstrap import App
from memorize.cli import extracting
from memorize.cli.damage import report_lines
from memorize.cli.when import ago
from memorize.consolidate.attempts import FAILURES_MAX
from memorize.daemon import life
from memorize.errors import Problem
from memorize.log.verify import verify

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
_DISK_BYTES_MIN: Final = 1 << 30
_SPOOL_AGE_S_MAX: Final = 3600
_HOOK_S_MAX: Final = 10.0


class Check(NamedTuple):
    """The result of one check. ``do`` is the remedy, empty when all is well."""

    level: str
    name: str
    text: str
    do: str = ""


def run(parts: App) -> list[Check]:
    """Run every check; one that fails itself is a failed check, never an error."""
    results: list[Check] = []
    for check in (_home, _disk, _hooks, _interpreter, _spool, _index, _log, _identity, _daemon, _models, _settings):
        try:
            results.extend(check(parts))
        except Problem as problem:
            results.append(Check(FAIL, check.__name__.strip("_"), str(problem), problem.remedy()))
        except OSError as error:
            text = f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
            results.append(Check(FAIL, check.__name__.strip("_"), text, "look at the disk and the rights of this path"))
    return results


_Checks = Callable[[App], Iterator[Check]]


def _home(parts: App) -> Iterator[Check]:
    root = parts.home.root
    if not root.is_dir():
        yield Check(WARN, "home", f"{root} is not there yet", "run: memorize setup")
        return
    mode = stat.S_IMODE(root.stat().st_mode)
    if os.name == "posix" and mode & 0o077:
        yield Check(FAIL, "home", f"others may look into {root} (mode {mode:o})", f"chmod 700 '{root}'")
    elif not os.access(root, os.W_OK):
        yield Check(
            FAIL, "home", f"{root} cannot be written", "mend its rights, or set MEMORIZE_HOME to another directory"
        )
    else:
        yield Check(OK, "home", f"{root} is private and writable")


def _disk(parts: App) -> Iterator[Check]:
    folder = next(path for path in (parts.home.root, *parts.home.root.parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    text = f"{free / (1 << 30):.1f} GiB free"
    if free < _DISK_BYTES_MIN:
        yield Check(WARN, "disk", text, "free some space; what cannot be written waits in the spool")
    else:
        yield Check(OK, "disk", text)


def _hooks(parts: App) -> Iterator[Check]:
    records = receipt.load(parts.home)
    if not records:
        yield Check(WARN, "hooks", "no agent is wired, so nothing is captured", "run: memorize setup")
        return
    plan = install.plan(parts.home, _python(parts), sorted({record.agent for record in records.values()}), os.environ)
    for edit in plan.edits:
        if edit.edit.changes:
            text = f"{edit.path} lacks hooks of ours"
            yield Check(FAIL, f"hooks-{edit.agent}", text, f"run: memorize setup --agent {edit.agent}")
        else:
            yield Check(OK, f"hooks-{edit.agent}", f"{len(edit.inserted.commands)} events registered in {edit.path}")
    for problem in plan.problems:
        yield Check(FAIL, "hooks", str(problem), problem.remedy())
    for note in plan.notes:
        trust = "trust" in note.lower()
        remedy = 'open codex in any project, choose "Trust all and continue"' if trust else "as it says"
        yield Check(WARN, "codex-trust" if trust else "agents", note, remedy)
    yield from _unfound(plan.found)


def _unfound(found: tuple[Found, ...]) -> Iterator[Check]:
    for one in found:
        if one.program is None:
            yield Check(
                WARN, f"program-{one.agent}", "the agent's program is not on PATH", "install it, or ignore this"
            )


def _python(parts: App) -> str:
    path = parts.home.hook / "python"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _interpreter(parts: App) -> Iterator[Check]:
    python = _python(parts)
    if not python:
        return
    remedy = "run: memorize setup   (it writes the hooks for the interpreter that runs now)"
    if not Path(python).exists():
        yield Check(FAIL, "interpreter", f"{python} is gone, so no hook can run", remedy)
        return
    done = subprocess.run(
        [python, "-I", "-S", str(parts.home.hook_program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_HOOK_S_MAX,
        check=False,
    )
    if done.returncode or done.stdout or done.stderr:
        yield Check(FAIL, "interpreter", f"the hook program does not run with {python}", remedy)
    else:
        yield Check(OK, "interpreter", f"the hook program runs with {python}")


def _spool(parts: App) -> Iterator[Check]:
    new, bad = parts.home.spool / "new", parts.home.spool / "bad"
    waiting = sorted(entry.name for entry in os.scandir(new)) if new.is_dir() else []
    spoiled = sum(1 for _ in os.scandir(bad)) if bad.is_dir() else 0
    age_s = (parts.clock.monotonic_ns() - int(waiting[0][:16], 16)) // 10**9 if waiting and waiting[0][:1] != "." else 0
    if spoiled:
        text = f"{spoiled} captures could not be read (kept in {bad} for 7 days)"
        yield Check(FAIL, "spool", text, "memorize verify --repair   (nothing is deleted)")
    elif len(waiting) and age_s > _SPOOL_AGE_S_MAX:
        text = f"{len(waiting)} captures wait, the oldest for {ago(0, age_s * 1000).removesuffix(' ago')}"
        yield Check(WARN, "spool", text, "memorize status   (any verb takes them in)")
    else:
        yield Check(OK, "spool", f"{len(waiting)} captures wait")


def _index(parts: App) -> Iterator[Check]:
    counts = parts.reader().counts()
    yield Check(OK, "index", f"{counts.events} events, {counts.memories} memories shown")
    if counts.quarantined:
        text = f"{counts.quarantined} events have a form that this version does not understand; kept, without effect"
        yield Check(WARN, "quarantine", text, "memorize upgrade may read them; memorize log --kind shows kinds")


def _log(parts: App) -> Iterator[Check]:
    report = verify(parts.home, deep=False, repair=False, offsets=parts.indexed())
    if report.exit >= 2:
        yield Check(
            FAIL, "log", "; ".join(report_lines(report)), "memorize verify --deep, then memorize verify --repair"
        )
    else:
        yield Check(OK, "log", f"{report.events} events in {report.files} segments, every frame in order")


def _identity(parts: App) -> Iterator[Check]:
    notes = parts.identity.notes
    text = f"device {parts.identity.device.hex()[:8]}, replica {parts.identity.replica.hex()[:8]}"
    if notes:
        text += f"; renewed {len(notes)} times, last {ago(notes[-1].wall, parts.clock.wall_ms())}: {notes[-1].what}"
    yield Check(OK, "identity", text)


def _daemon(parts: App) -> Iterator[Check]:
    running = life.status(parts.home)
    if running is not None:
        text = f"running, version {running.version}, {running.memory_kib // 1024} MiB"
        if running.failures:
            text += f"; {running.failures} rounds failed, the last one by {running.failure}"
            yield Check(WARN, "daemon", text, "mend what it says; it tries again by itself and captures wait")
        else:
            yield Check(OK, "daemon", text)
        return
    if life.is_locked(parts.home):
        yield Check(FAIL, "daemon", "it runs but does not answer", "memorize daemon stop, or end its process")
        return
    yield Check(OK, "daemon", "not running; it starts when a session does")


def _models(parts: App) -> Iterator[Check]:
    choice = extracting.extractors(parts).choose(fresh=True)
    if choice.name == "wait":
        yield Check(WARN, "extractor", choice.why, "log in to it, or: memorize setup --extractor rules")
    else:
        yield Check(OK, "extractor", f"{choice.name}: {choice.why}")
    if choice.model is not None and (notice := extracting.meter(parts).notice()) is not None:
        yield Check(WARN, "spend", notice, "wait, or raise calls_per_day or tokens_per_day in config.toml")
    parked = extracting.attempts(parts).parked()
    if parked:
        said = f"{parked[0].kind} {parked[0].detail}".strip()
        text = f"{len(parked)} windows failed {FAILURES_MAX} times and are not tried any more; the last one: {said}"
        yield Check(WARN, "parked", text, "memorize consolidate --retry-parked")


def _settings(parts: App) -> Iterator[Check]:
    yield Check(OK, "config", f"{parts.home.config}{'' if parts.home.config.exists() else ' is not there: defaults'}")
