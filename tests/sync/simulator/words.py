"""What is captured: small payloads of real kinds that name each other as densely as a long life would."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

from memorize import model
from memorize.model import Draft, Event, text_key

_TEXTS: Final = (
    "배포는 금요일에 하지 않는다",
    "배포는  금요일에 하지 않는다",
    "Use tabs",
    "use TABS",
    "메모리",
    "ruff é",
)
_KINDS: Final = (
    *(model.OBSERVED_PROMPT,) * 6,
    *(model.MEMORY_FORMED,) * 8,
    *(model.MEMORY_SUPERSEDED,) * 3,
    *(model.MEMORY_RETRACTED,) * 2,
    *(model.MEMORY_RESTORED,) * 2,
    model.MEMORY_PINNED,
    model.MEMORY_UNPINNED,
    model.MEMORY_CONFIRMED,
    model.MEMORY_JUDGED,
    *(model.WINDOW_CONSOLIDATED,) * 2,
    model.PROJECT_LINKED,
    model.PROJECT_UNLINKED,
    "later.kind",
)
_NAMES: Final = {
    model.MEMORY_SUPERSEDED: ((model.MEMORY_FORMED,), 2),
    model.MEMORY_RETRACTED: ((model.MEMORY_FORMED,), 1),
    model.MEMORY_RESTORED: ((model.MEMORY_RETRACTED, model.MEMORY_SUPERSEDED), 1),
    model.MEMORY_PINNED: ((model.MEMORY_FORMED,), 1),
    model.MEMORY_UNPINNED: ((model.MEMORY_PINNED,), 1),
    model.MEMORY_CONFIRMED: ((model.MEMORY_FORMED,), 1),
    model.MEMORY_JUDGED: ((model.MEMORY_FORMED,), 2),
    model.PROJECT_UNLINKED: ((model.PROJECT_LINKED,), 1),
}
_PROJECTS: Final = ("a1" * 16, "b2" * 16, "프로젝트")


def draft(random: Random, known: Iterable[Event]) -> Draft:
    """Return one event to be, which names events that are ``known`` where it is captured."""
    kind = random.choice(_KINDS)
    by_kind: dict[str, list[bytes]] = {}
    for event in known:
        by_kind.setdefault(event.kind, []).append(event.id)
    wanted = _NAMES.get(kind)
    if wanted is not None:
        there = [one for name in wanted[0] for one in by_kind.get(name, ())]
        if len(there) >= wanted[1]:
            return Draft(kind, _payload(random, kind), 0, tuple(random.sample(there, wanted[1])))
        kind = model.MEMORY_FORMED
    if kind == model.WINDOW_CONSOLIDATED:
        return _claim(random, by_kind)
    return Draft(kind, _payload(random, kind))


def erasure(random: Random, known: Iterable[Event]) -> Draft | None:
    """Return an erasure of one or two known events, None when there is nothing to erase."""
    there = [event.id for event in known if event.kind not in model.INDELIBLE]
    if not there:
        return None
    ids = random.sample(there, min(len(there), random.choice((1, 1, 2))))
    return Draft(model.ERASE_REQUESTED, {"ids": ids, "reason": "비밀"})


def _claim(random: Random, by_kind: dict[str, list[bytes]]) -> Draft:
    observed, made = by_kind.get(model.OBSERVED_PROMPT, []), by_kind.get(model.MEMORY_FORMED, [])
    earlier = by_kind.get(model.WINDOW_CONSOLIDATED, [])
    payload = {
        "window": random.choice(("w1", "w2", "w3")),
        "sources": random.sample(observed, min(len(observed), 2)),
        "events": random.sample(made, min(len(made), 2)),
        "extractor": "rules",
    }
    redone = tuple(random.sample(earlier, 1)) if earlier and random.random() < 0.3 else ()
    return Draft(model.WINDOW_CONSOLIDATED, payload, 0, redone)


def _payload(random: Random, kind: str) -> dict[str, Any]:
    if kind == model.MEMORY_FORMED:
        text = random.choice(_TEXTS)
        return {
            "kind": random.choice(("fact", "rule")),
            "text": text,
            "text_key": text_key(text),
            "importance": random.randint(3, 5),
            "confidence": 60,
            "scope": random.choice(("project", "personal")),
            "project": random.choice(_PROJECTS),
            "trust": random.choice(model.TRUSTS),
            "sources": [],
            "window": random.choice(("", "", "", "w1", "w2")),
        }
    if kind == model.PROJECT_LINKED:
        one, other = random.sample(_PROJECTS, 2)
        return {"a": one, "b": other}
    if kind == model.MEMORY_JUDGED:
        return {"verdict": random.choice(model.VERDICTS)}
    if kind == model.OBSERVED_PROMPT:
        return {"agent": "claude", "session": "s1", "text": f"프롬프트 {random.randint(0, 99)}"}
    return {"reason": "고침"}
