"""One conversation of two peers, without a byte of input or output: frames in, frames out (docs/format.md).

Greeting and proof first; nothing of an event is sent or taken before. Then rounds (``exchange``), until both report the
same set digest. Both take turns: a side speaks when the other one has ended its turn, so no pipe can fill up on both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from memorize.errors import Problem
from memorize.limits import PEER_FRAME_BYTES_MAX, PEER_GREETING_BYTES_MAX
from memorize.sync import handshake, wire
from memorize.sync.exchange import Exchange, Pace
from memorize.sync.handshake import CAPABILITIES, PACKS, STAYS, Door, Greeting, Refused, Role
from memorize.sync.outgoing import Fields
from memorize.sync.port import Holding, SetDigest
from memorize.sync.wire import Frame, Garbled

# Before its proof the initiator only says with what it would begin.
_UNPROVEN: Final = frozenset({wire.ROUND, wire.TURN})


class Outcome(NamedTuple):
    """How a session ended. ``converged``: both reported the same set digest.

    ``received``: events or bodies that are new here; ``bad``: those that were not what they claim to be. ``ahead``: own
    writers of which the other side knows more than this one. ``code`` for programs, ``reason`` for people: why not.
    """

    converged: bool
    sent: int = 0
    received: int = 0
    bad: int = 0
    reason: str = ""
    code: str = ""
    rounds: int = 0
    ahead: frozenset[bytes] = frozenset()


class Session:
    """One side of a conversation.

    ``key`` proves membership of ``store``; ``older`` are further pairs that are accepted. ``stays``: remain connected
    after both are equal; then ``start`` and ``news`` begin further rounds, and ``settled`` tells of the last one.
    """

    def __init__(
        self,
        holding: Holding,
        key: bytes,
        store: bytes,
        role: Role,
        *,
        older: Sequence[Door] = (),
        gift: bytes = b"",
        me: bytes = b"",
        capabilities: frozenset[str] = CAPABILITIES,
        pace: Pace = Pace(),  # noqa: B008 - a frozen value
        stays: bool = False,
    ) -> None:
        """Put one side together. ``gift``: bytes that the other side's caller gets, sent in the clear.

        ``me``: the replica of this side; an initiator tells it to a side that has proved the key, a responder nobody.
        """
        self.outcome: Outcome | None = None
        self.settled: Outcome | None = None
        self.problem: Problem | None = None  # what stood in the way on this side, if anything did
        self.gift = b""  # what the other side gave; to be used only once ``trusted``
        self.who = b""  # the replica that the other side says it is; nothing proves it
        self.trusted = False
        self.failed = False  # this side has told the other one of an error
        self.turns = 0
        self.asked = False  # the responder has news
        self._role = role
        self._me = me
        self._doors = (Door(store, key), *older)
        self._capabilities = capabilities if stays else capabilities - {STAYS}
        self._mine = handshake.greeting(self._doors, self._capabilities, os.urandom(handshake.CHALLENGE_BYTES), gift)
        self._theirs: Greeting | None = None
        self._door: Door | None = None
        self._holding = holding
        self._pace = pace
        self._exchange = Exchange(holding, pace, leads=self.leads)
        self._number = 0
        self._proven = False  # this side has sent its proof
        self._first_turn = True
        self._steps = 0

    @property
    def leads(self) -> bool:
        """Whether this side opens the rounds."""
        return self._role is Role.INITIATOR

    @property
    def frame_bytes_max(self) -> int:
        """How large a frame of the other side may be at this moment."""
        return PEER_FRAME_BYTES_MAX if self.trusted else PEER_GREETING_BYTES_MAX

    @property
    def progress(self) -> int:
        """A number that grows whenever the session comes further; it does so a bounded number of times."""
        return self._steps + self._exchange.progress

    @property
    def moved(self) -> tuple[int, int]:
        """How many events have moved, and how many are to move as far as that is known."""
        done = self._exchange.sent + self._exchange.received.new + self._exchange.received.bodies
        return done, max(done, self._exchange.expected)

    # -- what goes out --------------------------------------------------------------------------------------------

    def opening(self) -> list[Frame]:
        """Return what to send before anything comes in: the initiator's greeting, nothing for a responder."""
        if not self.leads:
            return []
        return self._frames([(wire.HELLO, (self._mine.raw,)), *self._exchange.open()])

    def start(self) -> list[Frame]:
        """Return what begins a further round of a connection that stays; for the initiator, when it is settled."""
        assert self.leads
        assert self.settled is not None
        self.settled, self.asked = None, False
        self._exchange.over = None
        return self._frames(self._exchange.open())

    def news(self) -> list[Frame]:
        """Return what asks the initiator for a round; for the responder, at any time once trusted."""
        return self._frames([(wire.NEWS, ())])

    # -- what comes in --------------------------------------------------------------------------------------------

    def on(self, frames: Iterable[Frame]) -> list[Frame]:
        """Take frames in and return what to send; a whole turn once the other side's has ended.

        Never raises for what the other side sent. A Problem of this side is kept in ``problem``.
        """
        out: list[Frame] = []
        for frame in frames:
            if self.outcome is not None:
                break
            try:
                out += self._on(frame)
            except Garbled as error:
                out += self.garbled(str(error), frame.number)
            except Refused as error:
                out += self._fail(error.code, error.text, frame.number, f"refused: {error.text}")
            except Problem as problem:
                self.problem = problem
                out += self._fail("storage", "it cannot write or read at this moment", frame.number, str(problem))
        return out

    def garbled(self, what: str, number: int = 0) -> list[Frame]:
        """End the session because of what came in, and return what to tell of it."""
        return self._fail("protocol", what, number, f"the other side does not keep to the protocol: {what}")

    def lost(self, code: str, reason: str) -> None:
        """End the session because the connection has ended; all that was received stays."""
        if self.outcome is None:
            self.outcome = self._told(False, reason, code)

    def _on(self, frame: Frame) -> list[Frame]:
        if frame.kind == wire.ERROR:
            _, code, text = frame.fields
            self.outcome = self._told(False, f"the other side says: {_printable(text)}", _printable(code))
            return []
        if self._theirs is None:
            self._greeted(frame)
            return []
        if not self.trusted:
            return self._on_unproven(frame)
        if frame.kind == wire.NEWS and self.leads:
            self.asked = True
            return []
        if frame.kind == wire.END and not self.leads:
            self._on_end(*frame.fields)
            return []
        if frame.kind == wire.ROUND:
            self.settled = None
        self._exchange.take(frame)
        return self._turn() if frame.kind == wire.TURN else []

    def _greeted(self, frame: Frame) -> None:
        if frame.kind != wire.HELLO:
            raise Garbled("no greeting")
        self._theirs = handshake.read_greeting(frame.fields[0])
        first, second = self._greetings()
        self._door = handshake.agree(self._doors, first, second)
        self.gift = self._theirs.gift
        if PACKS in self._shared():
            self._exchange.pack()
        self._steps += 1

    def _on_unproven(self, frame: Frame) -> list[Frame]:
        if frame.kind == wire.PROOF:
            assert self._door is not None
            other = Role.RESPONDER if self.leads else Role.INITIATOR
            if not handshake.is_proof(frame.fields[0], self._door, other, *self._greetings()):
                raise Refused("key", "it could not prove that it has the key")
            self.trusted = True
            self.who = frame.fields[1] if len(frame.fields) > 1 else b""
            self._steps += 1
            return []
        if self.leads or not self._first_turn or frame.kind not in _UNPROVEN:
            raise Refused("key", "it sent no proof that it has the key")
        self._exchange.take(frame)
        if frame.kind != wire.TURN:
            return []
        self._first_turn = False
        return self._turn()

    def _on_end(self, converged: bool, events: int, total: bytes, stays: bool) -> None:
        digest = SetDigest(events, int.from_bytes(total, "big"))
        equal = converged and digest == self._exchange.told
        reason = "" if equal else "the sets still differ; the other side gave up"
        self._end(self._told(equal, reason, "" if equal else "differ"), stays=stays)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _turn(self) -> list[Frame]:
        self.turns += 1
        self._steps += 1
        said = self._exchange.turn()
        frames: list[Fields] = []
        if not self.leads and not self._proven:
            frames.append((wire.HELLO, (self._mine.raw,)))
        if not self._proven:
            frames.append((wire.PROOF, (self._proof(), *([self._me] if self.leads and self._me else []))))
            self._proven = True
        frames += said
        if self._exchange.over is None:
            return self._frames(frames)
        if not self.leads:
            return self._fail("stalled", self._exchange.reason, 0, self._exchange.reason)
        stays = STAYS in self._shared()
        told = self._exchange.told
        frames.append((wire.END, (self._exchange.over, told.events, told.total.to_bytes(32, "big"), stays)))
        code = "" if self._exchange.over else "differ"
        self._end(self._told(self._exchange.over, self._exchange.reason, code), stays=stays)
        return self._frames(frames)

    def _end(self, told: Outcome, *, stays: bool) -> None:
        if stays and STAYS in self._shared():
            self.settled = told
        else:
            self.outcome = told

    def _proof(self) -> bytes:
        assert self._door is not None
        return handshake.prove(self._door, self._role, *self._greetings())

    def _greetings(self) -> tuple[Greeting, Greeting]:
        assert self._theirs is not None
        return (self._mine, self._theirs) if self.leads else (self._theirs, self._mine)

    def _shared(self) -> frozenset[str]:
        return self._capabilities & (self._theirs.capabilities if self._theirs else frozenset())

    def _fail(self, code: str, text: str, number: int, reason: str) -> list[Frame]:
        self.outcome = self._told(False, reason, code)
        self.failed = True
        return self._frames([(wire.ERROR, (number, code, text[: wire.TEXT_CHARS_MAX]))])

    def _told(self, converged: bool, reason: str = "", code: str = "") -> Outcome:
        got = self._exchange.received
        if got.bad:
            spoilt = f"{got.bad} received events were not what they claim to be"
            reason = f"{reason}; {spoilt}" if reason else spoilt
        rounds, ahead = self._exchange.rounds, self._exchange.ahead
        return Outcome(converged, self._exchange.sent, got.new + got.bodies, got.bad, reason, code, rounds, ahead)

    def _frames(self, told: Iterable[Fields]) -> list[Frame]:
        frames = []
        for kind, fields in told:
            self._number += 1
            frames.append(Frame(kind, self._number, fields))
        return frames


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
