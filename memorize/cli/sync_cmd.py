"""``memorize sync``: one memory on several devices, through a folder that some tool carries, or by ssh."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memorize.bootstrap.syncing import Progress, Round, Syncing
from memorize.bootstrap.visits import visits
from memorize.cli.console import app, confirm, document, json_option, progress, say, tell
from memorize.cli.rows import padded
from memorize.clock import ago
from memorize.counted import counted
from memorize.errors import NotSynced, UnknownDevice, UnknownTarget
from memorize.recall.plain import one_line

if TYPE_CHECKING:
    from memorize.bootstrap import App
    from memorize.index.devices import Device

_NOTES_SHOWN = 5
_NOTHING = "nothing to sync with yet: memorize sync add folder PATH, or memorize sync add ssh://HOST"
_DIGITS_MIN = 6


@click.group(invoke_without_command=True)
@click.option("--only", metavar="WHERE", help="Only this folder or address, of those that were added.")
@click.option(
    "--check", is_flag=True, help="Also read every pack of this device again, and replace those that are spoilt."
)
@json_option
@click.pass_context
def command(context: click.Context, only: str | None, check: bool, as_json: bool) -> None:
    """Do one full round now: take in what other devices wrote, hand out what this one did.

    Without any daemon, and as often as you like: what is there already is not carried again. Add a place to sync with
    first: "memorize sync add folder PATH" or "memorize sync add ssh://HOST". All devices need one key: "memorize key
    export" on one, "memorize key import" on the others. Devices that were paired ("memorize peer pair") are told of by
    "memorize peer list".
    """
    if context.invoked_subcommand is not None:
        return
    parts = app()
    syncing = Syncing(parts)
    chosen = syncing.targets()
    if only is not None:
        wanted = only.rstrip("/") or only
        chosen = tuple(one for one in chosen if wanted in (one.where, one.label))
        if not chosen:
            raise UnknownTarget(what=only)
    with _bar(quiet=as_json) as told:
        done = syncing.rounds(chosen, told, by_hand=True, asks=sys.stdin.isatty(), check=check)
    if done:
        parts.refresh_briefs(force=False)
    pair = parts.reader().digest()
    if as_json:
        document({"items": [_item(one) for one in done], "total": len(done), "set": pair[0], "state": pair[1]})
    else:
        for one in done:
            _say_round(one)
        if chosen:
            say(f"digest {pair[0]}")
        elif parts.home.peers.exists():
            say("paired devices need no round: while the daemons run they exchange by themselves (memorize peer list)")
        else:
            say(_NOTHING)
    failed = [one for one in done if not one.settled]
    if failed:
        raise NotSynced(count=len(failed), total=len(done), detail="; ".join(_why(one) for one in failed))


@command.command("add", short_help="Sync with a folder, or with a device by ssh.")
@click.argument("words", nargs=-1, required=True, metavar="folder PATH | ssh://[USER@]HOST[:PORT][/PATH/OF/memorize]")
@json_option
def add(words: tuple[str, ...], as_json: bool) -> None:
    """Sync with a folder that some tool carries to other machines, or with a device by ssh.

    Any tool will do: Syncthing, Dropbox, OneDrive, iCloud, rsync, git, a USB stick. What lies in the folder is sealed
    under the key of your memory. A device by ssh needs nothing but memorize on it and the same key.
    """
    parts = app()
    target, new = Syncing(parts).add(words)
    if as_json:
        document({**target._asdict(), "added": new})
        return
    say(f"added {target.label}" if new else f"{target.label} was there already")
    tell('hand out and take in with "memorize sync"; the daemon does it by itself while it runs')


@command.command("remove", short_help="Sync no more with a folder or device.")
@click.argument("words", nargs=-1, required=True, metavar="PATH | ssh://HOST")
def remove(words: tuple[str, ...]) -> None:
    """Sync no more with a folder or device. Nothing in it is changed or deleted, and nothing here is."""
    say(f"removed {Syncing(app()).remove(words).label}")


@command.command("retire", short_help="Say that a device never comes back.")
@click.argument("device")
@click.option("--yes", is_flag=True, help="Do not ask.")
def retire(device: str, yes: bool) -> None:
    """Say that a device never comes back: others may then remove its packs once they carry what is in them.

    What it wrote stays. A device that does come back makes its packs again. DEVICE may also be a replica that "memorize
    erase --status" shows: a copy of a state directory that was deleted, or what a device was before it was restored.
    """
    parts = app()
    syncing = Syncing(parts)
    parts.reader()
    wanted = device.casefold()
    found = [one for one in syncing.devices() if one.id.startswith(wanted) or one.name.casefold() == wanted]
    if len(found) == 1 and found[0].id != parts.device():
        if not yes:
            confirm(f"{found[0].name or found[0].id[:8]} ({found[0].id[:8]}) never comes back?")
        syncing.retire(found[0])
        say(f"retired {found[0].name or found[0].id[:8]}")
        for peer in _paired(parts):
            if peer["device"] == found[0].id:
                tell(f"It is still paired, and let in when it comes: memorize peer remove {peer['fingerprint'][:12]}")
        return
    known = [(one, replica) for one in syncing.devices() for replica in one.replicas]
    replicas = [
        (one, replica) for one, replica in known if len(wanted) >= _DIGITS_MIN and replica.hex().startswith(wanted)
    ]
    if found or len(replicas) != 1 or replicas[0][1] == parts.identity.replica:
        names = [f"{one.name or 'unnamed'} ({one.id[:8]})" for one in syncing.devices() if one.id != parts.device()]
        raise UnknownDevice(name=device, known=", ".join(names) or "none")
    one, replica = replicas[0]
    if not yes:
        confirm(f"No directory goes on under replica {replica.hex()[:8]} of {one.name or one.id[:8]}?")
    syncing.retire_replica(replica)
    say(f"retired replica {replica.hex()[:8]} of {one.name or one.id[:8]}")


@command.command("status", short_help="Show places, devices, the last rounds, and who agrees.")
@json_option
def status(as_json: bool) -> None:
    """Show what this device syncs with, how the last rounds went, which devices there are, and whether all agree."""
    parts = app()
    facts = facts_of(parts)
    if as_json:
        document(facts)
        return
    now = parts.clock.wall_ms()
    for one in facts["targets"]:
        say(f"{_label(one)}  {_last(one, now)}")
        for note in one["notes"][:_NOTES_SHOWN]:
            say(f"    {note}")
        if one["foreign"]:
            say(f"    {strangers(one['foreign'])}")
    for one in facts["peers"]:
        say(f"paired {one['name']}  {state_of(one)}")
    for one in facts["visits"]:
        say(f"reached by {visitor(one)}  {came(one, now)}")
    if not facts["targets"] and not facts["peers"] and not facts["visits"]:
        say(_NOTHING)
    for device in facts["devices"]:
        say(_device_line(device, now))
    say("converged" if facts["converged"] else f"not converged: {'; '.join(facts['why'])}")
    say(f"digest {facts['set']}")


def facts_of(parts: App) -> dict[str, Any]:
    """Return what is known of sync without doing any: of use to ``status`` and ``doctor``, too."""
    syncing = Syncing(parts)
    parts.reader()
    last = syncing.last()
    items = [_known(target._asdict(), last.get(target.where)) for target in syncing.targets()]
    pair = parts.reader().digest()
    known = [_device(one, parts.device(), syncing.retired()) for one in syncing.devices()]
    gone = {one["id"] for one in known if one["retired"]}
    paired = [{**one, "retired": one["device"] in gone} for one in _paired(parts)]
    # One that never comes back is no reason to wait.
    live = [one for one in paired if not one["retired"]]
    # What was written since the last round has not been handed out.
    why = [f"{_label(one)}: {one['reason'] or 'no round yet'}" for one in items if not one["settled"]]
    why += [
        f"{_label(one)}: new events here since the last round" for one in items if one["settled"] and _older(one, pair)
    ]
    why += [
        f'{_label(one)}: events of another device are handed on later, or by "memorize sync"'
        for one in items
        if one["waiting"]
    ]
    why += [f"{one['name']} (paired): {state_of(one)}" for one in live if not one["converged"]]
    met = [one._asdict() for one in visits(parts)] if parts.home.visits.exists() else []
    if met and not items and not live:
        why += _since_visit(met[0], pair)
    some = bool(items or live or met)
    return {
        "targets": items,
        "peers": paired,
        "visits": met,
        "devices": known,
        "converged": some and not why,
        "why": why or ([] if some else ["nothing to sync with"]),
        "set": pair[0],
        "state": pair[1],
    }


def _since_visit(last: dict[str, Any], pair: Sequence[str]) -> list[str]:
    """Say what stands open where only others come: nothing else is set up here."""
    if not last["settled"]:
        return [f"{visitor(last)}: {last['reason']}"]
    return [] if last["set"] == pair[0] else [f"{visitor(last)}: new events here since it came"]


def visitor(visit: dict[str, Any]) -> str:
    """Return how to call a device that came by ssh."""
    device = f"{one_line(visit['name']) or 'a device'} ({visit['device'][:8]})" if visit["device"] else "a device"
    return f"{device} from {visit['address']}" if visit["address"] else device


def came(visit: dict[str, Any], now: int) -> str:
    """Return when it came and what came of it."""
    state = "both held the same" if visit["settled"] else visit["reason"]
    return f"{ago(visit['at_ms'], now)}: {state} (sent {visit['sent']:,}, received {visit['received']:,})"


def _paired(parts: App) -> list[dict[str, Any]]:
    """Return the paired devices; without any, nothing of peers is loaded."""
    if not parts.home.peers.exists():
        return []
    from memorize.cli.peer_cmd import peers_of

    return peers_of(parts)[0]


def state_of(one: dict[str, Any]) -> str:
    """Return how it stands with a paired device, in words."""
    if one["retired"]:
        return f"retired, and still paired: memorize peer remove {one['fingerprint'][:12]}"
    if one["converged"]:
        return "connected, both hold the same"
    return one["reason"] or one["state"] or "the daemon is not running: memorize daemon start"


def _known(target: dict[str, Any], last: Any) -> dict[str, Any]:
    told = last if isinstance(last, dict) else {}
    names = ("reason", "sent", "received", "pending", "refused", "bad", "foreign", "waiting", "at_ms", "set", "mended")
    notes = [str(one) for one in told.get("notes") or ()]
    return {**target, "settled": bool(told.get("settled")), **{name: told.get(name) for name in names}, "notes": notes}


def _older(item: dict[str, Any], pair: Sequence[str]) -> bool:
    return bool(item["set"]) and item["set"] != pair[0]


def _device(one: Device, own: str, retired: frozenset[bytes]) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "platform": one.platform,
        "version": one.version,
        "events": one.events,
        "last_ms": one.last,
        "here": one.id == own,
        "retired": retired.issuperset(one.replicas),
    }


def _device_line(device: dict[str, Any], now: int) -> str:
    when = "this device" if device["here"] else f"last heard {ago(min(device['last_ms'], now), now)}"
    when = f"retired, {when}" if device["retired"] else when
    name = padded(device["name"] or "unnamed", 20)
    return f"device {device['id'][:8]}  {name} {counted(device['events'], 'event'):>14}  {when}"


def _label(item: dict[str, Any]) -> str:
    return f"folder {item['where']}" if item["kind"] == "folder" else str(item["where"])


def _last(item: dict[str, Any], now: int) -> str:
    if not item["at_ms"]:
        return "no round yet: memorize sync"
    moved = f"sent {item['sent'] or 0:,}, received {item['received'] or 0:,}"
    state = "all taken in and handed out" if item["settled"] else item["reason"]
    spoilt = f"; {_spoilt(item['mended'])}" if item["mended"] else ""
    return f"{ago(item['at_ms'], now)}: {state} ({moved}){spoilt}"


def _spoilt(packs: int) -> str:
    return f"{counted(packs, 'pack')} of this device had been spoilt there and handed out again: look at that disk"


def _say_round(one: Round) -> None:
    files = f" from {counted(one.files, 'pack')}" if one.files else ""
    state = "done" if one.settled else "not done"
    say(f"{one.target.label}  sent {counted(one.sent, 'event')}, received {one.received:,}{files}: {state}")
    if one.mended:
        tell(f"    {_spoilt(one.mended)}")
    for note in one.notes[:_NOTES_SHOWN]:
        tell(f"    {note}")
    if one.foreign:
        tell(f"    {strangers(one.foreign)}")


def strangers(packs: int) -> str:
    """Return what to say of packs of a store that is not ours: of another person, or of a device without our key."""
    there = "belongs" if packs == 1 else "belong"
    remedy = '"memorize key export" there and "memorize key import" here make both one'
    return f"{counted(packs, 'pack')} in it {there} to another memory; if it is yours, {remedy}"


def _why(one: Round) -> str:
    return f"{one.target.label}: {one.reason or 'it did not settle'}"


def _item(one: Round) -> dict[str, Any]:
    return {**one.target._asdict(), **{name: value for name, value in one._asdict().items() if name != "target"}}


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Progress]:
    with progress("sync", quiet=quiet) as advance:
        yield lambda _label, done, total: advance(done, total)
