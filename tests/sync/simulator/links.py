"""A direct connection between two devices in memory: frames from here to there, cut wherever it hurts."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from memorize.sync.exchange import Pace
from memorize.sync.handshake import Role
from memorize.sync.wire import Decoder, Frame, encode

if TYPE_CHECKING:
    from tests.sync.simulator.engines import Device
    from tests.sync.simulator.world import World

# A frame takes some time; a session that needs more frames than this does not end.
FRAMES_MAX: Final = 4_000
# Small frames and turns, so that a short history has as many places to be cut at as a long one.
_PACES: Final = (Pace(), Pace(), Pace(600, 2_000, 400), Pace(1_500, 1_500, 1_500))


class EndlessError(AssertionError):
    """Two sides talk and talk."""


class FalseClaimError(AssertionError):
    """Two sides report what is not so."""


class Link:
    """Two sessions and the frames that are on their way between them."""

    def __init__(self, world: World, one: Device, other: Device) -> None:
        pace = world.random.choice(_PACES)
        first, second = (one, other) if world.random.random() < 0.5 else (other, one)
        self._world = world
        self.devices = (first, second)
        self.sides = (first.session(Role.INITIATOR, pace), second.session(Role.RESPONDER, pace))
        self._decoders = (Decoder(), Decoder())
        self._flying: deque[tuple[int, Frame]] = deque()
        self.frames = 0
        self.over = False
        self._send(0, self.sides[0].opening())

    @property
    def told(self) -> str:
        """How it went, for the trace."""
        ends = [side.outcome for side in self.sides]
        if None in ends:
            return f"cut after {self.frames} frames"
        said = "; ".join(sorted({end.reason for end in ends if end is not None and end.reason}))
        return f"{self.frames} frames, {'equal' if ends[0] and ends[0].converged else 'not equal'} {said}".rstrip()

    def talk(self, frames: int | None) -> str:
        """Carry frames until the session is over, or so many were carried; return how it went."""
        while not self.over and (frames is None or self.frames < frames):
            self.step()
        self._end()
        one, other = (device.replica.holding.digest() for device in self.devices)
        if one != other and all(side.outcome is not None and side.outcome.converged for side in self.sides):
            raise FalseClaimError(f"{self.devices[0].name} and {self.devices[1].name} say that they hold the same")
        return self.told

    def step(self) -> None:
        """Carry one frame and take in what it is answered with."""
        if not self._flying:
            self._end()
            return
        if self.frames > FRAMES_MAX:
            raise EndlessError(f"{self.devices[0].name} and {self.devices[1].name} do not come to an end")
        target, frame = self._flying.popleft()
        self.frames += 1
        self._decoders[target].feed(encode(frame))
        side = self.sides[target]
        self._send(target, side.on(self._decoders[target].frames()))
        if side.problem is not None:
            raise side.problem

    def _send(self, source: int, frames: list[Frame]) -> None:
        self._flying.extend((1 - source, frame) for frame in frames)

    def _end(self) -> None:
        if self.over:
            return
        self.over = True
        for device, side in zip(self.devices, self.sides, strict=True):
            device.hung_up(side)
