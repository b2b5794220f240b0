"""The checks of ``memorize doctor``: each looks at one thing and says what to do when it is wrong."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from memorize.agents import wired
from memorize.bootstrap import App
from memorize.cli.damage import known_line, loss_lines
from memorize.clock import ago
from memorize.consolidate.attempts import FAILURES_MAX, Failing
from memorize.counted import counted
from memorize.daemon import life
from memorize.errors import Problem
from memorize.index.damage import is_damage
from memorize.index.place import MARKER, marker_fault
from memorize.log import losses
from memorize.log.identity import COPIED, KNOWN_ELSEWHERE, MADE
from memorize.log.spool import entry
from memorize.log.verify import DATA_MISSING, verify

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
_DISK_BYTES_MIN: Final = 1 << 30
_SPOOL_AGE_S_MAX: Final = 3600
_HOOK_S_MAX: Final = 10.0
_LOSSES_SHOWN: Final = 5
_FORMER_SHOWN: Final = 3
_DOUBT_SHOWN_MS: Final = 7 * 24 * 3600 * 1000


class Check(NamedTuple):
    """The result of one check. ``do`` is the remedy, empty when all is well."""

    level: str
    name: str
    text: str
    do: str = ""


def run(parts: App, without: Collection[str] = ()) -> list[Check]:
    """Run every check but those named; one that fails itself is a failed check, never an error."""
    results: list[Check] = []
    for check in (
        _home,
        _disk,
        _hooks,
        _interpreter,
        _index,
        _spool,
        _log,
        _identity,
        _daemon,
        _sync,
        _models,
        _config,
    ):
        name = check.__name__.strip("_")
        if name in without:
            continue
        try:
            results.extend(check(parts))
        except Problem as problem:
            results.append(Check(FAIL, name, str(problem), problem.remedy()))
        except OSError as error:
            text = f"{error.filename or ''}: {error.strerror or error}".lstrip(": ")
            results.append(Check(FAIL, name, text, "look at the disk and the rights of this path"))
        except Exception as error:
            text = f"the check itself failed: {type(error).__name__}: {error}"
            results.append(Check(FAIL, name, text, "report this; the other checks stand"))
    return results


def _home(parts: App) -> Iterator[Check]:
    root = parts.home.root
    if not root.is_dir():
        yield Check(WARN, "home", f"{root} is not there yet", "memorize setup")
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
    found = wired.wired(parts.home, os.environ)
    if not found:
        yield Check(WARN, "hooks", "no agent is wired, so nothing is captured", "memorize setup")
        return
    last = _last_words(parts)
    for one in found:
        if one.state != wired.OK:
            level = WARN if one.state == wired.UNTRUSTED else FAIL
            yield Check(level, f"hooks-{one.agent}", one.text, one.do)
        else:
            ran = f"last ran {ago(last[one.agent], parts.clock.wall_ms())}" if one.agent in last else "none has run yet"
            text = f"{counted(one.hooks, 'event')} registered in {one.path}; {ran}"
            yield Check(OK, f"hooks-{one.agent}", text)
        if one.program is None:
            text = "the agent's program is not on PATH"
            yield Check(WARN, f"program-{one.agent}", text, "install it, or ignore this")
    for note in wired.remarks(parts.home, os.environ):
        yield Check(WARN, "agents", note)


def _last_words(parts: App) -> Mapping[str, int]:
    with contextlib.suppress(Problem):  # the check of the index tells
        return parts.reader().last_words()
    return {}


def _python(parts: App) -> str:
    path = parts.home.hook / "python"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _interpreter(parts: App) -> Iterator[Check]:
    python = _python(parts)
    if not python:
        return
    remedy = "memorize setup   (it writes the hooks for the interpreter that runs now)"
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
    waiting, bad = _names(parts.home.spool / "new"), _names(parts.home.spool / "bad")
    age_s = _oldest_s(parts, waiting)
    if bad:
        noted = losses.load(parts.home, parts.files).noted
        text = f"{counted(len(bad), 'capture')} could not be read (kept in {parts.home.spool / 'bad'} for 7 days)"
        if all(name in noted for name in bad):
            text = f"{text}; they were tried again in vain"
            yield Check(WARN, "spool", text, "a newer version may read them; otherwise ignore this")
        else:
            yield Check(FAIL, "spool", text, "memorize verify --repair   (tries them again; nothing is deleted)")
    elif age_s > _SPOOL_AGE_S_MAX:
        text = f"{counted(len(waiting), 'capture')} waiting, the oldest for {ago(0, age_s * 1000).removesuffix(' ago')}"
        yield Check(WARN, "spool", text, "memorize status   (any verb takes them in)")
    else:
        yield Check(OK, "spool", f"{counted(len(waiting), 'capture')} waiting")


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder)) if folder.is_dir() else []


def _oldest_s(parts: App, names: list[str]) -> int:
    """Return the age of the oldest capture in seconds; foreign files and those from before the boot have none."""
    now = parts.clock.monotonic_ns()
    born = [found.mono for name in names if (found := entry(name)) is not None and found.mono <= now]
    return (now - min(born)) // 10**9 if born else 0


def _index(parts: App) -> Iterator[Check]:
    counts, flaw = None, ""
    try:
        view = parts.reader()
        flaw = view.flaws()
        counts = view.counts()
    except Exception as error:
        if not is_damage(error):
            raise
        flaw = str(error)
    mended = bool(flaw) or counts is None
    if flaw or counts is None:
        parts.rebuild()
        counts = parts.reader().counts()
    text = f"{counted(counts.events, 'event')}, {counted(counts.memories, 'memory')} shown"
    yield Check(WARN if mended else OK, "index", f"it was damaged and was made anew: {text}" if mended else text)
    if counts.quarantined:
        text = f"{counted(counts.quarantined, 'event')} of a form unknown to this version; kept, without effect"
        yield Check(WARN, "quarantine", text, "a newer version may read them; memorize log --kind shows kinds")


def _log(parts: App) -> Iterator[Check]:
    report = verify(parts.home, deep=False, repair=False, offsets=parts.indexed())
    for text in loss_lines(report, _LOSSES_SHOWN):
        yield Check(FAIL, "log", text, "memorize verify --repair   (notes the loss; all that can be read is kept)")
    for unread in report.unread:
        yield Check(FAIL, "log", f"{unread.path}: {unread.why}", "look at the disk and the rights of this path")
    if report.exit < DATA_MISSING:
        text = f"{counted(report.events, 'event')} in {counted(report.files, 'segment')}, every frame in order"
        known = known_line(report)
        yield Check(OK, "log", f"{text}; {known}" if known else text)


def _identity(parts: App) -> Iterator[Check]:
    notes = parts.identity.notes
    text = f"device {parts.identity.device.hex()[:8]}, replica {parts.identity.replica.hex()[:8]}"
    renewed = [note for note in notes if note.what != MADE]
    if renewed:
        when = ago(renewed[-1].wall, parts.clock.wall_ms())
        text += f"; renewed {counted(len(renewed), 'time')}, last {when}: {renewed[-1].what}"
    if before := parts.identity.before:
        text += f"; it was replica {', '.join(former.replica.hex()[:8] for former in before[-_FORMER_SHOWN:])} before"
    yield Check(OK, "identity", text)
    doubts = [note for note in notes if note.what in (COPIED, KNOWN_ELSEWHERE)]
    if doubts and parts.clock.wall_ms() - doubts[-1].wall < _DOUBT_SHOWN_MS:
        remedy = "nothing, when you restored or moved it; a copy in use beside it goes on under a name of its own"
        yield Check(WARN, "replica", f"{ago(doubts[-1].wall, parts.clock.wall_ms())}: {doubts[-1].what}", remedy)


def _daemon(parts: App) -> Iterator[Check]:
    running = life.status(parts.home)
    if running is not None:
        text = f"running, version {running.version}, {running.memory_kib // 1024} MiB"
        if running.failures:
            text += f"; {counted(running.failures, 'round')} failed, the last one by {running.failure}"
            yield Check(WARN, "daemon", text, "mend what it says; it tries again by itself and captures wait")
        else:
            yield Check(OK, "daemon", text)
        return
    if life.is_locked(parts.home):
        yield Check(FAIL, "daemon", "it runs but does not answer", "memorize daemon stop, or end its process")
        return
    yield Check(OK, "daemon", "not running; it starts when a session does")


def _sync(parts: App) -> Iterator[Check]:
    from memorize.cli.sync_checks import findings  # loads what only sync needs

    for one in findings(parts):
        yield Check(OK if one.fine else WARN, one.name, one.text, one.do)


def _models(parts: App) -> Iterator[Check]:
    choice = parts.models.extractors.choose(fresh=True)
    if choice.name == "wait":
        yield Check(WARN, "extractor", choice.why, "log in to it, or: memorize setup --extractor rules")
    else:
        yield Check(OK, "extractor", f"{choice.name}: {choice.why}")
    if choice.model is not None and (notice := parts.models.meter.notice()) is not None:
        yield Check(WARN, "spend", notice, "wait, or raise calls_per_day or tokens_per_day in config.toml")
    attempts = parts.models.attempts
    if failing := attempts.failing():
        when = ago(failing[0].at_ms, parts.clock.wall_ms())
        text = f"{counted(len(failing), 'window')} could not be read; the last try, {when}: {_said(failing[0])}"
        yield Check(WARN, "model", text, "nothing, it is tried again at a later boundary; or now: memorize consolidate")
    if parked := attempts.parked():
        many = counted(len(parked), "window")
        text = f"{many} failed {FAILURES_MAX} times, not tried any more; the last one: {_said(parked[0])}"
        yield Check(WARN, "parked", text, "memorize consolidate --retry-parked")


def _said(one: Failing) -> str:
    return f"{one.kind} {one.detail}".strip()


def _config(parts: App) -> Iterator[Check]:
    place = parts.here("")
    if fault := marker_fault(place.root):
        what = f"{place.root}/{MARKER} cannot be read, so nothing that it says holds: {fault}"
        yield Check(WARN, "project", what, "mend that line")
    yield Check(OK, "config", f"{parts.home.config}{'' if parts.home.config.exists() else ' is not there: defaults'}")
