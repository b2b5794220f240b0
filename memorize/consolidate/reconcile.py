"""What becomes of new memories beside those that stand: judged in pairs, and the batch of events that follows.

Candidates are found by words; what they mean to each other a model says (``judge``), or nobody: without a model only
plain repetitions and values that took each other's place act (``updates``). A verdict is remembered as an event, so
that no pair is paid for twice. Nothing is ever deleted: the loser is superseded, with the edge kept.

Pure but for the two ports: ``Memory`` finds what stands, ``Model`` is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from memorize import model
from memorize.consolidate import judge, trust, updates
from memorize.consolidate.judge import CONTRADICTS, REFINES, REPLACES, SAME, Pair, Side, Verdict
from memorize.consolidate.port import Model, ModelFailed
from memorize.consolidate.spend import CapReached
from memorize.consolidate.windows import Found, Window, said_at
from memorize.limits import DEPS_MAX
from memorize.model import REVIEW, Draft, Payload

# Episodes are told, not held to be true; they contradict nothing.
EPISODES: Final = ("summary", "progress")
# So many candidates of one new memory, and so many pairs of one window, are judged; the rest is listed as unjudged.
CANDIDATES_MAX: Final = 5
PAIRS_MAX: Final = 24
# Texts that share less are not worth a question, unless they speak of the same thing in the same way.
ALIKE_MIN: Final = 0.34
# To be listed for a person, or judged without a cause, two memories must have this much in common.
LISTED_MIN: Final = 0.6
_MEMBERS_MAX: Final = DEPS_MAX - 1


class Memory(Protocol):
    """What stands already. Every method may look into the index and the log."""

    def near(self, found: Found) -> Sequence[Side]:
        """Return live memories of the same scope that share words with a new one, the nearest first."""
        ...

    def side(self, identity: bytes) -> Side | None:
        """Return a memory by its id, None when it is not known."""
        ...

    def verdict(self, found: Found, side: Side) -> str:
        """Return the verdict once given on these two texts, seen from the new one; "" when there is none."""
        ...


class Outcome(NamedTuple):
    """What follows from a window. ``found`` are the memories to form; ``drafts`` follow them in the batch.

    ``judged`` counts the verdicts that were paid for, ``unjudged`` the pairs that look alike and that nobody judged;
    ``failed`` is set when the model gave no answer (the memories stand all the same, side by side).
    """

    found: tuple[Found, ...]
    drafts: tuple[Draft, ...]
    judged: int = 0
    unjudged: int = 0
    failed: ModelFailed | CapReached | None = None


def reconcile(
    window: Window,
    found: Sequence[Found],
    memory: Memory,
    asked: Model | None,
    nonce: bytes,
    *,
    shown: frozenset[bytes] = frozenset(),
    deadline_s: float = 60.0,
    model_name: str | None = None,
) -> Outcome:
    """Return what the window's memories do to those that stand.

    ``asked`` None: no model is there, or none may be asked. ``shown`` are the memories that the session was told: what
    it merely repeats of them makes nothing younger.
    """
    kept = [one for one in found if not _echo(one, memory, shown)]
    sides = [_new(window, number, one) for number, one in enumerate(kept)]
    settled = [verdict for side, one in zip(sides, kept, strict=True) for verdict in _offered(side, one, memory)]
    pairs = _pairs(kept, sides, memory, {(one.pair.new.ref, one.pair.old.ref) for one in settled})
    open_ones: list[Pair] = []
    for pair, remembered in pairs:
        # Only a dispute has to be said again of the new event: the fold reads nothing into the other verdicts.
        known = Verdict(pair, remembered, counts=remembered == CONTRADICTS) if remembered else None
        verdict = judge.by_rule(pair, by_words=asked is None) or known
        if verdict is not None:
            settled.append(verdict)
        elif not updates.different_values(pair.old.stated, pair.new.stated):
            open_ones.append(pair)
    open_ones.sort(key=lambda pair: -pair.alike)
    paid: list[Verdict] = []
    failed: ModelFailed | CapReached | None = None
    if asked is not None and open_ones:
        try:
            paid = judge.ask(asked, open_ones[:PAIRS_MAX], "judge", deadline_s, model_name)
        except (ModelFailed, CapReached) as error:
            failed = error
    drafts = plan([*settled, *paid], nonce.hex(), len(kept), shown)
    return Outcome(tuple(kept), tuple(drafts), len(paid), len(open_ones) - len(paid), failed)


def _echo(found: Found, memory: Memory, shown: frozenset[bytes]) -> bool:
    """Tell whether a session only repeats, word for word, what it was told: that is no second source."""
    if found.trust == "user" or not shown:
        return False
    return any(shown.intersection(side.members) and side.text == found.text for side in memory.near(found))


def _new(window: Window, number: int, found: Found) -> Side:
    return Side(
        number, (number,), found.kind, found.scope, found.text, found.trust, said_at(window, found),
        found.subject, found.predicate, found.object, found.single,
    )  # fmt: skip


def _offered(side: Side, found: Found, memory: Memory) -> Iterable[Verdict]:
    """Return the verdicts that the extractor gave itself on memories that it was offered."""
    for identity in found.replaces:
        old = memory.side(identity)
        if old is not None:
            yield Verdict(Pair(side, old, 1.0), REPLACES)


def _pairs(
    found: Sequence[Found], sides: Sequence[Side], memory: Memory, settled: set[tuple[int | bytes, int | bytes]]
) -> list[tuple[Pair, str]]:
    """Return the pairs to be looked at, each with the verdict that was given on it before ("" for none)."""
    pairs: list[tuple[Pair, str]] = []
    for one, side in zip(found, sides, strict=True):
        if one.kind in EPISODES or REVIEW in one.tags:
            continue
        near = [old for old in memory.near(one) if old.kind not in EPISODES and (side.ref, old.ref) not in settled]
        for old in near[:CANDIDATES_MAX]:
            if old.kind == one.kind and model.text_key(old.text) == model.text_key(one.text):
                continue  # one text group: the fold shows them as one
            if (alike := _alike(side, old)) >= ALIKE_MIN:
                pairs.append((Pair(side, old, alike), memory.verdict(one, old)))
        for earlier, other in zip(found[: int(side.ref)], sides, strict=False):
            is_rival = earlier.kind not in EPISODES and earlier.scope == one.scope and REVIEW not in earlier.tags
            if is_rival and (alike := _alike(side, other)) >= ALIKE_MIN:
                pairs.append((Pair(side, other, alike), ""))
    return pairs


def _alike(one: Side, other: Side) -> float:
    """Return how much two memories have to do with each other, 1 for statements of one subject and predicate."""
    about = [(model.text_key(side.subject), model.text_key(side.predicate)) for side in (one, other)]
    return 1.0 if one.predicate and about[0] == about[1] else updates.likeness(one.text, other.text)


def plan(verdicts: Iterable[Verdict], window: str, first: int, shown: frozenset[bytes] = frozenset()) -> list[Draft]:
    """Return the events that verdicts lead to, with ordinals from ``first`` on; ``window`` is "" for a person's own.

    The later of two wins, unless it is the less trusted one or nobody knows which is later: that is a dispute.
    """
    said: Payload = {"window": window} if window else {}
    made: list[tuple[str, Payload, tuple[bytes | int, ...]]] = []
    for verdict in verdicts:
        new, old, word = verdict.pair.new, verdict.pair.old, verdict.word
        later, earlier = (old, new) if new.at_ms < old.at_ms else (new, old)
        is_clear = later.at_ms > earlier.at_ms and trust.rank(later.trust) >= trust.rank(earlier.trust)
        if word == REPLACES and not is_clear:
            word = CONTRADICTS
        if verdict.counts:
            judged = word if word == CONTRADICTS and not is_clear else verdict.word
            made.append(
                (
                    model.MEMORY_JUDGED,
                    {"verdict": judged, **said},
                    (new.ref, old.ref, *verdict.earlier[: _MEMBERS_MAX - 1]),
                )
            )
        if word == SAME:
            made += _same(new, old, said, shown)
        elif word == REFINES and trust.rank(new.trust) >= trust.rank(old.trust):
            made.append(_supersedes(new, old, REFINES, said))
        elif word in (REPLACES, CONTRADICTS) and is_clear:
            made.append(_supersedes(later, earlier, verdict.word, said))
    unique = list(dict.fromkeys((kind, tuple(payload.items()), deps) for kind, payload, deps in made))
    return [Draft(kind, dict(fields), first + number, deps) for number, (kind, fields, deps) in enumerate(unique)]


_Made = tuple[str, Payload, tuple[bytes | int, ...]]


def _same(new: Side, old: Side, said: Payload, shown: frozenset[bytes]) -> list[_Made]:
    """Let the memory that stood stay, unless the new one is better vouched for, and confirm it where that counts."""
    if trust.rank(new.trust) > trust.rank(old.trust):
        return [_supersedes(new, old, SAME, said)]
    made = [_supersedes(old, new, SAME, said)]
    evidence = new.trust == "external" and not shown.intersection(old.members)
    if (new.trust == "user" or evidence) and isinstance(old.ref, bytes):
        made.append((model.MEMORY_CONFIRMED, said, old.members[:DEPS_MAX]))
    return made


def _supersedes(new: Side, old: Side, reason: str, said: Payload) -> _Made:
    return model.MEMORY_SUPERSEDED, {"reason": reason, **said}, (new.ref, *old.members[:_MEMBERS_MAX])


def look_alikes(sides: Sequence[Side], most: int) -> list[Pair]:
    """Return the pairs among standing memories that may be at odds or say the same, the likest first.

    What plainly names different values of one thing is left out. Cost grows with the pairs that share words.
    """
    usable = [side for side in sides if side.kind not in EPISODES]
    by_term: dict[str, list[int]] = {}
    for number, side in enumerate(usable):
        for term in updates.terms(side.text):
            by_term.setdefault(term, []).append(number)
    common = max(20, len(usable) // 5)
    shared: dict[tuple[int, int], int] = {}
    for numbers in by_term.values():
        if len(numbers) <= common:
            for place, one in enumerate(numbers):
                for other in numbers[place + 1 :]:
                    shared[one, other] = shared.get((one, other), 0) + 1
    found = []
    for one, other in shared:
        older, newer = sorted((usable[one], usable[other]), key=lambda side: (side.at_ms, str(side.ref)))
        if (older.scope, older.project) != (newer.scope, newer.project):
            continue
        alike = _alike(newer, older)
        if alike >= LISTED_MIN and not updates.different_values(older.stated, newer.stated):
            found.append(Pair(newer, older, alike))
    found.sort(key=lambda pair: (-pair.alike, str(pair.new.ref), str(pair.old.ref)))
    return found[:most]
