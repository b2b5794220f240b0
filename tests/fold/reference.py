"""A second fold, written from the rules and not from the first one: plain, slow, by brute force.

It answers every question by looking at all events again, knows no index and no early exit, and closes relations by
repetition. It must give the same state, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memorize.fold import MemoryState, Shown, State, group_key
from memorize.model import Event

Pairs = set[tuple[bytes, bytes]]


def _text(value: Any) -> bool:
    return type(value) is str


def _word(value: Any) -> bool:
    return type(value) is str and value != ""


def _between(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in allowed


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and all(check(item) for item in value)


def _id(value: Any) -> bool:
    return type(value) is bytes and value != b""


# field -> (needed, check); None counts as left out
_SHAPES: dict[str, dict[str, tuple[bool, Callable[[Any], bool]]]] = {
    "memory.formed": {
        "kind": (True, _word),
        "text": (True, _word),
        "text_key": (True, _word),
        "scope": (True, _one_of("project", "personal")),
        "importance": (True, _between(1, 10)),
        "confidence": (False, _between(0, 100)),
        "project": (False, _text),
        "branch": (False, _text),
        "trust": (False, _one_of("", "external", "agent", "user")),
        "paths": (False, _all(_text)),
        "tags": (False, _all(_text)),
        "triggers": (False, _all(_text)),
        "subject": (False, _text),
        "predicate": (False, _text),
        "object": (False, _text),
        "single": (False, lambda value: type(value) is bool),
        "obsolete_when": (False, _text),
        "expires_at": (False, _between(0, 2**53)),
        "sources": (False, _all(_id)),
        "window": (False, _text),
    },
    "window.consolidated": {"window": (True, _word), "sources": (True, _all(_id)), "events": (False, _all(_id))},
    "memory.superseded": {"window": (False, _text)},
    "memory.confirmed": {"window": (False, _text)},
    "memory.judged": {
        "window": (False, _text),
        "verdict": (True, _one_of("same", "refines", "replaces", "contradicts", "unrelated")),
    },
    "memory.retracted": {},
    "memory.restored": {},
    "memory.pinned": {},
    "memory.unpinned": {},
    "project.unlinked": {},
    "project.linked": {"a": (True, _word), "b": (True, _word)},
    "erase.requested": {"ids": (True, _all(_id))},
}
_NEVER_ERASED = ("window.consolidated", "erase.requested", "erase.acknowledged", "device.hello")


def well_formed(kind: str, payload: Any) -> bool:
    if not isinstance(payload, Mapping):
        return False
    for field, (needed, check) in _SHAPES.get(kind, {}).items():
        value = payload.get(field)
        if value is None:
            if needed:
                return False
        elif not check(value):
            return False
    return not (kind == "memory.formed" and payload["scope"] == "project" and not payload.get("project"))


def close(pairs: Pairs) -> Pairs:
    """Return the transitive closure."""
    closed = set(pairs)
    while True:
        more = {(a, d) for a, b in closed for c, d in closed if b == c} - closed
        if not more:
            return closed
        closed |= more


class Reference:
    """All events of one set, and every question that the rules ask about them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events: dict[bytes, Event] = {}
        for event in sorted(events, key=lambda one: (one.payload is None and not one.malformed, one.payload is None)):
            self.events.setdefault(event.id, event)
        self.canonical = {one: self._canonical(one) for one in self.events}
        self.erasers = {one: self._erasers(one) for one in self.events}
        for one in [one for one in self.events if self._is_unknown(one)]:
            del self.events[one], self.erasers[one]
        self.canonical = {one: self._canonical(one) for one in self.events}
        self.bad = {one for one in self.events if self._is_bad(one)}
        self.accepted = self._accept()
        self.memories = self.of("memory.formed")
        self.cancelled = self._cancel("memory.restored", ("memory.retracted", "memory.superseded"))
        self.unpinned = self._cancel("memory.unpinned", ("memory.pinned",))
        self.unlinked = self._cancel("project.unlinked", ("project.linked",))
        self.edges = self._edges()
        self.obeyed = self._obeyed()

    # what counts

    def _canonical(self, one: bytes) -> bytes:
        header = self.events[one].header
        if header.nonce == b"":
            return one
        mine = (header.person, header.nonce, header.ordinal, header.kind)
        twins = []
        for other in self.events.values():
            theirs = (other.header.person, other.header.nonce, other.header.ordinal, other.header.kind)
            if mine == theirs:
                twins.append((other.header.lamport, other.id))
        return min(twins)[1]

    def canon(self, one: bytes) -> bytes:
        return self.canonical.get(one, one)

    def _erasers(self, one: bytes) -> set[bytes]:
        target = self.events[one]
        if target.header.kind in _NEVER_ERASED:
            return set()
        found = set()
        for event in self.events.values():
            if event.header.kind == "erase.requested" and event.header.person == target.header.person:
                if event.malformed or not well_formed("erase.requested", event.payload):
                    continue
                if self.canon(one) in [self.canon(named) for named in (event.payload or {})["ids"]]:
                    found.add(event.id)
        return found

    def _is_unknown(self, one: bytes) -> bool:
        """Only the header of it has arrived, and nobody erased it."""
        event = self.events[one]
        return event.payload is None and not event.malformed and not event.header.scope_key and not self.erasers[one]

    def _is_bad(self, one: bytes) -> bool:
        event = self.events[one]
        if self.erasers[one]:
            return False
        if event.malformed:
            return True
        return event.payload is not None and not well_formed(event.header.kind, event.payload)

    def payload(self, one: bytes) -> Mapping[str, Any] | None:
        return None if self.erasers[one] else self.events[one].payload

    def of(self, kind: str) -> list[bytes]:
        """Return the events of a kind that count."""
        return [
            one
            for one, event in self.events.items()
            if event.header.kind == kind and self.canonical[one] == one and one not in self.bad
        ]

    def deps(self, one: bytes) -> list[bytes]:
        return [self.canon(dep) for dep in self.events[one].header.deps]

    def person(self, one: bytes) -> bytes:
        return self.events[one].header.person

    def order(self, one: bytes) -> tuple[int, bytes]:
        return (self.events[one].header.lamport, one)

    # claims

    def claims(self) -> list[bytes]:
        return [one for one in self.of("window.consolidated") if self.payload(one) is not None]

    def listed(self, claim: bytes, field: str) -> set[bytes]:
        payload = self.payload(claim)
        assert payload is not None
        return {self.canon(one) for one in payload.get(field) or ()}

    def _accept(self) -> dict[bytes, bool]:
        claims = self.claims()
        named = {
            (redo, earlier)
            for redo in claims
            for earlier in claims
            if redo != earlier and earlier in self.deps(redo) and self.person(redo) == self.person(earlier)
        }
        refused = {earlier for _, earlier in named}
        closed = close(named)
        standing = []
        for claim in claims:
            below = {earlier for redo, earlier in closed if redo == claim and earlier != claim}
            place = min(self.order(one) for one in below | {claim})
            standing.append((place, -len(below), self.order(claim), claim))
        verdict: dict[bytes, bool] = {}
        for _, _, _, claim in sorted(standing):
            rivals = [
                other
                for other, accepted in verdict.items()
                if accepted
                and self.person(other) == self.person(claim)
                and self.listed(other, "sources") & self.listed(claim, "sources")
            ]
            verdict[claim] = claim not in refused and not rivals
        return verdict

    def standing(self, one: bytes) -> str:
        """Return who made the event: "person", or a consolidation that is "accepted" or "shut"."""
        window = (self.payload(one) or {}).get("window") or ""
        listing = [c for c in self.claims() if self.person(c) == self.person(one) and one in self.listed(c, "events")]
        if not window and not listing:
            return "person"
        for claim in listing:
            said = self.payload(claim)
            assert said is not None
            if self.accepted[claim] and (window == "" or said["window"] == window):
                return "accepted"
        return "shut"

    # what is in force

    def _cancel(self, by: str, kinds: tuple[str, ...]) -> set[bytes]:
        targets = [one for kind in kinds for one in self.of(kind)]
        return {t for t in targets for act in self.of(by) if t in self.deps(act) and self.person(t) == self.person(act)}

    def edits(self) -> list[bytes]:
        return [one for one in self.of("memory.superseded") if one not in self.cancelled]

    def retractions(self, memory: bytes, own: bool) -> set[bytes]:
        return {
            act
            for act in self.of("memory.retracted")
            if act not in self.cancelled
            and memory in self.deps(act)
            and (self.person(act) == self.person(memory)) == own
        }

    def pins(self, memory: bytes) -> set[bytes]:
        return {
            act
            for act in self.of("memory.pinned")
            if act not in self.unpinned and memory in self.deps(act) and self.person(act) == self.person(memory)
        }

    def confirmations(self, memory: bytes) -> set[bytes]:
        return {
            act
            for act in self.of("memory.confirmed")
            if self.standing(act) != "shut" and memory in self.deps(act) and self.person(act) == self.person(memory)
        }

    def shadowed(self, memory: bytes) -> bool:
        if self.standing(memory) != "shut":
            return False
        if self.pins(memory) or any(self.standing(act) == "person" for act in self.confirmations(memory)):
            return False
        edited = [
            act
            for act in self.edits()
            if self.standing(act) == "person"
            and memory in self.deps(act)[1:]
            and self.person(act) == self.person(memory)
        ]
        return not edited

    def _edges(self) -> set[tuple[bytes, bytes, bytes]]:
        """Return (new, old, event) of every counting edge, of whatever person."""
        found = set()
        for act in self.edits():
            deps = self.deps(act)
            if self.standing(act) == "shut" or not deps or deps[0] not in self.memories:
                continue
            new = deps[0]
            if self.retractions(new, own=True) or self.shadowed(new):
                continue
            found |= {(new, old, act) for old in deps[1:] if old in self.memories and old != new}
        return found

    def importance(self, memory: bytes) -> int:
        payload = self.payload(memory)
        return 0 if payload is None else payload["importance"]

    def _obeyed(self) -> set[tuple[bytes, bytes, bytes]]:
        own = {edge for edge in self.edges if self.person(edge[2]) == self.person(edge[1])}
        closed = close({(new, old) for new, old, _ in own})

        def ring(one: bytes) -> set[bytes]:
            return {one} | {other for other in self.memories if (one, other) in closed and (other, one) in closed}

        def deaf(new: bytes, old: bytes) -> bool:
            return new in ring(old) and old == max(ring(old), key=lambda one: (self.importance(one), one))

        return {(new, old, act) for new, old, act in own if not deaf(new, old)}

    # what is seen

    def group(self, memory: bytes) -> bytes:
        said = self.payload(memory)
        if said is None:
            return b""
        return group_key(self.person(memory), said["scope"], said.get("project") or "", said["kind"], said["text_key"])

    def memory(self, one: bytes) -> MemoryState:
        said = self.payload(one)
        edges = {(new, act) for new, old, act in self.obeyed if old == one}
        retracted, shadowed = self.retractions(one, own=True), self.shadowed(one)
        by = self.erasers[one] | retracted | {act for _, act in edges}
        if shadowed:
            by |= {c for c in self.claims() if self.person(c) == self.person(one) and one in self.listed(c, "events")}
        foreign = {act for _, old, act in self.edges if old == one and self.person(act) != self.person(one)}
        status = "live"
        for name, holds in (
            ("superseded", edges),
            ("shadowed", shadowed),
            ("retracted", retracted),
            ("erased", said is None),
        ):
            if holds:
                status = name
        header = self.events[one].header
        return MemoryState(
            id=one,
            person=header.person,
            lamport=header.lamport,
            wall=clamped(header.wall),
            status=status,
            by=tuple(sorted(by)),
            heirs=tuple(sorted({new for new, _ in edges})),
            contested=tuple(sorted(foreign | self.retractions(one, own=False))),
            group=self.group(one),
            **fields(said),
        )

    def reach(self, start: Iterable[bytes]) -> set[bytes]:
        """Return what the given memories replaced, directly or through others."""
        replaced = {(new, old) for new, old, _ in self.obeyed if self.person(new) == self.person(old)}
        closed = close(replaced)
        return {old for new, old in closed if new in set(start)}

    def show(self, key: bytes, states: Mapping[bytes, MemoryState], speakers: Mapping[bytes, bytes]) -> Shown:
        members = sorted(one for one, state in states.items() if state.group == key)
        live = [one for one in members if states[one].status == "live"]
        speaker = states[speakers[key]]
        counted = set(live) | self.reach(live)
        confirmations = {act for one in counted for act in self.confirmations(one)}
        walls = [self.events[one].header.wall for one in (*live, *confirmations)]
        sources = list(speaker.sources)
        for one in sorted(live, key=self.order):
            sources += [source for source in states[one].sources if source not in sources]
        said = fields(self.payload(speaker.id))
        del said["window"]
        said["sources"] = tuple(sources)
        return Shown(
            key=key,
            id=speaker.id,
            person=speaker.person,
            lamport=speaker.lamport,
            members=tuple(members),
            live=tuple(live),
            recency=max(clamped(wall) for wall in walls),
            pinned=any(self.pins(one) for one in counted),
            confirmations=len(confirmations),
            disputed=tuple(sorted(self.disputed(key, states, speakers))),
            contested=tuple(sorted({act for one in live for act in states[one].contested})),
            supersedes=tuple(sorted(self.reach(members) - set(members))),
            **said,
        )

    def disputed(self, key: bytes, states: Mapping[bytes, MemoryState], speakers: Mapping[bytes, bytes]) -> set[bytes]:
        verdicts = [one for one in self.of("memory.judged") if self.standing(one) != "shut" and self.payload(one)]
        found = set()
        for verdict in verdicts:
            said = self.payload(verdict)
            taken_back = [
                later
                for later in verdicts
                if later != verdict and verdict in self.deps(later)[2:] and self.person(later) == self.person(verdict)
            ]
            pair = self.deps(verdict)[:2]
            if said is None or said["verdict"] != "contradicts" or taken_back or len(pair) < 2:
                continue
            if any(one not in states or states[one].status != "live" for one in pair):
                continue
            groups = [states[one].group for one in pair]
            if key in groups and groups[0] != groups[1]:
                other = groups[1] if groups[0] == key else groups[0]
                found.add(speakers[other])
        return found

    def projects(self) -> dict[str, str]:
        pairs: set[tuple[str, str]] = set()
        for link in self.of("project.linked"):
            said = self.payload(link)
            if said is not None and link not in self.unlinked and said["a"] != said["b"]:
                pairs |= {(said["a"], said["b"]), (said["b"], said["a"])}
        joined = {key: {key} for pair in pairs for key in pair}
        for _ in joined:
            for one, other in pairs:
                joined[one] |= joined[other]
        return {key: min(keys) for key, keys in joined.items()}

    def state(self) -> State:
        states = {one: self.memory(one) for one in self.memories}
        speakers: dict[bytes, bytes] = {}
        for one in sorted(self.memories, key=self.order):
            if states[one].status == "live":
                speakers[states[one].group] = one
        return State(
            aliases={one: other for one, other in self.canonical.items() if one != other},
            erased=frozenset(one for one, by in self.erasers.items() if by),
            quarantined=frozenset(self.bad),
            claims=self.accepted,
            memories=states,
            shown={key: self.show(key, states, speakers) for key in speakers},
            projects=self.projects(),
        )


def clamped(wall: int) -> int:
    return sorted((0, wall, 2**53))[1]


def fields(said: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields of a payload as they are kept, with what stands for the ones left out."""
    gone = said is None
    said = said or {}
    found: dict[str, Any] = {}
    for field in (
        "kind",
        "scope",
        "project",
        "text",
        "branch",
        "subject",
        "predicate",
        "object",
        "obsolete_when",
        "window",
    ):
        found[field] = said.get(field) or ""
    for field in ("paths", "tags", "triggers"):
        found[field] = tuple(said.get(field) or ())
    found["sources"] = tuple(dict.fromkeys(said.get("sources") or ()))
    found["importance"] = said.get("importance", 0)
    found["confidence"] = 0 if gone else 50 if said.get("confidence") is None else said["confidence"]
    found["trust"] = "" if gone else said.get("trust") or "external"
    found["single"] = bool(said.get("single"))
    found["expires_at"] = said.get("expires_at")
    return found


def fold(events: Iterable[Event]) -> State:
    """Fold by the reference."""
    return Reference(events).state()
