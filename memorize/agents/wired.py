"""How the agents are wired now: what the receipt says was done, held against the settings files as they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from memorize import agents as known
from memorize.agents import edit, receipt, traces
from memorize.agents.hookline import hook_line
from memorize.agents.install import user_home
from memorize.agents.receipt import Record
from memorize.agents.write import read
from memorize.errors import Problem
from memorize.paths import Home

OK: Final = "ok"
LACKING: Final = "lacking"
UNREADABLE: Final = "unreadable"
DISABLED: Final = "disabled"
REFUSED: Final = "refused"
UNTRUSTED: Final = "untrusted"

_TRUST: Final = 'open codex in any project, choose "Trust all and continue"'


class Wired(NamedTuple):
    """One settings file of the receipt: its state, in words what is wrong, and what to do about it.

    ``hooks`` counts the hooks of ours that are in it; ``program`` is the agent's command, None when it is not found.
    """

    agent: str
    path: Path
    state: str
    hooks: int = 0
    text: str = ""
    do: str = ""
    program: str | None = None


def wired(home: Home, environ: Mapping[str, str], *, windows: bool = sys.platform == "win32") -> list[Wired]:
    """Look at every settings file that setup wrote to. Raises CannotRead for a damaged receipt."""
    found = []
    for record in receipt.load(home).values():
        try:
            found.append(_look(home, record, environ, windows))
        except Problem as problem:
            found.append(Wired(record.agent, record.path, UNREADABLE, 0, str(problem), problem.remedy()))
    return sorted(found, key=lambda one: (one.agent, one.path))


def remarks(home: Home, environ: Mapping[str, str]) -> list[str]:
    """Return what else there is to tell of a machine on which agents are wired: a double, a second form of hooks."""
    wired_agents = sorted({record.agent for record in receipt.load(home).values()})
    pairs = [(agent, agent.detect(environ, user_home(environ))) for agent in map(known.agent, wired_agents)]
    notes = traces.peer(environ, [agent.settings(here.root, None) for agent, here in pairs])
    forms = [traces.codex_forms(here.root) for agent, here in pairs if agent.name == "codex"]
    return [*notes, *(note for note in forms if note)]


def _look(home: Home, record: Record, environ: Mapping[str, str], windows: bool) -> Wired:
    agent = known.agent(record.agent)
    here = agent.detect(environ, user_home(environ))
    own = agent.settings(here.root, None)
    path = own if own.resolve() == record.path else record.path  # trust is kept under the name the agent uses
    text = read(record.path)
    line = partial(hook_line, _python(home), str(home.hook_program), agent.name, windows=windows)
    hooks = sum(edit.is_ours(command) for _, command in edit.commands(text or b"{}", str(path)))
    seen = Wired(agent.name, path, OK, hooks, program=here.program)
    if agent.plan_install(text, line, str(path)).changes:
        lost = f"{path} is gone" if text is None else f"{path} lacks hooks of ours"
        return seen._replace(state=LACKING, text=lost, do=f"memorize setup --agent {agent.name}")
    if note := traces.hooks_disabled(path, text):
        return seen._replace(state=DISABLED, text=note, do=f'set "disableAllHooks" to false in {path}')
    if agent.name == "codex" and (note := traces.codex_refuses(path, text)):
        return seen._replace(state=REFUSED, text=note, do=f"mend {path} by hand")
    if agent.name == "codex" and (note := traces.codex_trust(here.root, path, text or b"")):
        return seen._replace(state=UNTRUSTED, text=note, do=_TRUST)
    return seen


def _python(home: Home) -> str:
    path = home.hook / "python"
    return path.read_text(encoding="utf-8") if path.exists() else ""
