"""What ``doctor`` says of sync: rounds that did not settle, silent devices, clocks and versions apart, twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from memorize import __version__
from memorize.bootstrap import App
from memorize.cli.sync_cmd import came, facts_of, state_of, strangers, visitor
from memorize.clock import ago, lasting
from memorize.counted import counted
from memorize.daemon import life

SILENT_MS: Final = 7 * 24 * 3600 * 1000
# A round that is older than this while something waits means that nobody does any.
STALE_MS: Final = 24 * 3600 * 1000
_AHEAD_MS: Final = 24 * 3600 * 1000


class Finding(NamedTuple):
    """One thing that is well, or is not: then ``do`` is the remedy."""

    fine: bool
    name: str
    text: str
    do: str = ""


def findings(parts: App) -> Iterator[Finding]:
    """Return what there is to say; nothing on a device that syncs with nobody and never did."""
    facts, now = facts_of(parts), parts.clock.wall_ms()
    for one in facts["targets"]:
        yield _target(one, now)
    for one in facts["peers"]:
        do = "" if one["converged"] else "memorize peer list"
        do = f"memorize peer remove {one['fingerprint'][:12]}" if one["retired"] else do
        yield Finding(not do, "peer", f"{one['name']}: {state_of(one)}", do)
    for one in facts["visits"]:
        if not one["settled"]:
            text = f"{visitor(one)} reached this device {came(one, now)}"
            yield Finding(False, "sync", text, "mend what it says, then sync there again")
    others = [one for one in facts["devices"] if not one["here"]]
    yield from _devices(others, now)
    twins = len(parts.holding.twins())
    if twins:
        text = f"{counted(twins, 'event')} with a number that was given out twice, by a copied or restored directory"
        yield Finding(True, "twins", f"{text}; all of them are kept")


def _target(one: dict[str, Any], now: int) -> Finding:
    label = one["where"]
    if not one["at_ms"]:
        return Finding(False, "sync", f"{label}: no round yet", "memorize sync")
    when = ago(one["at_ms"], now)
    if not one["settled"]:
        return Finding(False, "sync", f"{label}, {when}: {one['reason']}", "mend what it says, then: memorize sync")
    if now - one["at_ms"] > STALE_MS:
        return Finding(False, "sync", f"{label}: the last round was {when}", "memorize sync, or: memorize daemon start")
    text = f"{label}: all taken in and handed out {when}"
    return Finding(True, "sync", f"{text}; {strangers(one['foreign'])}" if one["foreign"] else text)


def _devices(others: list[dict[str, Any]], now: int) -> Iterator[Finding]:
    for one in others:
        name = f"{one['name'] or 'a device'} ({one['id'][:8]})"
        if one["last_ms"] > now + _AHEAD_MS:
            text = f"the clock of {name} is, or was, {lasting(one['last_ms'] - now)} ahead of this one"
            yield Finding(False, "clock", text, "set it; nothing was ordered by it, only shown times are wrong")
        elif now - one["last_ms"] > SILENT_MS and not one["retired"]:
            text = f"{name} was last heard of {ago(one['last_ms'], now)}"
            yield Finding(False, "silent", text, f"sync there, or: memorize sync retire {one['id'][:8]}")
        if life.order(one["version"]) > life.order(__version__):
            text = f"{name} has version {one['version']}, this device {__version__}"
            yield Finding(False, "version", text, "install the newer one here; what only it understands is kept")
