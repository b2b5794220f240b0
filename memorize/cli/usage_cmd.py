"""``memorize usage``: what models were asked, and what became of the memories."""

from __future__ import annotations

from typing import Any

import click

from memorize.cli.console import app, document, json_option, say
from memorize.cli.rows import padded
from memorize.consolidate.spend import Line, Meter, Used, total
from memorize.index.lifetimes import Lifetime, lifetimes
from memorize.recall.plain import one_line


@click.command()
@click.option("--days", type=click.IntRange(1, 36_500), default=7, show_default=True, help="So many days, with today.")
@click.option(
    "--lifetimes", "lives", is_flag=True, help="How often memories were told, of use, and how long they held."
)
@json_option
def command(days: int, lives: bool, as_json: bool) -> None:
    """Show the calls of models by day, project and purpose: tokens, and cost where it was told.

    All of it was measured on this machine and stays here. With --lifetimes, "used" counts memories that were told in a
    session which then edited a file they name, or that were confirmed.
    """
    parts = app()
    if lives:
        found = lifetimes(parts.reader().connection, parts.clock.wall_ms())
        _show_lives(found, as_json)
        return
    meter = parts.models.meter
    lines = meter.usage(days)
    names = {one.key: one.name for one in parts.reader().projects()} if lines else {}
    if as_json:
        document(
            {
                "items": [_item(line, names) for line in lines],
                "total": len(lines),
                "days": days,
                "sum": _spent(total(lines)),
                "today": {**_spent(meter.today()), "calls_cap": meter.caps.calls, "tokens_cap": meter.caps.tokens},
                "stopped": meter.notice(),
            }
        )
        return
    if lines:
        say(_row("day", "project", "purpose", "by", ("calls", "failed", "in", "out", "USD")))
    for line in lines:
        name = one_line(names.get(line.project, "")) or line.project[:8] or "-"
        say(_row(line.day, name, line.purpose, line.extractor, _words(line.used)))
    if lines:
        say(_row("together", "", "", "", _words(total(lines))))
    _say_today(meter)


def _say_today(meter: Meter) -> None:
    used, caps = meter.today(), meter.caps
    spent = used.tokens_in + used.tokens_out
    say(f"today       {used.calls} of {caps.calls} calls, {spent:,} of {caps.tokens:,} tokens")
    if (notice := meter.notice()) is not None:
        say(f"stopped     {notice}")


def _item(line: Line, names: dict[str, str]) -> dict[str, Any]:
    about = {"day": line.day, "project": line.project, "name": names.get(line.project, "")}
    return {**about, "purpose": line.purpose, "extractor": line.extractor, **_spent(line.used)}


def _spent(used: Used) -> dict[str, Any]:
    cost = None if used.cost_usd_micro is None else used.cost_usd_micro / 1_000_000
    return {
        "calls": used.calls,
        "failed": used.failed,
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "cost_usd": cost,
    }


def _row(day: str, project: str, purpose: str, by: str, spent: tuple[str, str, str, str, str]) -> str:
    calls, failed, tokens_in, tokens_out, cost = spent
    where = f"{day:10}  {padded(project, 14)}  {purpose:7} {by:6}"
    return f"{where} {calls:>5} {failed:>6} {tokens_in:>8} {tokens_out:>7} {cost:>7}"


def _words(used: Used) -> tuple[str, str, str, str, str]:
    """Return calls, failed ones, tokens in and out, and cost, "-" where it was not told."""
    cost = "-" if used.cost_usd_micro is None else f"{used.cost_usd_micro / 1_000_000:.4f}"
    return str(used.calls), str(used.failed), f"{used.tokens_in:,}", f"{used.tokens_out:,}", cost


def _show_lives(found: list[Lifetime], as_json: bool) -> None:
    if as_json:
        document({"items": [one._asdict() for one in found], "total": len(found)})
        return
    if not found:
        say("no memory was formed yet")
        return
    say(
        f"{'kind':11} {'formed':>6} {'live':>5} {'expired':>7} {'told':>5} {'times':>6} {'used':>5} {'superseded':>10} "
        f"{'retracted':>9} {'doubled':>7}  median age at the end"
    )
    for one in found:
        age = "-" if one.days is None else f"{one.days:g} d"
        say(
            f"{one.kind:11} {one.formed:6} {one.live:5} {one.expired:7} {one.told:5} {one.times:6} {one.used:5} "
            f"{one.superseded:10} {one.retracted:9} {one.doubled:7}  {age}"
        )
