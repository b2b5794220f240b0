"""What two peers that trust each other say to become equal: heads of writers, then ranges, until the digests agree.

One side leads: it opens rounds and judges their end. Both answer everything that came in with the other's turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from memorize.ids import ID_BYTES
from memorize.limits import (
    PEER_EVENTS_BYTES,
    PEER_ITEMS_MAX,
    PEER_RANGES_BYTES,
    PEER_ROUNDS_MAX,
    PEER_TURN_BYTES,
    PEER_TURNS_MAX,
)
from memorize.sync import frontier, ranges, wire
from memorize.sync.outgoing import Fields, Outgoing
from memorize.sync.port import Envelope, Head, Holding, Received, SetDigest
from memorize.sync.wire import Frame, Garbled

# So few events after the heads of both sides go along with the first ranges; with more, these would only tell again
# what is on its way.
_FEW: Final = 2_000
_ROUNDS_IN_ALL: Final = 256
_HEAD_COST: Final = 64
_PIECE_STEP: Final = 1024


class Pace(NamedTuple):
    """How much goes into one frame and one turn."""

    frame_bytes: int = PEER_EVENTS_BYTES
    turn_bytes: int = PEER_TURN_BYTES
    ranges_bytes: int = PEER_RANGES_BYTES


class Exchange:
    """The state of one side. ``over``: None while it goes on, else whether both hold the same; ``reason`` why not."""

    def __init__(self, holding: Holding, pace: Pace, *, leads: bool) -> None:
        self.over: bool | None = None
        self.reason = ""
        self.received = Received()
        self.rounds = 0
        self.expected = 0
        self.ahead: frozenset[bytes] = frozenset()
        self.told = SetDigest(0, 0)  # what this side last said of itself
        self._holding = holding
        self._pace = pace
        self._leads = leads
        self._outgoing = Outgoing(holding, pace.frame_bytes)
        self._theirs = SetDigest(0, 0)
        self._their_more = False
        self._ranges: list[ranges.Range] = []
        self._pieces = bytearray()
        self._piece_bytes = 0
        self._items = 0
        self._mine = self._their_heads = frontier.NOTHING
        self._my_buckets = b""
        self._where: frozenset[int] | None = None
        self._due = False  # the other side opened a round, or told its heads, and has had no answer yet
        self._descended = False
        self._mark: tuple[SetDigest, SetDigest] | None = None
        self._fruitless = 0
        self._still = 0
        self._progress_then = 0
        self._on: dict[int, Callable[..., None]] = {
            wire.ROUND: self._on_round,
            wire.HEADS: self._on_heads,
            wire.RANGES: self._on_ranges,
            wire.WANT: self._on_want,
            wire.EVENTS: self._on_events,
            wire.PACKED: self._on_packed,
            wire.PIECE: self._on_piece,
            wire.TURN: self._on_turn,
        }

    def pack(self) -> None:
        """Pack events from now on: the other side can unpack them."""
        self._outgoing.packed = True

    @property
    def sent(self) -> int:
        """How many events were put into frames."""
        return self._outgoing.sent

    @property
    def progress(self) -> int:
        """A number that grows with what changes something on one side, as far as this side can tell; bounded."""
        got = self.received.new + self.received.bodies
        given = min(self.sent, self.told.events + self._theirs.events)
        # Pieces of one event may take many turns; no event is of more than these.
        pieces = (min(self._piece_bytes, _most(got)) + min(self._outgoing.piece_bytes, _most(given))) // _PIECE_STEP
        return got + given + pieces

    # -- what comes in --------------------------------------------------------------------------------------------

    def take(self, frame: Frame) -> None:
        """Take a frame of the other side in. Raises Garbled, and what ``Holding.receive`` raises."""
        on = self._on.get(frame.kind)
        if on is None:
            raise Garbled(f"a frame of kind {frame.kind} in the middle of an exchange")
        on(*frame.fields)

    def _count(self, items: int) -> None:
        self._items += items
        if self._items > PEER_ITEMS_MAX:
            raise Garbled("more in one turn than anybody needs")

    def _on_round(self, events: int, total: bytes, buckets: bytes) -> None:
        self._count(wire.BUCKETS)
        self._theirs = SetDigest(events, int.from_bytes(total, "big"))
        if not self._leads:
            self._begin()
        self._where = frontier.differing(self._my_buckets, buckets)
        self._their_heads = frontier.NOTHING
        self._due = True

    def _on_heads(self, heads: Sequence[Any], torn: Sequence[bytes]) -> None:
        self._count(len(heads) + len(torn))
        merged = {**self._their_heads.heads, **{head[0]: Head(*head) for head in heads}}
        self._their_heads = frontier.Frontier(merged, self._their_heads.torn.union(torn))
        self._due = True

    def _on_ranges(self, lamport: int, identity: bytes, items: Sequence[Any]) -> None:
        self._count(len(items) + sum(len(told) for _, _, told in items if isinstance(told, list)))
        self._ranges.extend(ranges.from_fields(lamport, identity, items))

    def _on_want(self, ids: Sequence[bytes]) -> None:
        self._count(len(ids))
        self._outgoing.ids(ids)

    def _on_events(self, records: Sequence[Any]) -> None:
        self._receive([wire.envelope_of(record) for record in records])

    def _on_packed(self, data: bytes) -> None:
        self._on_events(wire.unpack_records(data))

    def _on_piece(self, data: bytes, more: bool) -> None:
        self._pieces += data
        self._piece_bytes += len(data)
        if len(self._pieces) > wire.RECORD_BYTES_MAX:
            raise Garbled("an event larger than any event")
        if not more:
            whole = bytes(self._pieces)
            self._pieces.clear()
            self._receive([wire.envelope_of(wire.unpack_record(whole))])

    def _receive(self, envelopes: list[Envelope]) -> None:
        self.received = self.received.plus(self._holding.receive(envelopes))

    def _on_turn(self, more: bool, events: int, total: bytes) -> None:
        self._their_more = more
        self._theirs = SetDigest(events, int.from_bytes(total, "big"))
        self._items = 0

    # -- what goes out --------------------------------------------------------------------------------------------

    def open(self) -> list[Fields]:
        """Begin a round and return what to say; for the one who leads."""
        self._begin()
        return [self._round(), self._turn()]

    def turn(self) -> list[Fields]:
        """Return what to say after the other side's turn; empty when the leader finds that it is over."""
        said = ranges.answer(self._holding, self._ranges, self._pace.ranges_bytes)
        self._ranges = []
        for rest in said.rests:
            self._outgoing.rest(rest)
        self.expected += len(said.wants)
        heads, descend = self._heads_due() if self._due else ([], False)
        if self._leads and not heads and not said.ranges and not said.wants and not self._their_more:
            if not self._outgoing and self._is_over(descend):
                return self.open() if self.over is None else []
            descend = descend or not self._outgoing
        if descend:
            self._descended = True
            said = said._replace(ranges=ranges.first(self._holding))
        frames = [*heads, *self._wants(said.wants), *self._outgoing.frames(self._pace.turn_bytes)]
        frames += self._told(said.ranges)
        if self._has_stalled():
            # What still comes may only be what came before by another way.
            self.over = self._holding.digest() == self._theirs
            self.reason = "" if self.over else "nothing came of many turns"
            return []
        return [*frames, self._turn()]

    def _begin(self) -> None:
        self.rounds += 1
        self._mine = frontier.frontier(self._holding)
        self._my_buckets = frontier.buckets(self._mine)
        self._descended = False

    def _is_over(self, asked: bool) -> bool:
        """Judge, with nothing left to say in this round: whether it is over, or another round is to begin."""
        mine = self._holding.digest()
        if mine == self._theirs:
            self.over, self.told = True, mine
            return True
        if asked or not self._descended:
            return False
        self._fruitless = self._fruitless + 1 if self._mark == (mine, self._theirs) else 0
        self._mark = (mine, self._theirs)
        if self._fruitless >= PEER_ROUNDS_MAX or self.rounds >= _ROUNDS_IN_ALL:
            self.over, self.reason = False, f"{self._fruitless} rounds changed nothing"
        return True

    def _heads_due(self) -> tuple[list[Fields], bool]:
        """Return the frames that compare heads, and whether ranges are to begin without waiting for what they bring."""
        self._due = False
        where = self._where or frozenset()
        mine = frontier.within(self._mine, where)
        if not self._leads and self._their_heads is frontier.NOTHING:
            return [self._round(), *(self._heads(mine) if where else [])], False
        if self._leads and self._theirs == self._holding.digest():
            return [], False
        after = frontier.lacking(mine, self._their_heads)
        coming = frontier.lacking(self._their_heads, mine)
        for head in after:
            self._outgoing.after(head)
        sending, getting = frontier.count(mine, after), frontier.count(self._their_heads, coming)
        self.expected += sending + getting
        self.ahead |= self._holding.own(frontier.ahead(mine, self._their_heads))
        if not self._leads:
            return [], False
        uneven = self._theirs.events + sending != self._holding.digest().events + getting
        settled = not uneven and not frontier.is_doubtful(mine, self._their_heads) and sending + getting > 0
        return self._heads(mine) if where else [], not settled and sending + getting <= _FEW

    def _has_stalled(self) -> bool:
        self._still = self._still + 1 if self.progress == self._progress_then else 0
        self._progress_then = self.progress
        return self._still > PEER_TURNS_MAX

    # -- frames ---------------------------------------------------------------------------------------------------

    def _round(self) -> Fields:
        self.told = self._holding.digest()
        return wire.ROUND, (*_plain(self.told), self._my_buckets)

    def _turn(self) -> Fields:
        self.told = self._holding.digest()
        return wire.TURN, (bool(self._outgoing), *_plain(self.told))

    def _heads(self, mine: frontier.Frontier) -> list[Fields]:
        room = max(1, self._pace.frame_bytes // _HEAD_COST)
        heads, torn = sorted(mine.heads.values()), sorted(mine.torn)
        parts = range(0, max(len(heads), len(torn), 1), room)
        return [(wire.HEADS, (heads[at : at + room], torn[at : at + room])) for at in parts]

    def _wants(self, ids: list[bytes]) -> list[Fields]:
        room = max(1, self._pace.frame_bytes // (ID_BYTES + 2))
        return [(wire.WANT, (ids[at : at + room],)) for at in range(0, len(ids), room)]

    def _told(self, told: Sequence[ranges.Range]) -> list[Fields]:
        return [(wire.RANGES, fields) for fields in ranges.to_frames(told, self._pace.frame_bytes)]


def _most(events: int) -> int:
    return wire.RECORD_BYTES_MAX * (events + 1)


def _plain(digest: SetDigest) -> tuple[int, bytes]:
    return digest.events, digest.total.to_bytes(ID_BYTES, "big")
