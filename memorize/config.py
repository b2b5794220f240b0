"""The person's configuration: ``config.toml`` in the state directory, every key optional.

Only parsing and checking; the shell reads the file. Each default is a value of DESIGN or ``limits.py``.
"""

from __future__ import annotations

import re
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
    order: str = "claude,codex,url"
    model: str = ""
    url: str = ""
    url_key_env: str = ""
    deadline_s: int = limits.MODEL_DEADLINE_S
    calls_per_day: int = limits.CALLS_PER_DAY
    tokens_per_day: int = limits.TOKENS_PER_DAY
    observations_min: int = 2
    daemon: str = "on-demand"
    idle_exit_s: int = limits.IDLE_EXIT_S
    peers_listen: str = "off"
    peers_port: int = limits.PEER_PORT
    peers_name: str = ""


class Key(NamedTuple):
    """One key of the file: where it stands, its bounds, choices or pattern, and what it means.

    ``form`` says in words what the pattern takes.
    """

    section: str
    name: str
    field: str
    bounds: tuple[float, float] | tuple[str, ...] | str
    meaning: str
    form: str = ""


_MARK: Final = "\ufeff"  # what some editors put before UTF-8
EXTRACTORS: Final = ("auto", "claude", "codex", "url", "rules", "off")
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
    Key("consolidate", "extractor", "extractor", EXTRACTORS, "what turns observations into memories"),
    Key(
        "consolidate",
        "order",
        "order",
        r"(?:claude|codex|url)(?: *, *(?:claude|codex|url))*",
        'which one "auto" takes, the first that is logged in',
        "some of claude, codex, url, with commas",
    ),
    Key(
        "consolidate",
        "model",
        "model",
        r"[\w.:/@\[\]-]{0,200}",
        "the extractor's model; empty: haiku for claude, Codex's own for codex",
        "the name of a model, or empty",
    ),
    Key(
        "consolidate",
        "url",
        "url",
        r"(?:https?://[^\s@?#]+)?",
        "a service that speaks OpenAI's chat completions, such as http://127.0.0.1:11434/v1",
        "an http or https address without a login in it, or empty",
    ),
    Key(
        "consolidate",
        "url_key_env",
        "url_key_env",
        r"(?:[A-Z_][A-Z0-9_]{0,99})?",
        "the environment variable that holds the service's key; the key itself never stands here",
        "the name of an environment variable in capitals, not a key, or empty",
    ),
    Key("consolidate", "deadline_s", "deadline_s", (5.0, 3_600.0), "seconds after which a call of a model is ended"),
    Key("consolidate", "calls_per_day", "calls_per_day", (0.0, 10_000.0), "calls of a model a day; then it stops"),
    Key("consolidate", "tokens_per_day", "tokens_per_day", (0.0, 1e9), "tokens, in and out, a day; then it stops"),
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
    Key("peers", "listen", "peers_listen", ("off", "on"), "whether the daemon opens a port, to paired devices only"),
    Key("peers", "port", "peers_port", (1.0, 65_535.0), "the port that it opens"),
    Key(
        "peers",
        "name",
        "peers_name",
        r"[^\x00-\x1f\x7f]{0,100}",
        "what paired devices call this one; empty: the name of the machine",
        "a name of at most 100 characters",
    ),
)


def parse(text: str, path: str) -> Config:
    """Return the configuration that the file's text gives.

    Raises:
        BadConfig: no TOML, an unknown key, or a value out of bounds; ``path`` is for the message only.

    """
    if not text.strip():
        return Config()
    import tomllib  # most people set nothing, and it costs as much as all of this

    try:
        document = tomllib.loads(text.removeprefix(_MARK))
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
    if isinstance(key.bounds, str):
        # The value is not repeated: somebody may have put a key where the name of a variable belongs.
        if isinstance(value, str) and re.fullmatch(key.bounds, value):
            return value
        raise BadConfig(path=path, detail=f"[{key.section}] {key.name} must be {key.form}")
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


def with_value(text: str, name: str, value: str | int, path: str) -> str:
    """Return the file's text with ``[section] key`` set to a word or a number; everything else stays as it is.

    ``name`` is ``section.key``; ``path`` is for the message only. Raises BadConfig when the text, or what came of it,
    is no configuration.
    """
    section, _, key = name.partition(".")
    field = next(one.field for one in KEYS if (one.section, one.name) == (section, key))
    parse(text, path)
    text = text.removeprefix(_MARK)
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    header = re.compile(rf"\s*\[\s*{section}\s*\]\s*(?:#.*)?$")
    assigned = re.compile(rf"(\s*{key}\s*=\s*)(\"[^\"]*\"|'[^']*'|[\d_]+)(.*)$", re.DOTALL)
    written = f'"{value}"' if isinstance(value, str) else str(value)
    line = f"{key} = {written}{newline}"
    start = next((number for number, one in enumerate(lines) if header.match(one.strip())), None)
    if start is None:
        gap = ["" if not text or text.endswith("\n") else newline, newline if text.strip() else ""]
        changed = text + "".join(gap) + f"[{section}]{newline}{line}"
    else:
        end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
        for number in range(start + 1, end):
            if (found := assigned.match(lines[number])) is not None:
                lines[number] = f"{found[1]}{written}{found[3]}"
                break
        else:
            if not lines[start].endswith("\n"):
                lines[start] += newline
            lines.insert(start + 1, line)
        changed = "".join(lines)
    if getattr(parse(changed, path), field) != value:
        raise BadConfig(path=path, detail=f"[{section}] {key} could not be set; set it by hand to {value}")
    return changed
