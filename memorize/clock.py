"""The only room that reads a clock.

Wall time is for display and recency; no winner is ever chosen by it. Monotonic time with the boot id orders the
captures of one machine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, Protocol


class Clock(Protocol):
    """What the shell hands to code that needs the time."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds since boot, shared by all processes of this machine."""
        ...

    def boot(self) -> bytes:
        """16 bytes that name this boot of this machine."""
        ...

    def zone_minutes(self) -> int:
        """Minutes by which local time is ahead of UTC, for dates that a person reads."""
        ...


_FALLBACK_BOOT = os.urandom(16)


class SystemClock(NamedTuple):
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_ns(self) -> int:
        """Nanoseconds since boot."""
        return time.monotonic_ns()

    def boot(self) -> bytes:
        """The kernel's boot id; where there is none, one of this process (the cost is one more writer)."""
        try:
            text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
            return bytes.fromhex(text.strip().replace("-", ""))
        except (OSError, ValueError):
            return _FALLBACK_BOOT

    def zone_minutes(self) -> int:
        """The offset that the machine is set to now."""
        return time.localtime().tm_gmtoff // 60


class FixedClock(NamedTuple):
    """A clock that stands still, for tests and replays."""

    wall: int = 1_796_000_000_000
    mono: int = 1_000_000_000
    boot_id: bytes = b"\x01" * 16

    def wall_ms(self) -> int:
        """The given wall time."""
        return self.wall

    def monotonic_ns(self) -> int:
        """The given monotonic time."""
        return self.mono

    def boot(self) -> bytes:
        """The given boot."""
        return self.boot_id

    def zone_minutes(self) -> int:
        """UTC."""
        return 0


_STEPS = ((60, "s"), (60, "min"), (24, "h"), (365, "d"))


def ago(then_ms: int, now_ms: int) -> str:
    """Return ``4 min ago``; what lies in the future is ``now``."""
    span = lasting(now_ms - then_ms)
    return f"{span} ago" if span else "now"


def lasting(ms: int) -> str:
    """Return a span of time in a person's words, ``4 min``; less than two seconds are none."""
    amount = max(0, ms) // 1000
    if amount < 2:
        return ""
    for size, unit in _STEPS:
        if amount < size:
            return f"{amount} {unit}"
        amount //= size
    return f"{amount} y"
