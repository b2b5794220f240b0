"""Claude Code: payloads of 2.1, ``settings.json``, and what it takes in from a hook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memorize.agents import answer, claude_transcript, edit, payload, transcripts, turns
from memorize.agents.base import Edit, Entry, Found, Intent, Line, Locate, directory, program_on_path
from memorize.agents.programs import words
from memorize.agents.turns import Change, Turn
from memorize.log.spool import Unreadable
from memorize.model import Capture, Draft

name: Final = "claude"

_SHELL: Final = "Bash"
_EDITORS: Final = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
# The agent's own bookkeeping and its readers. A question to the person and a plan agreed on are kept: both are answers.
_IGNORED: Final = words("""
    Read Grep Glob LS NotebookRead WebFetch WebSearch TodoRead TodoWrite Task Agent BashOutput KillShell
    KillBash TaskCreate TaskUpdate TaskList TaskGet TaskOutput TaskStop EnterPlanMode Skill SlashCommand
    ToolSearch StructuredOutput ListMcpResourcesTool ReadMcpResourceTool EnterWorktree ExitWorktree Monitor
    ScheduleWakeup SendMessage
    """)
_BEFORE: Final = "Bash|Edit|Write|MultiEdit|NotebookEdit"
# Anchored, as only then it means the same whether the agent searches or matches the whole name.
_AFTER: Final = "^(Bash|Edit|Write|MultiEdit|NotebookEdit|AskUserQuestion|ExitPlanMode|mcp__.*)$"
_TIMEOUT_S: Final = 5
_EVENTS: Final = (
    ("SessionStart", None),
    ("UserPromptSubmit", None),
    ("PreToolUse", _BEFORE),
    ("PostToolUse", _AFTER),
    ("PostToolUseFailure", _AFTER),
    ("Stop", None),
    ("PreCompact", None),
    ("SessionEnd", None),
)
_BOUNDARIES: Final = {"SessionStart": "start", "PreCompact": "compact", "SessionEnd": "end"}


def detect(environ: Mapping[str, str], user: Path) -> Found:
    """Look for the settings directory (``CLAUDE_CONFIG_DIR`` moves it) and the command."""
    return Found(name, directory(environ, "CLAUDE_CONFIG_DIR", user / ".claude"), program_on_path("claude", environ))


def settings(root: Path, project: Path | None) -> Path:
    """Return the person's settings, or the project's local ones, which are not meant to be committed."""
    return root / "settings.json" if project is None else project / ".claude" / "settings.local.json"


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
        case "PostToolUse":
            return _used(at, call)
        case "PostToolUseFailure":
            return _failed(at, call)
    return []


def intent(capture: Capture, locate: Locate) -> Intent | None:
    """Return which command or which file a call before a tool is about. Raises ``Unreadable``."""
    if capture.event != "PreToolUse":
        return None
    call = payload.read(capture)
    tool, given = payload.text_of(call, "tool_name"), payload.map_of(call, "tool_input")
    at = turns.turn(name, call, locate) if tool == _SHELL or tool in _EDITORS else None
    if at is None:
        return None
    if tool == _SHELL:
        return turns.intent(at, payload.text_of(given, "command"))
    return turns.intent(at, paths=[payload.text_of(given, "file_path", "notebook_path")])


def _used(at: Turn, call: Mapping[str, Any]) -> list[Draft]:
    tool, given = payload.text_of(call, "tool_name"), payload.map_of(call, "tool_input")
    result = payload.map_of(call, "tool_response")
    if tool == _SHELL:
        output = "\n".join(
            part for part in (payload.text_of(result, "stdout"), payload.text_of(result, "stderr")) if part
        )
        if not result:  # cut before the answer, or an answer of a new form
            return turns.command(at, payload.text_of(given, "command"), payload.text_of(call, "tool_response"), None)
        running = bool(payload.text_of(result, "backgroundTaskId"))
        ok = None if running or result.get("interrupted") is True else True
        return turns.command(at, payload.text_of(given, "command"), output, ok)
    if tool in _EDITORS:
        return turns.edits(at, _changes(given, result))
    return [] if tool in _IGNORED else turns.tool(at, tool, call.get("tool_input"), call.get("tool_response"), True)


def _failed(at: Turn, call: Mapping[str, Any]) -> list[Draft]:
    tool, error = payload.text_of(call, "tool_name"), payload.text_of(call, "error")
    if tool == _SHELL:
        # Stopped by the person, it has ended neither well nor ill.
        ok = None if call.get("is_interrupt") is True else False
        return turns.command(at, payload.text_of(payload.map_of(call, "tool_input"), "command"), error, ok)
    if tool in _EDITORS or tool in _IGNORED:  # an edit that did not happen
        return []
    return turns.tool(at, tool, call.get("tool_input"), error, False)


def _changes(given: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the change of an editor: by the patch that it reports, else by the texts that it was given."""
    path = payload.text_of(result, "filePath") or payload.text_of(given, "file_path", "notebook_path")
    hunks = result.get("structuredPatch")
    if isinstance(hunks, list) and hunks:
        lines = [line for hunk in hunks for line in _hunk(hunk)]
    else:
        lines = list(_given_lines(given))
    op = "create" if result.get("type") == "create" else "edit"
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    yield Change(path, op, added, removed, "\n".join(lines))


def _hunk(hunk: Any) -> Iterator[str]:
    if not isinstance(hunk, dict) or not isinstance(hunk.get("lines"), list):
        return
    place = [hunk.get(key) for key in ("oldStart", "oldLines", "newStart", "newLines")]
    if all(isinstance(number, int) for number in place):
        yield "@@ -{},{} +{},{} @@".format(*place)
    yield from (line for line in hunk["lines"] if isinstance(line, str))


def _given_lines(given: Mapping[str, Any]) -> Iterator[str]:
    several = given.get("edits")
    for item in several if isinstance(several, list) else [given]:
        if isinstance(item, dict):
            yield from ("-" + line for line in payload.text_of(item, "old_string").splitlines())
            yield from (
                "+" + line for line in payload.text_of(item, "new_string", "content", "new_source").splitlines()
            )


def boundary(capture: Capture) -> str | None:
    """Return the boundary that this call marks. A compaction may call twice; whoever acts on it takes that."""
    return _BOUNDARIES.get(capture.event)


def render(event: str, text: str) -> bytes:
    """Return what the agent takes in: plain text at session start and prompt, JSON before a tool."""
    return answer.claude_style(event, text)


def plan_install(text: bytes | None, line: Line, path: str) -> Edit:
    """Return the settings with our hooks."""
    return edit.install(text, [Entry(event, line(event), _TIMEOUT_S, matcher) for event, matcher in _EVENTS], path)


def plan_uninstall(text: bytes | None, path: str) -> Edit:
    """Return the settings without our hooks."""
    return edit.uninstall(text, path)


def transcript_files(root: Path, *, parts: bool = False) -> Iterator[Path]:
    """Yield the files of old sessions; with ``parts`` those of subagents too."""
    yield from root.glob("projects/*/*.jsonl")
    if parts:
        yield from root.glob("projects/*/*/subagents/*.jsonl")


def transcript_parts(transcript: Path) -> list[Path]:
    """Return the transcripts of a session's subagents."""
    return claude_transcript.parts(transcript)


def transcript_head(chunk: bytes, path: Path) -> transcripts.Head:
    """Return which session a transcript is of."""
    return claude_transcript.head(chunk, path)


def transcript_lines(chunk: bytes, start: int) -> list[transcripts.Line]:
    """Return the messages on the whole lines of a chunk of a transcript."""
    return claude_transcript.read(chunk, start)
