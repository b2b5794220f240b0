"""Ask ``codex exec``, with the person's own login: no hooks, no session file, no servers, no shell, nothing to change.

The system text goes along as instructions of the developer: the program's own base instructions stay, since some
logins accept no others. Features are switched off by ``-c``, which versions that don't know one of them ignore.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from memorize.consolidate import child, said
from memorize.consolidate.port import ModelFailed, Reply, Request
from memorize.patterns import late

NAME: Final = "codex"
_OFF: Final = (
    "hooks",
    "shell_tool",
    "unified_exec",
    "multi_agent",
    "goals",
    "apps",
    "plugins",
    "image_generation",
    "memories",
    "unbounded_connection_retries",
)
_SETTINGS: Final = (
    *(f"features.{name}=false" for name in _OFF),
    "project_doc_max_bytes=0",
    "check_for_update_on_startup=false",
    'web_search="disabled"',
    'shell_environment_policy.inherit="none"',
    'approval_policy="never"',
)
_FLAGS: Final = ("--json", "--ephemeral", "--skip-git-repo-check", "-s", "read-only", "--color", "never")
_PLAIN: Final = late(r"[A-Za-z0-9_-]+")


class CodexModel:
    """Codex CLI as a model. ``program`` is the command's path, ``environ`` the person's environment."""

    name: Final = NAME

    def __init__(self, program: str, environ: Mapping[str, str], settings: Path, model: str = "") -> None:
        """``settings`` is Codex's own config.toml; ``model`` empty: the one that stands there."""
        self._program = program
        self._environ = environ
        self._settings = settings
        self._model = model

    def ask(self, request: Request) -> Reply:
        """Return the answer. Raises ModelFailed."""
        model = request.model or self._model
        try:
            with child.workplace() as place:
                last = place / "answer.txt"
                argv = [self._program, "exec", *_FLAGS, "-o", str(last)]
                if request.schema is not None:
                    schema = place / "schema.json"
                    schema.write_text(json.dumps(_plain(request.schema)), encoding="utf-8")
                    argv += ["--output-schema", str(schema)]
                for setting in (
                    *_SETTINGS,
                    *servers_off(self._settings),
                    f"developer_instructions={_toml(request.system)}",
                ):
                    argv += ["-c", setting]
                argv += [*(["-m", model] if model else []), "-"]
                done = child.run(
                    argv,
                    request.prompt.encode("utf-8", "replace"),
                    child.environment(self._environ, {}),
                    place / "empty",
                    request.deadline_s,
                )
                told = model or str(settings_of(self._settings).get("model", ""))
                return read(done, _head(last), told, request.deadline_s)
        except OSError as error:
            raise child.failure(self._program, error) from error


def settings_of(path: Path) -> dict[str, Any]:
    """Return Codex's settings; nothing when they are not there or cannot be read."""
    import tomllib  # asked for when a login is looked for anew

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def servers_off(path: Path) -> list[str]:
    """Return the settings that keep the person's servers from being started (an empty table does not)."""
    servers = settings_of(path).get("mcp_servers")
    names = sorted(servers) if isinstance(servers, dict) else []
    return [f"mcp_servers.{name}.enabled=false" for name in names if _PLAIN.fullmatch(name)]


def read(done: child.Done, last: bytes, model: str, deadline_s: float) -> Reply:
    """Return what the program answered: its last message, else what stands in the file ``last``. Raises ModelFailed."""
    if done.late:
        raise ModelFailed("timeout", f"codex did not answer within {deadline_s:g} s")
    if done.large:
        raise ModelFailed("too-large", f"codex printed more than {child.OUTPUT_BYTES_MAX >> 20} MiB")
    text = failure = ""
    spent = {"tokens_in": 0, "tokens_out": 0}
    known = False
    for line in _lines(done.out):
        known = True
        kind, item = line.get("type"), line.get("item")
        if kind == "item.completed" and isinstance(item, dict) and item.get("type") == "agent_message":
            text = str(item.get("text") or "")
        elif kind == "turn.completed":
            usage = line.get("usage")
            usage = usage if isinstance(usage, dict) else {}
            spent = {"tokens_in": _count(usage.get("input_tokens")), "tokens_out": _count(usage.get("output_tokens"))}
        elif kind in ("turn.failed", "error"):
            failure = _message(line) or failure
    if done.status:
        message = failure or said.last_line(done.err) or f"codex left with status {done.status}"
        raise ModelFailed(said.kind_of(message) or "exit", message, **spent)
    text = text if text.strip() else last.decode("utf-8", "replace")
    if not text.strip():
        _nothing(done, failure, known, spent)
    if (kind_of := said.notice_of(text)) is not None:
        raise ModelFailed(kind_of, text, **spent)
    return Reply(text, **spent, cost_usd_micro=None, model=model, seconds=done.seconds)


def _nothing(done: child.Done, failure: str, known: bool, spent: dict[str, int]) -> None:
    """Tell why there is no text. Raises ModelFailed."""
    if failure:
        raise ModelFailed(said.kind_of(failure) or "exit", failure, **spent)
    if done.out.strip() and not known:
        raise ModelFailed("garbled", f"codex printed no JSON: {said.last_line(done.out)}", **spent)
    raise ModelFailed("empty", "the answer has no text", **spent)


def _lines(raw: bytes) -> Iterator[dict[str, Any]]:
    for line in raw.decode("utf-8", "replace").split("\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _message(line: Mapping[str, Any]) -> str:
    error = line.get("error")
    found = error.get("message") if isinstance(error, dict) else line.get("message")
    return found if isinstance(found, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40 else 0


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(child.OUTPUT_BYTES_MAX)
    except OSError:
        return b""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _toml(text: str) -> str:
    """Return a TOML string: JSON's escapes are TOML's too, once DEL is one and surrogates are none."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")
