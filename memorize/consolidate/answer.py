"""What a model answered, as memories: a tolerant reader and a strict judge of every single item. Pure.

An item is taken, mended (and the mending counted), or dropped (and counted); it never spoils the others. An answer
without JSON is no answer and raises ``NoAnswer``: the window stays open. How far an item is trusted is not what the
model says but what the lines are that it cites: what only tools said gives facts at most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from memorize import model
from memorize.consolidate import fields, occasions, trust
from memorize.consolidate.jsonanswer import ANSWER_CHARS_MAX, items_of
from memorize.consolidate.prompt import USER, Part, Turn
from memorize.consolidate.refusals import refusal
from memorize.consolidate.windows import Found
from memorize.model import text_key
from memorize.patterns import late

ITEMS_MAX: Final = 40
_JUDGED_MAX: Final = 200
TEXT_CHARS_MAX: Final = 600
SUMMARY_CHARS_MAX: Final = 1_500
TEXT_CHARS_MIN: Final = 8
_NAME_CHARS: Final = 120
_WHEN_CHARS: Final = 200
_PATHS_MAX, _PATH_CHARS = 20, 300
_TAGS_MAX, _TAG_CHARS = 8, 40
_TRIGGERS_MAX: Final = 8
# Kinds in which the person may order something for an action.
_ORDERS: Final = frozenset({"rule", "constraint", "preference"})
_SOURCES_MAX: Final = 20
_REPLACES_MAX: Final = 20
_IMPORTANCE: Final = 5
_CONFIDENCE: Final = 60
_CONFIDENCE_OF_GUESSES: Final = 40
# What binds is a tool's also when the tool is ahead by so much.
_AHEAD: Final = 0.3
# Without sources: so much of its words must stand in some line.
_GROUNDED: Final = 0.5
_EPISODES: Final = frozenset({"summary", "progress", "question"})
_REFUSING: Final = late(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:can(?:'|no)t|won't)|as an ai)\b"
    r"|죄송|할 수 없|申し訳|できません|抱歉|无法|無法",
    re.IGNORECASE,
)
_REFUSAL_CHARS: Final = 2_000
_HEDGED: Final = late(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|might|apparently|i (?:think|guess|suspect)|seems? to|not sure)\b"
    r"|아마|추측|것 같|듯하|かもしれ|たぶん|おそらく|可能是|也许|也許|大概|或许|或許",
    re.IGNORECASE,
)


def _nullable(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


def _list(kind: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kind}}


_ITEM: Final[dict[str, Any]] = {
    "kind": {"type": "string", "enum": list(model.MEMORY_KINDS)},
    "text": {"type": "string"},
    "importance": {"type": "integer"},
    "confidence": {"type": "integer"},
    "guess": {"type": "boolean"},
    "scope": {"type": "string", "enum": list(model.SCOPES)},
    "sources": _list("integer"),
    "paths": _list("string"),
    "tags": _list("string"),
    "triggers": _list("string"),
    "subject": _nullable("string"),
    "predicate": _nullable("string"),
    "object": _nullable("string"),
    "single": _nullable("boolean"),
    "obsolete_when": _nullable("string"),
    "expires": _nullable("string"),
    "replaces": _list("string"),
}
# In the form that both programs take: every field required, absent ones null or empty, nothing beyond.
SCHEMA: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "memories": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": _ITEM,
                    "required": list(_ITEM),
                    "additionalProperties": False,
                },
            }
        },
        "required": ["memories"],
        "additionalProperties": False,
    }
)


class NoAnswer(ValueError):  # noqa: N818 - called for what happened
    """A text holds no answer. ``reason``: ``empty``, ``refused`` or ``no-json``."""

    def __init__(self, reason: str) -> None:
        """``reason`` is one of the words above."""
        super().__init__(reason)
        self.reason = reason


class Answer(NamedTuple):
    """The memories of an answer; how many items were dropped and how many were mended, by reason."""

    found: tuple[Found, ...]
    dropped: Mapping[str, int]
    mended: Mapping[str, int]


class _Drop(Exception):  # noqa: N818 - a decision, no error
    """The item is not taken; the argument says why."""


def read(text: str, part: Part) -> Answer:
    """Return what an answer to a part holds. Raises NoAnswer."""
    items = items_of(text)
    if items is None:
        start = text[:_REFUSAL_CHARS]
        raise NoAnswer("empty" if not text.strip() else "refused" if _REFUSING.search(start) else "no-json")
    dropped: Counter[str] = Counter()
    mended: Counter[str] = Counter()
    if len(text) > ANSWER_CHARS_MAX:
        mended["answer cut"] += 1
    taken: dict[tuple[str, str, str], Found] = {}
    judged = _foremost(items)
    if len(judged) < len(items):
        dropped["too many"] += len(items) - len(judged)
    for item in judged:
        try:
            found = _Item(item, part, mended).memory()
        except _Drop as why:
            dropped[str(why)] += 1
            continue
        key = (found.scope, found.kind, text_key(found.text))
        if key in taken:
            dropped["duplicate"] += 1
            found = _united(taken[key], found)
        taken[key] = found
    kept = sorted(taken.values(), key=lambda one: -one.importance)[:ITEMS_MAX]
    if len(taken) > len(kept):
        dropped["too many"] += len(taken) - len(kept)
    return Answer(tuple(one for one in taken.values() if one in kept), dict(dropped), dict(mended))


def _foremost(items: Sequence[Any]) -> list[Any]:
    """Return the items that are worth judging, in their order: all, or of a flood those said to be important."""
    claims = [(fields.number(item.get("importance")) if isinstance(item, dict) else None) or 0 for item in items]
    order = sorted(range(len(items)), key=lambda place: -min(claims[place], 10))
    return [items[place] for place in sorted(order[:_JUDGED_MAX])]


def _united(one: Found, other: Found) -> Found:
    """Return one memory for two that say the same: the better one, with the sources of both, as little trusted."""
    better = max(one, other, key=lambda found: found.importance)
    tags = tuple(dict.fromkeys((*one.tags, *other.tags)))
    return better._replace(
        sources=tuple(dict.fromkeys((*one.sources, *other.sources)))[:_SOURCES_MAX],
        trust=min(one.trust, other.trust, key=trust.rank),
        tags=tags,
        replaces=() if model.REVIEW in tags else tuple(dict.fromkeys((*one.replaces, *other.replaces))),
    )


class _Item:
    """One item of an answer on its way to become a memory."""

    def __init__(self, item: Any, part: Part, mended: Counter[str]) -> None:
        if not isinstance(item, dict):
            raise _Drop("no object")
        self._item: Mapping[str, Any] = item
        self._part = part
        self._mended = mended

    def memory(self) -> Found:
        """Return the memory. Raises _Drop."""
        kind, text = self._kind(), self._text()
        if why := refusal(kind, text):
            raise _Drop(why)
        cited = self._cited(text)
        grade = self._grade(kind, text, cited)
        scope = self._scope(kind, grade)
        subject, predicate, value = self._about()
        found = Found(
            kind=kind,
            text=text,
            importance=self._importance(),
            scope=scope,
            trust=grade,
            confidence=self._confidence(text, cited),
            sources=self._sources(cited),
            branch=next((turn.branch for turn in (*cited, *reversed(self._part.turns)) if turn.branch), ""),
            paths=fields.texts(self._item.get("paths"), _PATHS_MAX, _PATH_CHARS),
            tags=tuple(
                tag
                for tag in fields.texts(self._item.get("tags"), _TAGS_MAX, _TAG_CHARS)
                if tag.casefold() != model.REVIEW
            ),
            triggers=self._triggers(kind, text, grade),
            subject=subject,
            predicate=predicate,
            object=value,
            single=bool(predicate) and fields.true(self._item.get("single")),
            obsolete_when=fields.words(self._item.get("obsolete_when"), _WHEN_CHARS),
            expires_at=self._expiry(),
        )
        return self._judged(found._replace(replaces=self._replaces(found)), cited)

    def _kind(self) -> str:
        kind = self._item.get("kind")
        kind = kind.strip().casefold() if isinstance(kind, str) else kind
        if kind not in model.MEMORY_KINDS:
            raise _Drop("kind")
        if kind == "summary" and not self._part.last:
            self._mended["summary before the end"] += 1
            return "progress"
        return str(kind)

    def _text(self) -> str:
        said = self._item.get("text")
        if not isinstance(said, str):
            raise _Drop("text")
        most = SUMMARY_CHARS_MAX if self._item.get("kind") == "summary" else TEXT_CHARS_MAX
        shown = trust.visible(said)
        text = fields.words(shown, most)
        if len(text) < TEXT_CHARS_MIN:
            raise _Drop("text")
        if len(shown.strip()) > most and text.endswith("..."):
            self._mended["text cut"] += 1
        return text

    def _importance(self) -> int:
        said = self._item.get("importance")
        importance = _IMPORTANCE if said is None else fields.number(said)
        kept = _IMPORTANCE if importance is None else max(1, min(importance, 10))
        if kept != importance:
            self._mended["importance"] += 1
        return kept

    def _triggers(self, kind: str, text: str, grade: str) -> tuple[str, ...]:
        """Return the actions before which it is told: those named, else those that the person's order names."""
        named = fields.triggers(self._item.get("triggers"), _TRIGGERS_MAX) if kind == "rule" else ()
        if named or grade != "user" or kind not in _ORDERS:
            return named
        return occasions.occasions(text) or occasions.subjects(text)

    def _confidence(self, text: str, cited: Sequence[Turn]) -> int:
        said = self._item.get("confidence")
        confidence = _CONFIDENCE if said is None else fields.share(said)
        kept = _CONFIDENCE if confidence is None else max(0, min(confidence, 100))
        if kept != confidence:
            self._mended["confidence"] += 1
        unsaid = not any(trust.overlap(text, turn.text) for turn in cited)
        if unsaid or fields.true(self._item.get("guess")) or _HEDGED.search(text):
            return min(kept, _CONFIDENCE_OF_GUESSES)
        return kept

    def _about(self) -> tuple[str, str, str]:
        found = [fields.words(self._item.get(name), _NAME_CHARS) for name in ("subject", "predicate", "object")]
        if not all(found) or any(refusal("fact", one) for one in found):
            return "", "", ""
        return found[0], "_".join(found[1].casefold().replace("_", " ").split()), found[2]

    def _expiry(self) -> int | None:
        end = fields.day_end(self._item.get("expires"))
        if end is not None and end <= max((turn.at_ms for turn in self._part.turns), default=0):
            raise _Drop("expired")
        return end

    # -- what it rests on -----------------------------------------------------------------------------------------

    def _cited(self, text: str) -> list[Turn]:
        """Return the turns that the item rests on; without any that exist, those that say it. Raises _Drop."""
        turns = {turn.number: turn for turn in self._part.turns}
        numbers = fields.labels(self._item.get("sources"), _SOURCES_MAX)
        cited = [turns[number] for number in numbers if number in turns]
        if cited:
            return cited
        # Of turns that say it equally well the least trusted counts.
        likely = [(trust.overlap(text, turn.text), -trust.rank(turn.trust), -turn.number) for turn in turns.values()]
        best = max(likely, default=(0.0, 0, 0))
        if best[0] < _GROUNDED:
            raise _Drop("no source")
        self._mended["source"] += 1
        return [turns[-best[2]]]

    def _grade(self, kind: str, text: str, cited: Sequence[Turn]) -> str:
        """Return how far the item is trusted: as the most trusted line cited, if its words are not a tool's."""
        external = model.TRUSTS[0]
        grade = max((turn.trust for turn in cited), key=trust.rank)
        if kind in _EPISODES and kind != "question":
            # However much of it somebody said, it was put together by a model.
            return min(grade, "agent", key=trust.rank)
        if grade == external or kind == "failure":
            return grade
        own = " ".join(turn.text for turn in cited if turn.trust != external)
        tools = [turn.text for turn in self._part.turns if turn.trust == external]
        share = trust.overlap(text, own)
        theirs = max((trust.overlap(text, tool) for tool in tools), default=0.0)
        ahead = kind in trust.BINDING and theirs - share >= _AHEAD
        if theirs >= trust.TAKEN_OVER and (share < trust.OWN_SHARE or ahead):
            self._mended["graded down"] += 1
            return external
        # A bare "yes" makes a proposal of the agent no words of the person.
        if grade == "user" and not any(trust.overlap(text, turn.text) for turn in cited if turn.trust == "user"):
            return "agent"
        return grade

    def _sources(self, cited: Sequence[Turn]) -> tuple[bytes, ...]:
        """Return the observations cited. For a line that only the transcript has: the observation before it."""
        found: dict[bytes, None] = {}
        for turn in cited:
            if isinstance(turn.source, bytes):
                found[turn.source] = None
                continue
            near = [one for one in self._part.turns if isinstance(one.source, bytes)]
            near.sort(key=lambda one: (one.number > turn.number, abs(one.number - turn.number)))
            for one in near[:1]:
                assert isinstance(one.source, bytes)
                found[one.source] = None
        return tuple(found)

    # -- what it may be -------------------------------------------------------------------------------------------

    def _scope(self, kind: str, grade: str) -> str:
        said = self._item.get("scope")
        scope = said.strip().casefold() if isinstance(said, str) else ""
        if scope not in model.SCOPES:
            scope = "personal" if kind == "preference" else "project"
        # Only the person speaks for what holds in every project.
        return scope if grade == "user" or kind == "preference" else "project"

    def _replaces(self, found: Found) -> tuple[bytes, ...]:
        """Return the offered memories that it replaces; less trusted words never replace more trusted ones."""
        offered = {f"m{number}": one for number, one in enumerate(self._part.offered, 1)}
        named = [
            offered[name] for name in fields.texts(self._item.get("replaces"), _REPLACES_MAX, 12) if name in offered
        ]
        kept = [one for one in named if one.scope == found.scope and trust.rank(one.trust) <= trust.rank(found.trust)]
        if len(kept) < len(named):
            self._mended["replaces"] += len(named) - len(kept)
        return tuple(dict.fromkeys(one.id for one in kept))

    def _judged(self, found: Found, cited: Sequence[Turn]) -> Found:
        """Take from external words the power to bind, and set aside what waits for a person."""
        external, kind = found.trust == model.TRUSTS[0], found.kind
        if external and found.kind in _EPISODES:
            found = found._replace(kind="fact")
        if external:
            found = found._replace(importance=min(found.importance, _IMPORTANCE), triggers=())
        if external and kind in trust.BINDING:
            # What binds must come from somebody. It is kept as a claim, and a person looks at it first.
            self._mended["external order"] += 1
            return trust.set_aside(found._replace(kind="fact", scope="project"))
        if kind in trust.OWN and not self._owned(cited):
            self._mended["not the person's words"] += 1
            found = found._replace(kind="fact", scope="project", triggers=())
        tools = [turn.text for turn in self._part.turns if turn.trust == model.TRUSTS[0]]
        quiet = not tools
        if kind in trust.OWN and found.trust != "user" and not quiet:
            # The person said it in no word, while a tool spoke in between.
            self._mended["review"] += 1
            return trust.set_aside(found)
        # Where no tool spoke, what the person agreed to may be an order as if the person had said it.
        grade = "user" if quiet and self._owned(cited) else found.trust
        others = " ".join(turn.text for turn in self._part.turns if turn.trust != model.TRUSTS[0])
        carried = kind in _EPISODES and trust.carries_order(found.text, tools, others)
        if not carried and not trust.reasons(found.text, grade, kind):
            return found
        self._mended["review"] += 1
        return trust.set_aside(found)

    @staticmethod
    def _owned(cited: Sequence[Turn]) -> bool:
        return any(turn.who == USER and turn.trust == "user" for turn in cited)
