"""The clocks of the replicas: each its own, days apart, now and then stepping back. None ever decides anything."""

from __future__ import annotations

from typing import Final

START_MS: Final = 1_796_000_000_000
DAY_MS: Final = 24 * 3600 * 1000


class WorldTime:
    """What time it really is. Nothing but the simulator knows."""

    def __init__(self) -> None:
        self.ms = START_MS

    def advance(self, ms: int) -> None:
        """Let time pass for everybody."""
        self.ms += ms


class LocalClock:
    """A ``clock.Clock`` that is ``offset_ms`` off the world's time."""

    def __init__(self, world: WorldTime, offset_ms: int, boot: bytes) -> None:
        self.world = world
        self.offset_ms = offset_ms
        self.booted = boot

    def wall_ms(self) -> int:
        """What this machine takes for the time."""
        return self.world.ms + self.offset_ms

    def monotonic_ns(self) -> int:
        """Nanoseconds that this machine has been up."""
        return (self.world.ms - START_MS) * 1_000_000 + 1

    def boot(self) -> bytes:
        """This boot."""
        return self.booted

    def zone_minutes(self) -> int:
        """UTC."""
        return 0
