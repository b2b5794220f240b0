"""Setup and uninstall: look at the machine, plan the edits as data, apply them, keep a receipt, undo from it.

``plan`` changes nothing. ``apply`` writes the hook's own files first, tries the hook, then writes the receipt and only
then the settings, so that stopping anywhere leaves agents that work and a receipt that covers what was done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memorize import agents as known
from memorize.agents import edit, receipt, traces
from memorize.agents.base import Agent, Edit, Found
from memorize.agents.edit import Inserted
from memorize.agents.hookfiles import put_hook_files, remove_hook_files
from memorize.agents.hookline import hook_line, quoted
from memorize.agents.receipt import Record
from memorize.agents.trial import try_hook
from memorize.agents.write import created_folders, make_private, read, replace
from memorize.counted import counted
from memorize.errors import CannotRead, CannotWrite, Problem
from memorize.paths import Home


class FileEdit(NamedTuple):
    """The planned change of one settings file. ``path`` is where it really lies, behind any symbolic link."""

    agent: str
    path: Path
    edit: Edit
    inserted: Inserted


class Plan(NamedTuple):
    """What setup would do. ``problems``: settings that are left alone, each naming its file."""

    found: tuple[Found, ...]
    edits: tuple[FileEdit, ...]
    python: str
    notes: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    transcripts: Mapping[str, int] = {}
    environ: Mapping[str, str] = {}  # in which the hook is tried


def user_home(environ: Mapping[str, str]) -> Path:
    """Return the person's home directory."""
    chosen = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(chosen) if chosen else Path.home()


def plan(
    home: Home,
    python: str,
    agents: Sequence[str],
    environ: Mapping[str, str],
    project: Path | None = None,
    *,
    windows: bool = sys.platform == "win32",
) -> Plan:
    """Look at the machine and return what would be done for ``agents``, or for those that are here when none is named.

    ``python`` is the interpreter that hooks will run. Raises ``UnknownAgent``; ``CannotRead`` for a damaged receipt.
    """
    records = receipt.load(home)
    found = [(agent, agent.detect(environ, user_home(environ))) for agent in map(known.agent, agents or known.names())]
    if not agents:
        found = [(agent, here) for agent, here in found if here.present]
    edits: list[FileEdit] = []
    notes: list[str] = []
    problems: list[Problem] = []
    for agent, here in found:
        line = partial(hook_line, python, str(home.hook_program), agent.name, windows=windows)
        path = agent.settings(here.root, project)
        try:
            edits.append(_plan_file(agent, path, records, line))
        except Problem as problem:
            problems.append(problem)
            continue
        notes.extend(_notes(agent, here, path, edits[-1], records, project))
    restart = [known.TITLES[one.agent] for one in edits if one.edit.changes]
    if restart:
        notes.insert(0, f"Restart {' and '.join(restart)}: a session that runs now knows nothing of its new hooks.")
    notes.extend(
        traces.peer(environ, [agent.settings(here.root, scope) for agent, here in found for scope in {None, project}])
    )
    counts = {agent.name: traces.transcripts(here, agent) for agent, here in found}
    return Plan(tuple(here for _, here in found), tuple(edits), python, tuple(notes), tuple(problems), counts, environ)


def _plan_file(agent: Agent, path: Path, records: Mapping[Path, Record], line: Callable[[str], str]) -> FileEdit:
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as error:  # links that lead in a circle
        raise CannotRead(path=path, detail=error) from None
    text, record = read(target), records.get(target)
    change = agent.plan_install(text, line, str(path))
    if not change.changes:
        present = edit.adopt(text or b"", str(path))
        inserted = record.inserted._replace(commands=present.commands) if record else present
        return FileEdit(agent.name, target, change, inserted)
    base = text
    if text is not None:  # our older hooks out first, exactly where a receipt allows it
        base = edit.undo(text, record.inserted, str(path)).text if record else text
        base = agent.plan_uninstall(base, str(path)).after
    fresh = agent.plan_install(base, line, str(path))
    inserted = edit.remember(fresh, base)
    if record:
        inserted = inserted._replace(created=inserted.created or record.inserted.created)
    return FileEdit(agent.name, target, Edit(text, fresh.after, fresh.pieces), inserted)


def _notes(
    agent: Agent, here: Found, path: Path, planned: FileEdit, records: Mapping[Path, Record], project: Path | None
) -> list[str]:
    notes: list[str | None] = [traces.hooks_disabled(path, planned.edit.after)]
    if agent.name == "codex":
        notes.append(traces.codex_refuses(path, planned.edit.after))
        notes.append(traces.codex_trust(here.root, path, planned.edit.after or b""))
        notes.append(traces.codex_forms(here.root))
        if project is not None and agent.settings(here.root, None).resolve() in records:
            notes.append("Codex has our hooks in your own settings too and runs both: in this project all comes twice.")
    if project is not None:
        notes.append(traces.not_ignored(path, project))
    return [note for note in notes if note]


def apply(planned: Plan, home: Home) -> list[str]:
    """Carry out a plan; return what there is to tell. Raises ``CannotWrite``, ``HookFails``, ``CannotRead``.

    A settings file that changed since the plan was made is left alone and told.
    """
    make_private(home.root, home.receipts)
    put_hook_files(home, planned.python)
    agent = planned.found[0].agent if planned.found else known.names()[0]
    try_hook(planned.python, home, agent, planned.environ)
    records = receipt.load(home)
    told: list[str] = []
    for item in planned.edits:
        if read(item.path) != item.edit.before:
            told.append(f"{item.path} changed while setup ran and was left as it is; run setup again.")
            continue
        records[item.path] = _record(item, records.get(item.path), home)
        _save(records, home)
        if item.edit.changes and item.edit.after is not None:
            replace(item.path, item.edit.after)
            told.append(f"{item.path}: {counted(len(item.inserted.commands), 'hook')}")
    return told


def _record(item: FileEdit, old: Record | None, home: Home) -> Record:
    """Return the record of an edit, with one copy of the file as it was before we first touched it."""
    if old is not None:  # until the file is written, the hooks of the older record are the ones in it
        commands = dict.fromkeys((*item.inserted.commands, *old.inserted.commands))
        return old._replace(inserted=item.inserted._replace(commands=tuple(commands)))
    backup = None
    if item.edit.changes and item.edit.before is not None:
        backup = home.receipts / f"{edit.digest(item.edit.before)[:16]}-{item.path.name}"
        replace(backup, item.edit.before, 0o600)
    return Record(item.agent, item.path, item.inserted, created_folders(item.path), backup)


def _save(records: dict[Path, Record], home: Home) -> None:
    path = receipt.location(home)
    content = receipt.encode(records)
    if read(path) != content:
        replace(path, content, 0o600)


def undo(home: Home, environ: Mapping[str, str] | None = None) -> tuple[list[str], list[Problem]]:
    """Take the hooks out of every settings file of the receipt, then remove the hook's files.

    Return what to tell, and what could not be undone.

    Without a receipt, and with ``environ`` given, the agents' own settings are looked through for hooks of this home.
    A file that cannot be read stays in the receipt. Nothing that was captured is touched.
    """
    problems: list[Problem] = []
    try:
        records = receipt.load(home)
    except CannotRead as problem:
        records, problems = {}, [problem]
    told: list[str] = []
    if not records and environ is not None:
        records = _adopted(home, environ)
    left = {}
    for path, record in records.items():
        try:
            told.append(_undo_file(record))
        except Problem as problem:
            problems.append(problem)
            left[path] = record
    if left:
        _save(left, home)
    else:
        receipt.location(home).unlink(missing_ok=True)
    remove_hook_files(home)
    return told, problems


def _undo_file(record: Record) -> str:
    text = read(record.path)
    if text is None:
        return f"{record.path} is gone already."
    undone = edit.undo(text, record.inserted, str(record.path))
    if undone.text is None:
        try:
            record.path.unlink()
        except OSError as error:
            raise CannotWrite(path=record.path, detail=error.strerror or error) from None
        for folder in reversed(record.folders):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        return f"{record.path}: removed, it held nothing but our hooks."
    if undone.text != text:
        replace(record.path, undone.text)
    if undone.exact:
        if record.backup is not None:
            record.backup.unlink(missing_ok=True)
        return f"{record.path}: as it was before."
    others = sum(edit.is_ours(command) for _, command in edit.commands(undone.text, str(record.path)))
    rest = ""
    if others:
        rest = f" Left, since not quite ours: {counted(others, 'hook')} calling memorize_hook.py; look at them."
    return f"{record.path}: it was changed since; our hooks are out, the rest stays as it is.{rest}"


def _adopted(home: Home, environ: Mapping[str, str]) -> dict[Path, Record]:
    """Find hooks of this home that no receipt tells of."""
    records = {}
    for agent in map(known.agent, known.names()):
        path = agent.settings(agent.detect(environ, user_home(environ)).root, None).resolve()
        try:
            inserted = edit.adopt(read(path) or b"{}", str(path))
        except Problem:
            continue
        mine = quoted(str(home.hook_program))
        commands = tuple(command for command in inserted.commands if mine in command)
        if commands:
            records[path] = Record(agent.name, path, inserted._replace(commands=commands))
    return records
