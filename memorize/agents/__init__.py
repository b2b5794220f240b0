"""The agents that memorize knows. Their modules are loaded when they are asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final, cast

from memorize.agents.base import Agent
from memorize.errors import UnknownAgent

_MODULES: Final = {
    "claude": "memorize.agents.claude",
    "codex": "memorize.agents.codex",
}
_ALIASES: Final = {"claude-code": "claude"}


def names() -> tuple[str, ...]:
    """Return the names of all agents."""
    return tuple(_MODULES)


@cache
def agent(name: str) -> Agent:
    """Return the agent of this name or alias. Raises ``UnknownAgent``."""
    chosen = _ALIASES.get(name, name)
    if chosen not in _MODULES:
        raise UnknownAgent(name=name, known=", ".join(_MODULES))
    return cast("Agent", import_module(_MODULES[chosen]))
