"""From what an agent reported to drafts: the rules of what is kept, the same for every agent.

An agent's module knows where its payloads hold a prompt, an edit or a command; this module knows what of it is kept,
cleaned and cut, and by which ordinal it is named. Ordinals are fixed by the role of a draft within its hook call, so
that a call that is read again gives the same events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from memorize import limits, model
from memorize.agents import payload, shell
from memorize.agents.base import Intent, Locate, Place, Target
from memorize.agents.programs import words
from memorize.model import Draft
from memorize.patterns import late
from memorize.recall.words import Shell

ORDINAL_PROJECT: Final = 100
_EXIT: Final = late(r"\A\s*Exit code:? (-?\d{1,10})\b[^\n]*\n?(?:Wall time:[^\n]*\n)?(?:Output:[^\S\n]*\n)?")
_COMMIT: Final = late(r"^\[(?:[^\]\n]{0,200} )?([0-9a-f]{7,64})\] (.+)$", re.MULTILINE)
_COMMITTING: Final = ("commit", "cherry-pick", "revert", "merge", "am")
_COMMITS_MAX: Final = 20
ORDINAL_EDITS: Final = 40  # of edits that come with a command; below the ordinal of the project, above the commits
_EDITS_MAX: Final = 60
# Linux hands a program no longer argument (MAX_ARG_STRLEN), so what is behind it never runs by "bash -c".
_COMMAND_CHARS_MAX: Final = 128 * 1024
# Words that are no person's although they arrive as a prompt.
_NOT_A_PROMPT: Final = ("<task-notification", "<local-command-", "<command-name>", "<system-reminder>")
_READING_VERBS: Final = words("""
    get list read search fetch find view show describe lookup query status count inspect browse screenshot
    snapshot ls cat grep glob stat check resolve recall context peek poll wait
    """)
_NAME_PARTS: Final = late(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_OWN_SERVER: Final = "memorize"


class Turn(NamedTuple):
    """One hook call: who, in which session, where. ``cwd`` is the agent's working directory."""

    agent: str
    session: str
    cwd: str
    place: Place
    locate: Locate
    subagent: bool

    def common(self, place: Place | None = None) -> dict[str, Any]:
        """Return the fields that every session and observation event carries."""
        at = place or self.place
        return {
            "agent": self.agent,
            "session": self.session,
            "project": self.place.project,
            "branch": payload.plain(at.branch),
            "head": payload.plain(at.head),
            "dir": payload.plain(self.place.dir),
        }


class Change(NamedTuple):
    """What was done to one file, as the agent names it.

    ``op``: create, edit or delete; ``added`` and ``removed`` count lines.
    """

    path: str
    op: str
    added: int
    removed: int
    diff: str


def turn(agent: str, call: Mapping[str, Any], locate: Locate) -> Turn | None:
    """Return who and where of a hook call; None where the person wants no capture, or where nobody knows whose it is.

    Without a session or a directory nothing can be told apart: it belongs to no project, and must not reach another.
    """
    session, cwd = payload.text_of(call, "session_id"), payload.text_of(call, "cwd")
    if not session or not cwd or "\0" in cwd or not _is_absolute(cwd):
        return None
    cwd = payload.plain(cwd)
    place = locate(cwd)
    if place.capture_off:
        return None
    return Turn(agent, payload.plain(session)[:200], cwd, place, locate, bool(payload.text_of(call, "agent_id")))


def opened(at: Turn, source: str, transcript: str, used_model: str) -> list[Draft]:
    """Return the drafts of a session start: the session and the project it is in."""
    place = at.place
    session = {
        **at.common(),
        "root": payload.plain(place.root),
        "source": payload.plain(source),
        "transcript": payload.plain(transcript),
        "model": payload.plain(used_model),
    }
    project = {
        "key": place.project,
        "name": payload.plain(place.name),
        "identities": [[kind, payload.plain(value)] for kind, value in place.identities],
        "path": payload.plain(place.root),
    }
    return [Draft(model.SESSION_OPENED, session), Draft(model.PROJECT_SEEN, project, ORDINAL_PROJECT)]


def closed(at: Turn, reason: str) -> list[Draft]:
    """Return the draft of a session end."""
    return [Draft(model.SESSION_CLOSED, {**at.common(), "reason": payload.plain(reason)})]


def prompt(at: Turn, text: str) -> list[Draft]:
    """Return the draft of a person's words; none for a subagent's or a notification's."""
    if at.subagent or text.lstrip().startswith(_NOT_A_PROMPT):
        return []
    return _words(at, model.OBSERVED_PROMPT, text)


def reply(at: Turn, text: str) -> list[Draft]:
    """Return the draft of the last thing that the agent said in a turn."""
    return [] if at.subagent else _words(at, model.OBSERVED_REPLY, text)


def _words(at: Turn, kind: str, text: str) -> list[Draft]:
    kept = payload.whole(text)
    return [Draft(kind, {**at.common(), "text": kept})] if kept else []


def edits(at: Turn, changes: Iterable[Change], first: int = 0) -> list[Draft]:
    """Return a draft for each changed file whose place allows it, with ordinals from ``first`` on."""
    drafts = []
    for ordinal, change in enumerate(list(changes)[:_EDITS_MAX], first):
        found = located(at, change.path)
        if found is None:
            continue
        place, path = found
        facts = {
            "path": path,
            "op": change.op,
            "added": change.added,
            "removed": change.removed,
            "diff": payload.head(change.diff, limits.DIFF_CHARS_MAX),
        }
        drafts.append(Draft(model.OBSERVED_EDIT, {**at.common(place), **facts}, ordinal))
    return drafts


def intent(at: Turn, command: str = "", paths: Iterable[str] = (), grammar: Shell = "posix") -> Intent | None:
    """Return the intent of a call before a tool; None when it is neither to run a command nor to write a file."""
    found = (located(at, path) for path in list(paths)[:_EDITS_MAX])
    targets = tuple(Target(path, payload.plain(place.branch)) for place, path in filter(None, found))
    command = payload.plain(command)[:_COMMAND_CHARS_MAX]
    if not targets and not command.strip():
        return None
    return Intent(at.agent, at.session, at.cwd, at.place, command, targets, grammar)


def located(at: Turn, path: str) -> tuple[Place, str] | None:
    """Return the place of a file and its path relative to the top of its checkout; None where capture is off.

    A file of another project keeps its absolute path, and one of another worktree is named as that worktree names it.
    """
    path = payload.plain(path).replace("\0", "").replace("\\", "/") if _is_windows(path) else payload.plain(path)
    path = path.replace("\0", "")
    if not path:
        return None
    whole = _normal(path if _is_absolute(path) else f"{_slashes(at.cwd)}/{path}")
    folder, _, name = whole.rpartition("/")
    place = at.locate(folder or "/")
    if place.capture_off:
        return None
    if place.project == at.place.project:
        return place, f"{_slashes(place.dir)}/{name}".lstrip("/")
    root = _slashes(at.place.root).rstrip("/")
    return (at.place, whole[len(root) + 1 :]) if whole.startswith(root + "/") else (at.place, whole)


def _is_windows(path: str) -> bool:
    return path[1:3] == ":\\" or path.startswith("\\\\")


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\\\")) or path[1:3] in (":/", ":\\")


def _slashes(path: str) -> str:
    return path.replace("\\", "/") if _is_windows(path) else path


def _normal(path: str) -> str:
    """Resolve ``.`` and ``..`` by text alone."""
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if len(kept) > 1:
                kept.pop()
        elif part != "." and (part or not kept):
            kept.append(part)
    return "/".join(kept)


def command(at: Turn, line: str, output: str, ok: bool | None) -> list[Draft]:
    """Return the drafts of a shell command that changed something or failed, and of the commits it made.

    Unless the agent says that it succeeded, a line ``Exit code N`` that begins the output is taken out and decides.
    """
    line = payload.whole(line)
    if not line:
        return []
    status: int | None = 0
    if not ok:
        status, output = exit_code(output)
        ok = ok if status is None else status == 0
    failed = ok is False and not (status == 1 and shell.answers_only(line))
    if not failed and shell.reads_only(line):
        return []
    facts = {"command": line, "ok": ok, "exit": status, "output": payload.tail(output, limits.OUTPUT_TAIL_CHARS_MAX)}
    drafts = [Draft(model.OBSERVED_SHELL, {**at.common(), **facts})]
    if ok is not False:
        drafts.extend(_commits(at, line, output))
    return drafts


def exit_code(output: str) -> tuple[int | None, str]:
    """Return the status that a line ``Exit code N`` at the beginning names, and the output without that line."""
    match = _EXIT.match(output)
    return (None, output) if match is None else (int(match.group(1)), output[match.end() :])


def _commits(at: Turn, line: str, output: str) -> list[Draft]:
    if "git" not in line or not shell.runs_git(line, *_COMMITTING):
        return []
    found = _COMMIT.findall(payload.clean(output, fragment=True))[:_COMMITS_MAX]
    return [
        Draft(model.OBSERVED_COMMIT, {**at.common(), "sha": sha, "subject": subject.strip()[:500]}, ordinal)
        for ordinal, (sha, subject) in enumerate(found, 1)
    ]


def tool(at: Turn, name: str, given: Any, output: Any, ok: bool | None) -> list[Draft]:
    """Return the draft of a tool that is neither an editor nor a shell; none for readers and for our own."""
    if not name or reads_by_name(name) or is_own(name):
        return []
    facts = {
        "tool": payload.plain(name)[:200],
        "input": payload.head(_short(given), limits.OUTPUT_TAIL_CHARS_MAX),
        "ok": ok,
        "output": payload.tail(_short(output), limits.OUTPUT_TAIL_CHARS_MAX),
    }
    return [Draft(model.OBSERVED_TOOL, {**at.common(), **facts})]


def reads_by_name(name: str) -> bool:
    """Tell whether a tool's name says that it only looks: ``mcp__tracker__get_issue``, ``listFiles``."""
    words = _NAME_PARTS.findall(name.rsplit("__", 1)[-1])
    return bool(words) and words[0].lower() in _READING_VERBS


def is_own(name: str) -> bool:
    """Tell whether a tool is one of ours (also through a plugin): what memory said is never captured again."""
    return name.startswith("mcp__") and _OWN_SERVER in name.split("__")[1].split("_")


def _short(value: Any) -> str:
    """Return a value as a reader would want it: texts as they are, MCP content blocks by their text, else JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("content"), list):
        value = value["content"]
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "text" in item for item in value):
        return "\n".join(str(item["text"]) for item in value)
    return json.dumps(_cleaned(value), ensure_ascii=False)


def _cleaned(value: Any) -> Any:
    """Clean every text inside, before quoting and escaping hide where a private part begins and ends."""
    if isinstance(value, str):
        return payload.clean(value)
    if isinstance(value, Mapping):
        return {payload.clean(str(key)): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value
