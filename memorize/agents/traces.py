"""What else setup finds out about a machine: Codex's trust, another program of our name, sessions of the past.

Everything here only looks, and only ever ends in a note for the person.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from memorize.agents import edit
from memorize.agents.base import Agent, Entry, Found
from memorize.errors import UnreadableSettings

# Variables of the program for Node that is called memorize as well; none of ours is among them.
_PEER_VARIABLES: Final = frozenset(
    f"MEMORIZE_{name}"
    for name in (
        "ROOT",
        "ACCOUNT",
        "SESSION_ID",
        "PROJECT_ID",
        "LLM_BACKEND",
        "LLM_ENDPOINT",
        "LLM_API_KEY",
        "LLM_MODEL",
        "EMBEDDINGS_ENDPOINT",
        "EMBEDDINGS_API_KEY",
        "RAW_SEGMENTS",
        "WATCHER_DISABLED",
        "SUPPRESS_HOOKS",
        "HOOK_COMMAND_FORM",
        "SYNC_TOKEN",
    )
)
# Any other key at the top, and Codex (0.171) leaves the whole file aside.
_CODEX_KEYS: Final = frozenset({"description", "hooks"})
_HEAD_BYTES: Final = 256
_GIT_S: Final = 5.0
_TRUST_NOTE: Final = (
    'Codex runs new or changed hooks only after you trust them: open codex and choose "Trust all and continue".'
)


def transcripts(found: Found, agent: Agent) -> int:
    """Return how many old sessions could be imported."""
    try:
        return sum(1 for _ in agent.transcript_files(found.root))
    except OSError:
        return 0


def peer(environ: Mapping[str, str], settings: Iterable[Path]) -> list[str]:
    """Return what tells that the memorize for Node records here too, and how to avoid recording everything twice."""
    program = _peer_program(environ)
    signs = [f"the program {program}"] if program else []
    for path in settings:
        calls = _foreign_calls(path)
        if calls:
            signs.append(f"{calls} hooks in {path}")
    variables = sorted(_PEER_VARIABLES & environ.keys())
    if variables:
        signs.append(f"the variables {', '.join(variables)}")
    if not signs:
        return []
    verb = f'"{program} uninstall"' if program else 'its own "memorize uninstall"'
    note = (
        f"Another program called memorize, made for Node, is set up here ({'; '.join(signs)}). With both every session "
        f"is recorded twice. To keep this one, take out the other's hooks with {verb}; its data stays where it is."
    )
    return [note]


def _peer_program(environ: Mapping[str, str]) -> Path | None:
    for folder in environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder or ".") / "memorize"
        try:
            if not candidate.is_file():
                continue
            with candidate.open("rb") as file:
                head = file.read(_HEAD_BYTES).partition(b"\n")[0]
            if b"node" in head or "node_modules" in candidate.resolve().parts:
                return candidate
        except OSError:
            continue
    return None


def _foreign_calls(path: Path) -> int:
    """Count the hooks that call a memorize which is not this one."""
    try:
        found = edit.commands(path.read_bytes(), str(path))
    except (OSError, UnreadableSettings):
        return 0
    return sum("memorize" in command and "hook" in command and not edit.is_ours(command) for _, command in found)


def codex_trust(root: Path, hooks: Path, text: bytes) -> str | None:
    """Return a note when Codex would not run our hooks in ``hooks`` (whose content is ``text``), else None.

    A trusted hook is known by its place in the file and by a fingerprint of event, matcher, command and timeout.
    """
    state = _state(root / "config.toml")
    for event, group, index, entry in edit.positions(text, str(hooks)):
        place = f"{_snake(event)}:{group}:{index}"
        trusted = state.get(f"{hooks}:{place}", state.get(f"{hooks.resolve()}:{place}"))
        recorded = trusted.get("trusted_hash") if isinstance(trusted, dict) else None
        if recorded != _fingerprint(entry):
            return _TRUST_NOTE
    return None


def codex_forms(root: Path) -> str | None:
    """Return a note when hooks stand in ``config.toml`` as well: Codex wants one form only."""
    hooks = _config(root / "config.toml").get("hooks")
    if not isinstance(hooks, dict) or not set(hooks) - {"state"}:
        return None
    return f"{root / 'config.toml'} holds hooks too; Codex reads both files but warns. Ours are in hooks.json."


def codex_refuses(hooks: Path, text: bytes | None) -> str | None:
    """Return a note when Codex reads nothing of a hooks file that is JSON: it is stricter than JSON is."""
    if not text:
        return None
    if text.startswith(BOM_UTF8):
        return f"{hooks} begins with a byte order mark, so Codex reads nothing of it: save the file without one."
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if strange := sorted(set(value) - _CODEX_KEYS) if isinstance(value, dict) else []:
        return f"{hooks} has the key {json.dumps(strange[0])}, so Codex reads nothing of it: take that key out."
    return None


def not_ignored(path: Path, project: Path) -> str | None:
    """Return a note when git would offer a project's local settings for a commit; None where git is not at work."""
    command = ["git", "-C", str(project), "check-ignore", "-q", "--", str(path)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 1:
        return None
    return (
        f"{path} is not ignored by git and names paths of this machine: keep it out of commits, for example by a line "
        "in .git/info/exclude."
    )


def hooks_disabled(path: Path, text: bytes | None) -> str | None:
    """Return a note when the settings switch all hooks off."""
    try:
        value = json.loads((text or b"{}").decode("utf-8-sig"))
    except ValueError:
        return None
    if isinstance(value, dict) and value.get("disableAllHooks") is True:
        return f'{path} says "disableAllHooks": true, so no hook runs, ours included.'
    return None


def _config(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _state(path: Path) -> dict[str, Any]:
    hooks = _config(path).get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def _snake(event: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in event).lstrip("_")


def _fingerprint(entry: Entry) -> str:
    """Return the hash that Codex 0.171 records for a trusted hook."""
    handler = {"async": False, "command": entry.command, "timeout": entry.timeout, "type": "command"}
    content: dict[str, Any] = {"event_name": _snake(entry.event), "hooks": [handler]}
    if entry.matcher is not None:
        content["matcher"] = entry.matcher
    compact = json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return "sha256:" + hashlib.sha256(compact.encode("utf-8")).hexdigest()
