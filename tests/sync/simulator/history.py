"""One history: what happens to a world from one seed, until all is carried everywhere, and what does not hold then."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from memorize.sync.folder_sync import OTHER_KEY, UNMOUNTED
from tests.sync.simulator import faults
from tests.sync.simulator.chance import seeded
from tests.sync.simulator.clock import DAY_MS
from tests.sync.simulator.engines import Device
from tests.sync.simulator.invariants import broken, readable
from tests.sync.simulator.links import Link
from tests.sync.simulator.world import Rules, World

STEPS: Final = (20, 60)
# Each round of settling carries everything everywhere; what is not still by then will never be.
ROUNDS_MAX: Final = 40
STILL: Final = 3
COMMAND: Final = "python -m tests.sync.simulator"

Act = Callable[[World], str]


class Outcome(NamedTuple):
    """What a history came to. ``complaints`` is empty when everything held."""

    seed: int
    events: int
    devices: int
    complaints: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((f"seed {self.seed} (again: {COMMAND} {self.seed} --trace)", *self.complaints))


def run(seed: int, rules: Rules | None = None, trace: Callable[[str], None] = lambda line: None) -> Outcome:
    """Return the outcome of the history of one seed; anything that the program raises is a complaint, too."""
    random = Random(seed)
    with seeded(random):
        world = World(random, rules or Rules(), trace)
        try:
            live(world)
            complaints = settle(world)
        except Exception as error:
            trace(f"raised: {error!r}")
            error.add_note(f"seed {seed} (again: {COMMAND} {seed} --trace)")
            raise
    return Outcome(seed, len(world.written), len(world.devices), tuple(complaints))


def live(world: World) -> None:
    """Let things happen."""
    acts, weights = zip(*_ACTS, strict=True)
    for _ in range(world.random.randint(*STEPS)):
        act: Act = world.random.choices(acts, weights)[0]
        world.trace(act(world))


# -- what happens ---------------------------------------------------------------------------------------------------


def capture(world: World) -> str:
    """Capture one or several things on one device; they may stay in the spool for a while."""
    device = faults.any_device(world)
    for _ in range(world.random.randint(1, 3)):
        world.capture(device, world.draft(device), ingest=world.random.random() < 0.8)
    return f"{device.name} has captured"


def carry(world: World) -> str:
    """Let the sync tool do something."""
    done = [world.carrier.step() for _ in range(world.random.randint(1, 6))] if world.carrier.disks else []
    return "; ".join(done) or "no folder to carry"


def folder_round(world: World) -> str:
    """Have one device do a round with its folder, while others may capture."""
    devices = [one for one in world.alive() if one.folder is not None]
    if not devices:
        return "no device has a folder"
    device = world.random.choice(devices)
    world.ingest(device)
    return f"{device.name} does a round: {device.folder_round()}"


def session(world: World) -> str:
    """Have two devices talk, until they are done or the link is cut behind some frame."""
    pairs = list(world.pairs())
    if not pairs:
        return "nobody talks to anybody"
    link = Link(world, *world.random.choice(pairs))
    frames = world.random.choice((None, None, 1, 2, 3, 5, 8))
    return link.talk(frames)


def sessions_at_once(world: World) -> str:
    """Have several pairs talk at the same time, frame by frame in any order, while they capture."""
    links = [Link(world, *pair) for pair in world.pairs()][:4]
    world.random.shuffle(links)
    for _ in range(60):
        going = [link for link in links if not link.over]
        if not going:
            break
        world.random.choice(going).step()
        if world.random.random() < 0.1:
            device = faults.any_device(world)
            world.capture(device, world.draft(device), ingest=True)
    return f"{len(links)} links at once: {', '.join(link.told for link in links)}"


def pass_time(world: World) -> str:
    """Let hours or days go by."""
    days = world.random.choice((0, 0, 1, 3, 8))
    world.time.advance(days * DAY_MS + 3_600_000)
    return f"{days} days pass"


_ACTS: Final[tuple[tuple[Act, float], ...]] = (
    (capture, 24),
    (carry, 22),
    (folder_round, 16),
    (session, 9),
    (sessions_at_once, 2),
    (pass_time, 4),
    (faults.erase, 5),
    (faults.clone, 2),
    (faults.back_up, 2.5),
    (faults.roll_back, 4),
    (faults.lose, 0.4),
    (faults.wipe, 1.5),
    (faults.unmount, 2),
    (faults.reboot, 1.5),
    (faults.forget_derived, 1),
    (faults.rotate, 0.7),
    (faults.stranger, 0.5),
    (faults.poison, 0.4),
    (faults.junk, 1),
    (faults.resurrect, 1),
)


# -- the end --------------------------------------------------------------------------------------------------------


def settle(world: World) -> list[str]:
    """Carry everything everywhere until nothing changes, and return what does not hold then."""
    world.trace("-- settling")
    still = 0
    for _ in range(ROUNDS_MAX):
        world.time.advance(DAY_MS // 4)
        still = 0 if _settling_round(world) else still + 1
        if still == STILL:
            break
    complaints = [] if still == STILL else [f"after {ROUNDS_MAX} rounds there was still something to do"]
    replicas = [one.replica for one in world.alive()]
    complaints += broken(replicas, world.promises(), world.rules.fold)
    disks = [one.folder.disk for one in world.alive() if one.folder is not None]
    owners = {identity for one in replicas for identity in one.selves()} | world.retired
    complaints += readable(disks, owners, world.bodies, replicas[0].holding.erased)
    for line in complaints:
        world.trace(f"BROKEN: {line}")
    return complaints


def see_to(world: World, device: Device) -> bool:
    """Do what a person does who reads why a device pauses; return whether he asks for a round by hand."""
    if device.paused == OTHER_KEY:
        # Nothing but packs of a stranger is to be seen, so the own key looks like the wrong one.
        for path in world.strangers:
            world.carrier.remove(path)
    if device.paused == UNMOUNTED:
        # A folder that was first used while something else was mounted there is left alone until a person says so.
        device.catalog.facts = device.catalog.facts._replace(place=0)
    return device.paused == UNMOUNTED


def _settling_round(world: World) -> bool:
    changed = world.carrier.settle()
    for device in world.alive():
        world.ingest(device)
        if device.folder is not None:
            before = device.replica.holding.digest()
            told = device.folder_round(by_hand=see_to(world, device))
            world.trace(f"{device.name} does a round: {told}")
            changed |= device.replica.holding.digest() != before
    for one, other in world.pairs():
        before = (one.known(), other.known())
        if before[0] != before[1]:
            told = Link(world, one, other).talk(None)
            world.trace(f"{one.name} talks to {other.name}: {told}")
            changed |= before != (one.known(), other.known())
    return changed | world.carrier.settle()
