"""``memorize key``: carry the keys of the memory to another device, renew them, give a project a key of its own."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from memorize.bootstrap import App
from memorize.cli.console import app, document, here_option, json_option, say, tell
from memorize.counted import counted
from memorize.recall.plain import one_line

_SAID: Final = {
    "same": "the keys of the store that this device writes to already",
    "settled": "each device had joined the other one's store; both now write to the one with the least id",
    "left": "this device has already gone on from that store to another one: give the line of this device to the other",
}


@click.group()
def command() -> None:
    """Carry the keys to another device of yours, or renew them.

    Whoever has the keys can read everything that is synchronised. They are never in the log and never leave this
    device unless you export them or pair it.
    """


@command.command("export", short_help="Print one line with all keys, for another device.")
def export() -> None:
    """Print one line with all keys, for "memorize key import" on another device of yours."""
    from memorize.bootstrap import keeping
    from memorize.sync import keys

    line = keys.export_line(keys.offer(keeping.keyring(app())))
    if sys.stdout.isatty():
        tell(
            "Whoever has this line can read all of your memory. Give it to your own devices only, and clear the screen."
        )
    say(line)


@command.command("import", short_help="Take in the line of another device.")
@json_option
def import_(as_json: bool) -> None:
    """Read the line of another device from standard input, and share one memory with it.

    What this device remembers is kept, and is given to the other one. Doing it twice changes nothing.
    """
    from memorize.bootstrap import keeping
    from memorize.sync import keys
    from memorize.sync.keyline import LINE_BYTES_MAX

    if sys.stdin.isatty():
        tell('Paste the line that "memorize key export" printed on the other device:')
    given = keys.import_line(sys.stdin.buffer.readline(LINE_BYTES_MAX + 1))
    taken = keeping.take(app(), given)
    changed = taken.after != taken.before
    if as_json:
        document({"outcome": taken.outcome, "store": taken.after.store, "changed": changed, "past": taken.past})
        return
    store = taken.after.store.hex()[:8]
    if taken.outcome == "joined":
        kept = " What it remembered before is kept, and is given to the other devices." if taken.past else ""
        say(f"joined store {store}.{kept}")
        tell("Next: memorize sync")
        return
    say(f"{_SAID[taken.outcome]} (store {store}); {'new keys were taken' if changed else 'nothing was changed'}")


@command.command("show", short_help="Show which keys this device has, never the keys.")
@json_option
def show(as_json: bool) -> None:
    """Show which keys this device has: their names only, never the keys."""
    facts = _facts(app())
    if as_json:
        document(facts)
        return
    say(f"store {facts['store']}")
    say(f"key   {facts['key']}, generation {facts['generation']}")
    for one in facts["older"]:
        say(f"older {one['key']}, generation {one['generation']}, store {one['store']}: readable")
    for one in facts["scopes"]:
        say(f"scope {one['key']} of {one['name'] or one['project']}" + ("" if one["on"] else ": off"))
    if facts["destroyed"]:
        say(f"{counted(facts['destroyed'], 'scope key')} destroyed after erasures")


@command.command("rotate", short_help="Make a new store key.")
@click.option("--by-hand", is_flag=True, help="Other devices get it only by a key line: when one was lost or stolen.")
@json_option
def rotate(by_hand: bool, as_json: bool) -> None:
    """Make a new store key. What was sealed under the old one stays readable.

    Other devices follow by themselves, because the new key travels sealed under the old one. Where somebody else may
    have the old one, use --by-hand, and carry the new line to each of your devices.
    """
    from memorize.bootstrap import keeping
    from memorize.sync import keys

    parts = app()
    held = keeping.keyring(parts, bare=True)
    lost = held.store not in held.stores
    ring = keeping.update(
        parts, lambda ring: keys.rotate(ring, keys.new_secret(), keys.new_salt(), by_hand=by_hand), bare=True
    )
    if as_json:
        document({"key": ring.current.id, "generation": ring.current.generation, "by_hand": by_hand})
        return
    say(f"new key {ring.current.id.hex()}, generation {ring.current.generation}")
    if lost:
        tell('What is sealed under the lost key nobody can read: delete the folder "memorize" in each place that you')
        tell('sync through, then run "memorize sync": it hands out everything again.')
    elif by_hand:
        tell('Other devices cannot read what is published from now on before they import the line of "key export".')


@command.command("scope", short_help="Give a project a key of its own, or take it back.")
@click.argument("what", type=click.Choice(["on", "off", "renew"]))
@here_option
@json_option
def scope(what: str, directory: str, as_json: bool) -> None:
    """Give a project a key of its own, so that an erasure there reaches copies in the histories of folder tools.

    Its bodies then travel in packs only under that key, which no folder ever holds. Other devices get it by pairing,
    from a peer, or by a key line; without it they know that something was, but not what.
    """
    from memorize.bootstrap import keeping
    from memorize.sync import keys

    parts = app()
    place = parts.here(directory)
    project = keeping.scope_project(parts, keeping.keyring(parts), place.project)

    def decide(ring: keys.Keyring) -> keys.Keyring:
        on = ring.scope_for(project) is not None
        if (what == "on") == on and what != "renew":
            return ring
        return keys.renew_scope(ring, project, b"" if what == "off" else keys.new_secret(), keys.new_salt())

    before = keeping.keyring(parts)
    ring = keeping.update(parts, decide)
    current = ring.scope_for(project)
    if as_json:
        document({"project": project, "name": place.name, "on": current is not None, "changed": ring != before})
        return
    state = f"under its own key {current.id.hex()}" if current else "under the store's key"
    already = "already " if ring == before else ""
    say(f"{one_line(place.name)} {already}travels {state}")
    if current and ring != before:
        tell('Give it to your other devices: "memorize key export" here, "memorize key import" there, or pair them.')


def _facts(parts: App) -> dict[str, Any]:
    from memorize.bootstrap import keeping

    ring = keeping.keyring(parts)
    names = {one.key: one.name for one in parts.reader().projects()}
    projects = sorted({key.project for key in ring.scopes})
    states = [(project, state) for project in projects if (state := ring.scope_state(project)) is not None]
    return {
        "store": ring.store.hex(),
        "key": ring.current.id.hex(),
        "generation": ring.current.generation,
        "older": [
            {"key": key.id.hex(), "generation": key.generation, "store": key.store.hex()}
            for key in sorted(ring.older, key=lambda key: (key.store != ring.store, *key.rank))
        ],
        "joined": sorted(store.hex() for store in ring.stores),
        "scopes": [
            {"project": project, "name": names.get(project, ""), "key": key.id.hex(), "on": bool(key.secret)}
            for project, key in states
        ],
        "destroyed": len(ring.gone),
    }
