"""The agents that memorize knows. Their modules are loaded when they are asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from memorize.errors import UnknownAgent

if TYPE_CHECKING:
    from memorize.agents.base import Agent

_MODULES: Final = {
    "claude": "memorize.agents.claude",
    "codex": "memorize.agents.codex",
}
# Their names for a person.
TITLES: Final = MappingProxyType({"claude": "Claude Code", "codex": "Codex"})
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
