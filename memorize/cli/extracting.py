"""What the verbs say and set of the extractor: which one is at work, what it may cost, and what it has cost today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memorize import config as settings
from memorize.agents import write
from memorize.bootstrap import App
from memorize.config import Config
from memorize.consolidate.login import Choice, Extractors
from memorize.consolidate.port import OF_THE_SERVICE
from memorize.counted import counted


def switch(parts: App, name: str | None, *, dry_run: bool = False) -> tuple[Config, Choice]:
    """Write the extractor that was asked for into config.toml, and let ``auto`` use a model from now on.

    Returns the configuration that holds now, and what is at work under it. Raises BadConfig, CannotRead, CannotWrite.
    """
    config = parts.config
    if name is not None and name != config.extractor:
        path = parts.home.config.resolve()  # a link to the person's collection of settings stays one
        text = settings.with_value((write.read(path) or b"").decode(), "consolidate.extractor", name, str(path))
        config = settings.parse(text, str(path))
        if not dry_run:
            write.replace(path, text.encode())
    found = Extractors(parts.home, config, parts.environ, parts.clock, keep=not dry_run)
    if config.extractor == "auto" and not dry_run:
        found.switch_on()
    return config, found.choose(fresh=True, allowed=True)


def line(choice: Choice, config: Config) -> str:
    """Return what setup says of it, on one line."""
    cap = f"at most {config.calls_per_day} calls and {config.tokens_per_day:,} tokens a day"
    if choice.name == "url":
        return f"{choice.why}: {cap}; --extractor rules refuses"
    if choice.model is not None:
        return f"{choice.name}, with your login: {cap}; --extractor rules refuses"
    if choice.name == "rules" and config.extractor == "auto":
        return f"rules: {choice.why}; once one is, it is used ({cap}; --extractor rules refuses)"
    if choice.name == "rules":
        return "rules: no model is called, nothing leaves this machine"
    if choice.name == "off":
        return "off: no memories are formed; what is observed is kept"
    return f"{config.extractor}: {choice.why}"


def status(parts: App, project: str) -> dict[str, Any]:
    """Return what status tells of it in a project, without starting a program where something is known already."""
    models = parts.models
    choice = models.extractors.choose(stale=True)
    used = models.meter.today()
    return {
        "extractor": choice.name,
        "why": choice.why,
        "calls_today": used.calls,
        "calls_per_day": parts.config.calls_per_day,
        "tokens_today": used.tokens_in + used.tokens_out,
        "tokens_per_day": parts.config.tokens_per_day,
        "stopped": models.meter.notice() if choice.model is not None else None,
        "parked": len(models.attempts.parked()),
        "failed": _failed(parts, project),
    }


def _failed(parts: App, project: str) -> dict[str, Any] | None:
    """Return the last failure that is still to be made good and concerns the project; what the service did, does."""
    for one in parts.models.attempts.failing():
        if one.project == project or one.kind in OF_THE_SERVICE:
            return {"kind": one.kind, "detail": one.detail, "at_ms": one.at_ms}
    return None


def words(facts: Mapping[str, Any]) -> str:
    """Return the same in words, for one line."""
    parked = f", {counted(facts['parked'], 'window')} parked: memorize doctor" if facts["parked"] else ""
    if facts["stopped"]:
        return f"{facts['extractor']}: {facts['stopped']}{parked}"
    if facts["extractor"] in ("claude", "codex", "url"):
        return f"by {facts['extractor']}, {facts['calls_today']} of {facts['calls_per_day']} calls today{parked}"
    if facts["extractor"] == "rules":
        return f"by rules, no model calls{parked}"
    return f"{facts['why']}{parked}"
