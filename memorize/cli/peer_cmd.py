"""``memorize peer``: devices that exchange events directly, daemon to daemon."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import click

from memorize import config as settings
from memorize.bootstrap import App
from memorize.cli.console import app, confirm, json_option, listing, say, tell
from memorize.cli.rows import padded
from memorize.counted import counted
from memorize.errors import NotPaired

if TYPE_CHECKING:
    from memorize.sync.pairing import Terms
    from memorize.sync.peers import Address

FIND_S: Final = 10.0


@click.group()
def command() -> None:
    """Exchange events directly between the daemons of your devices.

    Pair two devices once with a code that you read from one screen to the other. One of them must listen
    ("memorize peer listen on"); nothing listens unless you say so.
    """


@command.command("pair", short_help="Pair this device with another one of yours.")
@click.argument("code", required=False)
@click.option("--at", "at", metavar="HOST:PORT", help="Where the device that shows the code waits.")
@click.option("--yes", is_flag=True, help="Do not ask when both devices have a past.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Wait at this port; by default any free one.")
@click.option("--bind", default="", metavar="ADDRESS", help="Wait at this address only.")
@click.option("--minutes", type=click.FloatRange(0.01, 60), default=10.0, show_default=True, help="Wait so long.")
@click.option("--lan/--no-lan", default=None, help="Let the other device find this one on the local network.")
def pair(code: str | None, at: str | None, yes: bool, port: int, bind: str, minutes: float, lan: bool | None) -> None:
    """Pair this device with another one of yours.

    Without a code this device shows one and waits. With the code of the other device it connects to it. A code is good
    for one attempt. The device at which the code is typed joins the memory of the other one, unless only it has a past.
    """
    parts = app()
    if code is None:
        _wait(parts, port, bind, minutes, lan)
    else:
        _call(parts, code, at, yes, lan)


def _wait(parts: App, port: int, bind: str, minutes: float, lan: bool | None) -> None:
    from memorize.bootstrap import meeting
    from memorize.sync import lan as network
    from memorize.sync.code import new_code
    from memorize.sync.pairing import HOST
    from memorize.sync.peers import Address

    made = new_code()
    try:
        listener = network.listening(port, bind)
    except OSError as error:
        raise NotPaired(detail=f"port {port} cannot be opened ({error.strerror or error})") from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(listener)
        number = listener.getsockname()[1]
        hosts = [bind] if bind else network.own_addresses()
        meeting.about(parts)  # what is wrong with this device is said before anybody types the code
        found = _may_use_lan(lan)
        if found:
            stack.enter_context(network.announced(made.plate, number, hosts))
        say(f"code  {made.text}")
        for host in hosts:
            say(f"at    {Address(host, number)}")
        where = "" if found else f" --at {Address(hosts[0], number)}"
        tell(f"On the other device: memorize peer pair {made.text}{where}")
        tell(f"Waiting for it for {minutes:g} minutes; Ctrl-C ends it.")
        terms = meeting.wait_for(parts, made, listener, minutes * 60)
    _say_paired(parts, terms, HOST)


def _call(parts: App, text: str, at: str | None, yes: bool, lan: bool | None) -> None:
    from memorize.bootstrap import meeting
    from memorize.sync.code import parse_code
    from memorize.sync.pairing import GUEST

    code = parse_code(text)
    if code is None:
        raise NotPaired(detail="this is no code; it looks like 7-cedar-orbit-42")
    places = _places(code.plate, at, lan)
    terms = meeting.call(parts, code, places, lambda terms: _agrees(terms, yes))
    _say_paired(parts, terms, GUEST)


def _places(plate: int, at: str | None, lan: bool | None) -> list[Address]:
    from memorize.sync import lan as network
    from memorize.sync.peers import address

    if at is not None:
        try:
            return [address(at, 0)]
        except ValueError:
            raise click.BadParameter("an address is HOST:PORT", param_hint="--at") from None
    if not _may_use_lan(lan):
        raise NotPaired(
            detail='give "--at HOST:PORT" as the other device shows it; only with the extra "lan" they find each other'
        )
    tell("Looking for the device on the local network ...")
    found = network.find(plate, FIND_S)
    if len(found) != 1:
        many = "more than one device shows" if found else "no device on the local network shows"
        raise NotPaired(detail=f'{many} this code; give "--at HOST:PORT" as the other device shows it')
    return found[0]


def _may_use_lan(lan: bool | None) -> bool:
    from memorize.sync import lan as network

    if lan and not network.is_available():
        raise NotPaired(detail='finding devices on the local network needs the extra "lan" (zeroconf)')
    return network.is_available() if lan is None else lan


def _agrees(terms: Terms, yes: bool) -> bool:
    """Say what will happen when both devices have a past, and ask. Nothing has changed anywhere yet."""
    host, guest = terms.host, terms.guest
    if host.store == guest.store or not host.past or not guest.past:
        return True
    joining, staying = (guest, host) if terms.joins == "guest" else (host, guest)
    tell(f"{joining.name} ({counted(joining.past, 'event')}) joins the memory of {staying.name}")
    tell(f"({counted(staying.past, 'event')}). Both keep what they have, and each gets what the other one has.")
    return yes or confirm("Join them?", abort=False)


def _say_paired(parts: App, terms: Terms, side: str) -> None:
    from memorize.bootstrap import meeting
    from memorize.sync.tls import fingerprint

    met = meeting.other(terms, side)
    say(f"paired with {met.name} ({fingerprint(met.certificate).hex()[:12]})")
    if meeting.joins_here(terms, side):
        say(f"this device has joined its memory, store {met.store.hex()[:8]}")
    elif terms.host.store != terms.guest.store:
        say("it has joined the memory of this device")
    if terms.host.listens or terms.guest.listens:
        _serve(parts, anew=False)
    else:
        tell('Events travel as soon as one of both listens: "memorize peer listen on".')


@command.command("list", short_help="List the paired devices, and how it stands with each.")
@json_option
def list_(as_json: bool) -> None:
    """List the paired devices, and how it stands with each."""
    parts = app()
    items, told = peers_of(parts)
    if as_json:
        listing(items, len(items))
        return
    for one in items:
        state = one["state"] or "the daemon is not running"
        why = f": {one['reason']}" if one["reason"] else ""
        say(f"{one['fingerprint'][:12]}  {padded(one['name'], 20)} {state}{why}  {', '.join(one['addresses'][:2])}")
    if not items:
        say('no device is paired: "memorize peer pair"')
    port = f"on, port {parts.config.peers_port}" if parts.config.peers_listen == "on" else "off"
    failure = told.get("failure")
    tell(f"listening: {port}{f' ({failure})' if failure else ''}")


def peers_of(parts: App) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return every paired device and how it stands with it, and what the daemon tells of its port."""
    from memorize.daemon import life
    from memorize.sync import peers

    told = life.peering(parts.home)
    states = {one.get("fingerprint"): one for one in told.get("peers", [])}
    items = []
    for peer in peers.load(parts.home, parts.files):
        name = peer.fingerprint.hex()
        state = states.get(name, {})
        items.append(
            {
                "fingerprint": name,
                "name": peer.name,
                "device": peer.device.hex(),
                "addresses": [str(one) for one in peer.addresses],
                "since_ms": peer.since,
                "state": str(state.get("state", "")),
                "reason": str(state.get("reason", "")),
                "converged": state.get("converged"),
                "sent": state.get("sent", 0),
                "received": state.get("received", 0),
                "last_ms": state.get("last_ms", 0),
            }
        )
    return items, told


@command.command("remove", short_help="Forget a paired device.")
@click.argument("name")
def remove(name: str) -> None:
    """Forget a paired device: by its name or the first digits of its fingerprint.

    It is no longer let in. It keeps what it has, the keys too: if it was lost, also do "memorize key rotate --by-hand".
    """
    from memorize.sync import peers

    parts = app()
    gone = peers.named(peers.load(parts.home, parts.files), name)
    peers.change(parts.home, parts.files, lambda known: [one for one in known if one.certificate != gone.certificate])
    say(f"removed {gone.name} ({gone.fingerprint.hex()[:12]})")
    tell('It still has the keys. If it was lost or stolen: "memorize key rotate --by-hand".')


@command.command("listen", short_help="Open the daemon's port to paired devices, or close it.")
@click.argument("what", type=click.Choice(["on", "off"]))
@click.option("--port", type=click.IntRange(1, 65_535), help="The port; by default that of config.toml.")
def listen(what: str, port: int | None) -> None:
    """Open the daemon's port to paired devices, or close it. It is closed unless you open it."""
    from memorize.agents import write

    parts = app()
    path = parts.home.config.resolve()
    text = (write.read(path) or b"").decode()
    if port is not None:
        text = settings.with_value(text, "peers.port", port, str(path))
    text = settings.with_value(text, "peers.listen", what, str(path))
    parts.identity  # noqa: B018 - made before a file is put into the state directory
    write.replace(path, text.encode())
    number = settings.parse(text, str(path)).peers_port
    say(f"listening is on, port {number}" if what == "on" else "listening is off")
    _serve(parts)


def _serve(parts: App, *, anew: bool = True) -> None:
    """Have a daemon serve, ``anew`` under a configuration that was changed, unless the person wants none."""
    from memorize.daemon import life

    if anew:
        life.stop(parts.home)
    if parts.config.daemon != "never" and not (parts.home.hook / "nodaemon").exists():
        life.start(parts.home)
