"""Codex: payloads of 0.171, ``hooks.json``, and what it takes in from a hook."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memorize.agents import answer, codex_transcript, edit, patch, payload, transcripts, turns
from memorize.agents.base import Edit, Entry, Found, Intent, Line, Locate, directory, program_on_path
from memorize.agents.programs import words
from memorize.agents.turns import Change, Turn
from memorize.log.spool import Unreadable
from memorize.model import Capture, Draft
from memorize.recall.words import Shell

name: Final = "codex"

_SHELL: Final = "Bash"
_PATCH: Final = "apply_patch"
# Options of shells after which the line to run stands, and whose grammar that line follows.
_LINE_OPTIONS: Final = frozenset({"-c", "-lc", "-command", "/c"})
_GRAMMARS: Final[Mapping[str, Shell]] = {"powershell": "powershell", "pwsh": "powershell", "cmd": "cmd"}
_IGNORED: Final = words("""
    spawn_agent send_input wait_agent close_agent resume_agent update_plan view_image web_search write_stdin
    list_mcp_resources list_mcp_resource_templates read_mcp_resource
    """)
_TIMEOUT_S: Final = 5
# Trust hangs on the command, the matcher, the timeout and the place in the file: change none of them lightly.
_EVENTS: Final = (
    ("SessionStart", None, _TIMEOUT_S),
    ("UserPromptSubmit", None, _TIMEOUT_S),
    ("PreToolUse", "^(Bash|apply_patch)$", _TIMEOUT_S),
    ("PostToolUse", None, _TIMEOUT_S),
    ("Stop", None, _TIMEOUT_S),
    ("PreCompact", None, _TIMEOUT_S),
    ("SessionEnd", None, 3),  # more is cut to 3 s, with a warning shown to the person
)
_BOUNDARIES: Final = {"SessionStart": "start", "PreCompact": "compact", "SessionEnd": "end"}


def detect(environ: Mapping[str, str], user: Path) -> Found:
    """Look for the settings directory (``CODEX_HOME`` moves it) and the command."""
    return Found(name, directory(environ, "CODEX_HOME", user / ".codex"), program_on_path("codex", environ))


def settings(root: Path, project: Path | None) -> Path:
    """Return the person's hooks, or the project's, which Codex reads only in a trusted project."""
    return root / "hooks.json" if project is None else project / ".codex" / "hooks.json"


def parse(capture: Capture, locate: Locate) -> list[Draft]:
    """Return what a hook call tells. Raises ``Unreadable``."""
    call = payload.read(capture)
    try:
        at = turns.turn(name, call, locate)
        return [] if at is None else _drafts(at, capture.event, call)
    except RecursionError:
        raise Unreadable("the payload is nested too deeply") from None


def _drafts(at: Turn, event: str, call: Mapping[str, Any]) -> list[Draft]:
    text = payload.text_of
    match event:
        case "SessionStart":
            return turns.opened(at, text(call, "source"), text(call, "transcript_path"), text(call, "model"))
        case "SessionEnd":
            return turns.closed(at, text(call, "reason"))
        case "UserPromptSubmit":
            return turns.prompt(at, text(call, "prompt"))
        case "Stop":
            return turns.reply(at, text(call, "last_assistant_message"))
        case "PreToolUse":
            return _intercepted(at, call)
        case "PostToolUse":
            return _used(at, call)
    return []


def intent(capture: Capture, locate: Locate) -> Intent | None:
    """Return which command or which files a call before a tool is about. Raises ``Unreadable``."""
    if capture.event != "PreToolUse":
        return None
    call = payload.read(capture)
    tool, command = payload.text_of(call, "tool_name"), _command(call)
    at = turns.turn(name, call, locate) if tool in (_SHELL, _PATCH) else None
    if at is None:
        return None
    folder = patch.intercepted(command) if tool == _SHELL else ""
    paths = [change.path for change in _changes(command, folder or "")] if _PATCH in command or tool == _PATCH else []
    return turns.intent(at, command if tool == _SHELL and folder is None else "", paths, _grammar(call))


def _command(call: Mapping[str, Any]) -> str:
    """Return the command, which some versions give as a list of words."""
    given = payload.map_of(call, "tool_input")
    words = given.get("command")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return words[-1] if _is_line(words) else " ".join(words)
    return payload.text_of(given, "command", "input", "patch")


def _is_line(words: Sequence[str]) -> bool:
    """Tell whether the last one of these words is a line for a shell."""
    return len(words) > 2 and words[-2].lower() in _LINE_OPTIONS


def _grammar(call: Mapping[str, Any]) -> Shell:
    """Return whose grammar the command follows: on Windows that of PowerShell, unless another shell is named."""
    words = payload.map_of(call, "tool_input").get("command")
    if isinstance(words, list) and words and isinstance(words[0], str):
        program = words[0].replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe")
        return _GRAMMARS.get(program, "posix")
    return "powershell" if sys.platform == "win32" else "posix"


def _intercepted(at: Turn, call: Mapping[str, Any]) -> list[Draft]:
    """Return the edits of a patch given to the shell: Codex applies it itself and never reports that it ran."""
    if payload.text_of(call, "tool_name") != _SHELL:
        return []
    command = _command(call)
    folder = patch.intercepted(command)
    return [] if folder is None else turns.edits(at, _changes(command, folder))


def _used(at: Turn, call: Mapping[str, Any]) -> list[Draft]:
    tool, command = payload.text_of(call, "tool_name"), _command(call)
    output = payload.text_of(call, "tool_response")
    if tool == _PATCH:
        status, _ = turns.exit_code(output)
        return [] if status else turns.edits(at, _changes(command, ""))
    if tool == _SHELL:
        # The text of an answer holds no exit status in this version; one that does is believed.
        drafts = turns.command(at, command, output, None)
        if _PATCH in command and patch.intercepted(command) is None:
            drafts.extend(turns.edits(at, _changes(command, ""), turns.ORDINAL_EDITS))
        return drafts
    return [] if tool in _IGNORED else turns.tool(at, tool, call.get("tool_input"), call.get("tool_response"), None)


def _changes(command: str, folder: str) -> Iterator[Change]:
    for change in patch.changes(command):
        path = f"{folder}/{change.path}" if folder and not change.path.startswith("/") else change.path
        yield change._replace(path=path)


def boundary(capture: Capture) -> str | None:
    """Return the boundary that this call marks."""
    return _BOUNDARIES.get(capture.event)


def render(event: str, text: str) -> bytes:
    """Return what the agent takes in. One key too many and Codex drops the whole answer in silence."""
    return answer.claude_style(event, text)


def plan_install(text: bytes | None, line: Line, path: str) -> Edit:
    """Return the hooks file with our hooks."""
    entries = [Entry(event, line(event), timeout, matcher) for event, matcher, timeout in _EVENTS]
    return edit.install(text, entries, path)


def plan_uninstall(text: bytes | None, path: str) -> Edit:
    """Return the hooks file without our hooks."""
    return edit.uninstall(text, path)


def transcript_files(root: Path, *, parts: bool = False) -> Iterator[Path]:  # noqa: ARG001 - as other agents take it
    """Yield the files of old sessions; those of subagents lie among them, whatever ``parts`` says."""
    yield from root.glob("sessions/**/rollout-*.jsonl")


def transcript_parts(transcript: Path) -> list[Path]:
    """Return the transcripts of a session's subagents."""
    return codex_transcript.parts(transcript)


def transcript_head(chunk: bytes, path: Path) -> transcripts.Head:
    """Return which session a transcript is of."""
    return codex_transcript.head(chunk, path)


def transcript_lines(chunk: bytes, start: int) -> list[transcripts.Line]:
    """Return the messages on the whole lines of a chunk of a transcript."""
    return codex_transcript.read(chunk, start)
