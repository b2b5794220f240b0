"""What goes wrong in a life: state directories copied and put back, folders wiped, keys changed, bytes of nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memorize.ids import RANDOM_BYTES
from tests.sync.simulator import words
from tests.sync.simulator.clock import DAY_MS
from tests.sync.simulator.engines import events_in, forged_pack, strange_pack

if TYPE_CHECKING:
    from tests.sync.simulator.engines import Device
    from tests.sync.simulator.world import World

DEVICES_MAX = 6


def erase(world: World) -> str:
    """Erase something that a device knows."""
    device = any_device(world)
    draft = words.erasure(world.random, device.replica.holding.events.values())
    if draft is None:
        return "nothing to erase"
    world.capture(device, draft, ingest=True)
    return f"{device.name} erases {' '.join(one.hex()[:8] for one in draft.payload['ids'])}"


def clone(world: World) -> str:
    """Copy a state directory to another machine, which goes on beside it; it is seen, unless memory was copied too."""
    if len(world.alive()) >= DEVICES_MAX:
        return "no further device"
    origin = any_device(world)
    copy = world.add_device(in_folder=origin.folder is not None, of=origin)
    seen = world.random.random() < 0.5
    if seen:
        copy.replica.renew_replica()
    return f"{copy.name} is a copy of {origin.name}{'' if seen else ' that nobody notices'}"


def back_up(world: World) -> str:
    """Keep a copy of a state directory for a bad day."""
    device = any_device(world)
    world.backups[device.replica.number] = device.state()
    return f"{device.name} is backed up"


def roll_back(world: World) -> str:
    """Put a backup back: what existed nowhere else is gone, and nothing else may be."""
    device = any_device(world)
    state = world.backups.get(device.replica.number)
    if state is None:
        return back_up(world)
    seen = world.random.random() < 0.5

    def act() -> str:
        device.become(state)
        if seen:
            device.replica.renew_replica()
        return f"{device.name} is put back from its backup{'' if seen else ', which nobody notices'}"

    return world.losing(act)


def lose(world: World) -> str:
    """Lose a device for ever."""
    alive = world.alive()
    if len(alive) < 3:
        return "no device can be spared"
    device = world.random.choice(alive)

    def act() -> str:
        device.lost = True
        others = {one.incarnation.replica for one in (other.replica for other in world.alive())}
        told = world.random.random() < 0.5
        if told:
            world.retired |= device.replica.replicas - others
        return f"{device.name} is lost{', and retired' if told else ''}"

    return world.losing(act)


def wipe(world: World) -> str:
    """Empty a folder."""
    numbers = range(len(world.carrier.disks))
    if not numbers:
        return "no folder to wipe"
    number = world.random.choice(numbers)
    everywhere = world.random.random() < 0.5
    return world.losing(lambda: world.carrier.wipe(number, everywhere=everywhere))


def unmount(world: World) -> str:
    """Take a folder away, or bring it back."""
    numbers = range(len(world.carrier.disks))
    return world.carrier.unmount(world.random.choice(numbers)) if numbers else "no folder to unmount"


def reboot(world: World) -> str:
    """Start a machine again: its clock may have been set meanwhile, back or forth."""
    device = any_device(world)
    device.replica.clock.booted = world.random.randbytes(RANDOM_BYTES)
    device.replica.renew_writer()
    if world.random.random() < 0.5:
        device.replica.clock.offset_ms = world.random.choice((0, 30, -30, 1, -1)) * DAY_MS
    return f"{device.name} is started again"


def forget_derived(world: World) -> str:
    """Delete what a device derives: its index, its catalog of folders."""
    device = any_device(world)
    device.forget_derived()
    return f"{device.name} loses its index and its catalog"


def rotate(world: World) -> str:
    """Change the store key on one device; the others are to follow by themselves."""
    device = any_device(world)
    device.rotate()
    return f"{device.name} changes the store key"


def stranger(world: World) -> str:
    """Put a pack into a folder that somebody sealed with a key of his own."""
    if not world.carrier.disks:
        return "no folder for a stranger"
    number = world.random.randrange(len(world.carrier.disks))
    device = any_device(world)
    events = list(device.replica.holding.envelopes.values())[:3]
    # Where nothing but a stranger's packs is to be seen, a device takes its own key for the wrong one.
    known = any(events_in(data, device.keys.find) for data in world.carrier.truth.values())
    make = world.random.choice((strange_pack, forged_pack)) if known else forged_pack
    path, data = make(events, device.keys, world.random.randbytes)
    world.carrier.put(number, path, data)
    world.strangers.append(path)
    return f"a pack of a stranger in folder {number}: {path}"


def poison(world: World) -> str:
    """Let somebody talk to a device who speaks no protocol at all."""
    device = any_device(world)
    told = device.hear_noise()
    return f"noise is sent to {device.name}: {told}"


def junk(world: World) -> str:
    """Leave something in a folder that is no pack."""
    return world.carrier.junk() if world.carrier.disks else "no folder for junk"


def resurrect(world: World) -> str:
    """Bring a deleted file back."""
    return world.carrier.resurrect() if world.carrier.disks else "no folder with a past"


def any_device(world: World) -> Device:
    """Return a device that is there."""
    return world.random.choice(world.alive())
