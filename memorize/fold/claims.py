"""Which claims are accepted, and what that means for the events that consolidations made.

Claims of one person are taken one after the other; a claim is accepted when it shares no source with an accepted one.
The order is (lamport, id), but for redos:

- A claim that a redo names is refused, whatever becomes of the redo: the redo is a person's word (or the program's)
  that the earlier reading is not wanted, just as a retraction is. Nothing is lost by that, for sources that no
  accepted claim names are consolidated again.
- A redo stands in the place of the earliest claim that it refuses, directly or through other redos. Else a claim that
  lost against the earlier one would come up between the two and win against the redo.
- Of several claims in one place the one that refuses the most claims goes first, so a redo of a redo goes before a
  rival redo that it never heard of; then (lamport, id) again.

So in a chain of redos only the last can be accepted, and redos of one claim that don't know of each other are rivals
like any two claims. A ring of redos (possible only through aliases) refuses all its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from memorize.fold.intake import Claim

# How an event stands: made by a person, or by a consolidation whose claim is accepted, or by one without such a claim.
OWN: Final = 0
ACCEPTED: Final = 1
SHUT: Final = 2


class Claims(NamedTuple):
    """The verdict on every claim, and which claims list an event (by person of the claim and id of the event)."""

    accepted: dict[bytes, bool]
    listing: dict[tuple[bytes, bytes], list[Claim]]

    def standing(self, identity: bytes, person: bytes, window: str) -> int:
        """Tell how an event of this person with this window nonce ("" for none) stands.

        An event is made by a consolidation when it carries a window or a claim of its person lists it. It has effect
        only while an accepted claim with that window lists it; one without a window (it may have gone with the body)
        needs any accepted claim that lists it.
        """
        if not window and not self.listing:
            return OWN
        found = self.listing.get((person, identity))
        if not found:
            return SHUT if window else OWN
        for claim in found:
            if self.accepted[claim.id] and window in ("", claim.window):
                return ACCEPTED
        return SHUT


def judge(claims: Iterable[Claim]) -> Claims:
    """Accept or refuse every claim."""
    known = {claim.id: claim for claim in claims}
    redone = {claim.id: _redone(known, claim) for claim in known.values()}
    refused = {identity for found in redone.values() for identity in found}
    accepted: dict[bytes, bool] = {}
    taken: set[tuple[bytes, bytes]] = set()
    for claim in sorted(known.values(), key=lambda claim: _place(known, redone, claim)):
        sources = {(claim.person, source) for source in claim.sources}
        accepted[claim.id] = claim.id not in refused and taken.isdisjoint(sources)
        if accepted[claim.id]:
            taken |= sources
    listing: dict[tuple[bytes, bytes], list[Claim]] = {}
    for claim in known.values():
        for identity in claim.events:
            listing.setdefault((claim.person, identity), []).append(claim)
    return Claims(accepted, listing)


def _redone(known: Mapping[bytes, Claim], claim: Claim) -> frozenset[bytes]:
    """Return the earlier claims that this one names itself."""
    return frozenset(
        dep for dep in claim.deps if dep != claim.id and dep in known and known[dep].person == claim.person
    )


def _place(
    known: Mapping[bytes, Claim], redone: Mapping[bytes, frozenset[bytes]], claim: Claim
) -> tuple[tuple[int, bytes], int, tuple[int, bytes]]:
    """Return where a claim stands: the earliest place it takes over, how many it refuses, and its own order."""
    own = (claim.lamport, claim.id)
    if not redone[claim.id]:
        return own, 0, own
    reached: set[bytes] = set()
    waiting = [claim.id]
    while waiting:
        for identity in redone[waiting.pop()] - reached:
            reached.add(identity)
            waiting.append(identity)
    reached.discard(claim.id)
    place = min([own, *((known[identity].lamport, identity) for identity in reached)])
    return place, -len(reached), own
