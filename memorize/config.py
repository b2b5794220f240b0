"""The person's configuration: ``config.toml`` in the state directory, every key optional.

Only parsing and checking; the shell reads the file. Each default is a value of DESIGN or ``limits.py``.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final, NamedTuple

from memorize import limits
from memorize.errors import BadConfig


class Config(NamedTuple):
    """All settings, flat; in the file they stand as ``[section] key`` (see ``KEYS``)."""

    half_life_days: float = limits.HALF_LIFE_DAYS
    importance_exponent: float = 1.0
    recency_exponent: float = 1.0
    relevance_exponent: float = 1.0
    context_tokens: int = limits.CONTEXT_TOKENS
    extractor: str = "auto"
    observations_min: int = 2
    daemon: str = "on-demand"
    idle_exit_s: int = limits.IDLE_EXIT_S


class Key(NamedTuple):
    """One key of the file: where it stands, its bounds or choices, and what it means."""

    section: str
    name: str
    field: str
    bounds: tuple[float, float] | tuple[str, ...]
    meaning: str


KEYS: Final = (
    Key(
        "recall",
        "half_life_days",
        "half_life_days",
        (0.01, 36_500.0),
        "days after which an unconfirmed memory counts half",
    ),
    Key("recall", "importance_exponent", "importance_exponent", (0.0, 10.0), "weight of importance in the score"),
    Key("recall", "recency_exponent", "recency_exponent", (0.0, 10.0), "weight of recency in the score"),
    Key("recall", "relevance_exponent", "relevance_exponent", (0.0, 10.0), "weight of relevance in the score"),
    Key("recall", "context_tokens", "context_tokens", (100.0, 2_300.0), "budget of the session-start context"),
    Key("consolidate", "extractor", "extractor", ("auto", "rules", "off"), "what turns observations into memories"),
    Key(
        "consolidate",
        "observations_min",
        "observations_min",
        (1.0, 1_000.0),
        "a boundary consolidates from this many on",
    ),
    Key(
        "daemon",
        "start",
        "daemon",
        ("on-demand", "never"),
        "whether a session start may start the daemon; a change acts from the next command on",
    ),
    Key("daemon", "idle_exit_s", "idle_exit_s", (1.0, 86_400.0), "seconds without work after which the daemon leaves"),
)


def parse(text: str, path: str) -> Config:
    """Return the configuration that the file's text gives.

    Raises:
        BadConfig: no TOML, an unknown key, or a value out of bounds; ``path`` is for the message only.

    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(path=path, detail=error) from error
    table = {(key.section, key.name): key for key in KEYS}
    fields: dict[str, Any] = {}
    for section, entries in document.items():
        if not isinstance(entries, dict):
            raise BadConfig(path=path, detail=f"{section} is not a section")
        for name, value in entries.items():
            known = table.get((section, name))
            if known is None:
                raise BadConfig(path=path, detail=f"[{section}] {name} is no key of this version")
            fields[known.field] = _checked(known, value, path)
    return Config(**fields)


def _checked(key: Key, value: object, path: str) -> object:
    default = getattr(Config(), key.field)
    if isinstance(default, str):
        if value in key.bounds:
            return value
        raise BadConfig(
            path=path, detail=f"[{key.section}] {key.name} must be one of {', '.join(map(str, key.bounds))}"
        )
    low, high = float(key.bounds[0]), float(key.bounds[1])
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadConfig(path=path, detail=f"[{key.section}] {key.name} must be a number from {low:g} to {high:g}")
    return type(default)(value)
