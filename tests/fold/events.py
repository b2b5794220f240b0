"""Dense random sets of events: few memories, few windows, two persons, and references that overlap all the time.

References may name events that come later, do not exist, are of the wrong kind, or are the event itself.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from memorize import model
from memorize.model import Event, Header, text_key
from tests.fold.make import OTHER_PROJECT, PROJECT, STRANGER, name

_TEXTS = ("배포는 금요일에 하지 않는다", "배포는 금요일에 하지  않는다", "Use tabs", "use TABS", "기억", "ruff")
_KINDS = (
    *(model.MEMORY_FORMED,) * 9,
    *(model.MEMORY_SUPERSEDED,) * 7,
    *(model.WINDOW_CONSOLIDATED,) * 4,
    model.MEMORY_RETRACTED,
    *(model.MEMORY_RESTORED,) * 2,
    *(model.MEMORY_PINNED,) * 2,
    model.MEMORY_UNPINNED,
    *(model.MEMORY_CONFIRMED,) * 2,
    *(model.MEMORY_JUDGED,) * 2,
    model.ERASE_REQUESTED,
    model.PROJECT_LINKED,
    model.PROJECT_LINKED,
    model.PROJECT_UNLINKED,
    *(model.OBSERVED_NOTE,) * 2,
    model.SESSION_OPENED,
    "later.kind",
)
# What each kind names, first and after; the rest of the time anything.
_NAMES = {
    model.MEMORY_SUPERSEDED: (model.MEMORY_FORMED,),
    model.MEMORY_RETRACTED: (model.MEMORY_FORMED,),
    model.MEMORY_RESTORED: (model.MEMORY_RETRACTED, model.MEMORY_SUPERSEDED),
    model.MEMORY_PINNED: (model.MEMORY_FORMED,),
    model.MEMORY_UNPINNED: (model.MEMORY_PINNED,),
    model.MEMORY_CONFIRMED: (model.MEMORY_FORMED,),
    model.MEMORY_JUDGED: (model.MEMORY_FORMED,),
    model.WINDOW_CONSOLIDATED: (model.WINDOW_CONSOLIDATED,),
    model.PROJECT_UNLINKED: (model.PROJECT_LINKED,),
}
_MADE = (model.MEMORY_FORMED, model.MEMORY_SUPERSEDED, model.MEMORY_CONFIRMED, model.MEMORY_JUDGED)
_WINDOWS = ("w1", "w2")
_PROJECTS = (PROJECT, OTHER_PROJECT, "프로젝트")
_GARBAGE: tuple[Any, ...] = (
    None, True, 0, -1, 7, 2**70, -(2**70), 1.5, float("nan"), "", "글", "\ud800", b"", b"x", b"x" * 32, [], [None],
    [[]], [b"x" * 32], ["a"], {}, {"a": 1}, {1: 2}, {None: [{}]}, [[[[{"a": [1]}]]]], (), ("a", 1), object,
    {"ids": [1]},
)  # fmt: skip


def event_set(random: Random, most: int = 26) -> list[Event]:
    """Return up to ``most`` events with different ids."""
    size = most - random.randint(0, most - 1) * random.randint(0, 1)
    return from_seeds([random.getrandbits(32) for _ in range(size)])


def event_sets(most: int = 26) -> st.SearchStrategy[list[Event]]:
    """Return the strategy of event sets: one seed an event, so that a counterexample loses the events it can spare."""
    return st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=most).map(from_seeds)


def from_seeds(seeds: list[int]) -> list[Event]:
    """Return one event for each seed."""
    randoms = [Random(seed) for seed in seeds]
    kinds = [random.choice(_KINDS) for random in randoms]
    return [_event(random, kinds, number) for number, random in enumerate(randoms)]


def _event(random: Random, kinds: list[str], number: int) -> Event:
    kind = kinds[number]
    person = STRANGER if random.random() < 0.08 else b""
    nonce, ordinal = b"", 0
    if random.random() < 0.3:
        nonce, ordinal = random.choice((b"n" * 16, b"m" * 16)), random.randint(0, 1)
    wall = random.choice((1000, 2000, 3000, 3000, -5, 2**63))
    header = Header(
        1, b"s" * 16, b"r" * 16, b"w" * 16, number + 1, b"", random.randint(1, 6), _deps(random, kinds, kind), kind,
        64, b"c" * 32, nonce, ordinal, b"", 0, wall, person=person,
    )  # fmt: skip
    payload: Any = _payload(random, kinds, kind)
    chance = random.random()
    if chance < 0.02:
        return Event(name(number), header, None, malformed=random.random() < 0.5)
    if chance < 0.03:
        return Event(name(number), header, payload, malformed=True)
    if chance < 0.08:
        payload = spoiled(random, payload)
    return Event(name(number), header, payload)


def spoiled(random: Random, payload: dict[str, Any]) -> Any:
    """Return a payload with one field turned into garbage or left out, or garbage as a whole."""
    if not payload or random.random() < 0.15:
        return random.choice(_GARBAGE)
    field = random.choice(sorted(payload))
    if random.random() < 0.2:
        return {key: value for key, value in payload.items() if key != field}
    return {**payload, field: random.choice(_GARBAGE)}


def _ids(random: Random, kinds: list[str], wanted: tuple[str, ...], most: int, least: int = 0) -> list[bytes]:
    """Return ids, mostly of the wanted kinds, some of others or of events that are not there."""
    fitting = [number for number, kind in enumerate(kinds) if kind in wanted]
    found = []
    for _ in range(random.randint(least, most)):
        if fitting and random.random() < 0.93:
            found.append(name(random.choice(fitting)))
        else:
            found.append(name(random.randint(0, len(kinds))))
    return found


def _deps(random: Random, kinds: list[str], kind: str) -> tuple[bytes, ...]:
    wanted = _NAMES.get(kind)
    if wanted is None:
        return tuple(_ids(random, kinds, (), 2)) if random.random() < 0.2 else ()
    if kind == model.WINDOW_CONSOLIDATED:
        return tuple(_ids(random, kinds, wanted, 2)) if random.random() < 0.4 else ()
    found = _ids(random, kinds, wanted, 3, least=2 if kind in (model.MEMORY_SUPERSEDED, model.MEMORY_JUDGED) else 1)
    if kind == model.MEMORY_JUDGED and random.random() < 0.2:
        found += _ids(random, kinds, (model.MEMORY_JUDGED,), 1)
    return tuple(found[:1] if random.random() < 0.03 else found)


def _payload(random: Random, kinds: list[str], kind: str) -> dict[str, Any]:
    if kind == model.MEMORY_FORMED:
        payload = _formed(random, kinds)
    elif kind == model.WINDOW_CONSOLIDATED:
        payload = {
            "window": random.choice(_WINDOWS),
            "sources": [name(f"source {random.randint(0, 3)}") for _ in range(random.randint(0, 2))]
            + _ids(random, kinds, (model.OBSERVED_NOTE,), 1),
            "events": _ids(random, kinds, _MADE, 6),
            "extractor": "rules",
        }
    elif kind == model.ERASE_REQUESTED:
        payload = {"ids": _ids(random, kinds, (model.MEMORY_FORMED,), 2), "reason": "비밀"}
    elif kind == model.PROJECT_LINKED:
        payload = {"a": random.choice(_PROJECTS), "b": random.choice(_PROJECTS)}
    elif kind == model.MEMORY_JUDGED:
        payload = {"verdict": random.choice(("contradicts", "contradicts", "contradicts", "same"))}
    else:
        payload = {"reason": "고침"}
    if kind in _MADE and random.random() < 0.2:
        payload["window"] = random.choice(_WINDOWS)
    return payload


def _formed(random: Random, kinds: list[str]) -> dict[str, Any]:
    text = random.choice(_TEXTS)
    payload: dict[str, Any] = {
        "kind": random.choice(("fact",) * 4 + ("rule",)),
        "text": text,
        "text_key": text_key(text),
        "importance": random.randint(3, 5),
        "confidence": random.choice((0, 60, None)),
        "scope": random.choice(("project",) * 4 + ("personal",)),
        "project": random.choice((PROJECT,) * 4 + (OTHER_PROJECT,)),
        "trust": random.choice(model.TRUSTS),
        "triggers": random.choice(([], ["git-commit"])),
        "sources": _ids(random, kinds, (model.OBSERVED_NOTE,), 2),
        "expires_at": random.choice((None, 5)),
    }
    return payload
