"""What one consolidation reads, and the batch of drafts by which it answers.

A window is the set of observations of one session, captured on this device, that no accepted claim names: a set
difference, never a position. The claim lists its sources and the events made from them; all of it is one batch, so a
crash leaves either nothing or everything, and only an accepted claim moves the watermark (DESIGN 5 rule 4, 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from memorize.model import MEMORY_FORMED, WINDOW_CONSOLIDATED, Draft, Event, Payload, text_key

# A claim keeps 32 bytes a source inside a body of at most 1 MiB; far fewer also keep one answer readable.
SOURCES_MAX: Final = 2_000


class Spoken(Protocol):
    """A line of a transcript: who said what, how far it is trusted, its id, and when (wall ms)."""

    @property
    def role(self) -> str: ...  # noqa: D102 - the fields of the class are told above
    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def trust(self) -> str: ...  # noqa: D102
    @property
    def id(self) -> str: ...  # noqa: D102
    @property
    def at_ms(self) -> int: ...  # noqa: D102


class Window(NamedTuple):
    """Observations of one session in log order. ``agent``, ``session`` and ``project`` name where they come from.

    ``lines`` are what the session's transcript holds beyond the last claim, in its order.
    """

    agent: str
    session: str
    project: str
    events: tuple[Event, ...]
    lines: tuple[Spoken, ...] = ()

    @property
    def key(self) -> bytes:
        """Names this very set of sources, so that a window that keeps failing can be parked."""
        return b"".join(sorted(event.id for event in self.events))


class Found(NamedTuple):
    """A memory that an extractor proposes, with the observations that it rests on.

    ``subject``, ``predicate`` and ``object`` are all there or all empty; ``single`` says that the predicate has one
    value at a time. ``expires_at`` is in ms since 1970. ``replaces`` names memories that the extractor was offered and
    that this one puts right.
    """

    kind: str
    text: str
    importance: int
    scope: str
    trust: str
    confidence: int
    sources: tuple[bytes, ...]
    branch: str = ""
    paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    subject: str = ""
    predicate: str = ""
    object: str = ""
    single: bool = False
    obsolete_when: str = ""
    expires_at: int | None = None
    replaces: tuple[bytes, ...] = ()

    def payload(self, project: str, window: bytes) -> Payload:
        """Return the body of the ``memory.formed`` event; what is not known is left out."""
        about: Payload = {}
        if self.predicate:
            about = {name: getattr(self, name) for name in ("subject", "predicate", "object", "single")}
        ends = {name: value for name in ("obsolete_when", "expires_at") if (value := getattr(self, name))}
        return {
            "kind": self.kind,
            "text": self.text,
            "text_key": text_key(self.text),
            "importance": self.importance,
            "confidence": self.confidence,
            "scope": self.scope,
            "project": project,
            "branch": self.branch,
            "paths": list(self.paths),
            "tags": list(self.tags),
            "triggers": list(self.triggers),
            "trust": self.trust,
            "sources": list(self.sources),
            "window": window.hex(),
            **about,
            **ends,
        }


def windows(agent: str, session: str, events: Iterable[Event]) -> list[Window]:
    """Cut a session's open observations into windows: one a project, at most ``SOURCES_MAX`` sources each."""
    by_project: dict[str, list[Event]] = {}
    for event in events:
        project = event.payload.get("project", "") if event.payload else ""
        by_project.setdefault(project if isinstance(project, str) else "", []).append(event)
    return [
        Window(agent, session, project, tuple(sources[start : start + SOURCES_MAX]))
        for project, sources in sorted(by_project.items())
        for start in range(0, len(sources), SOURCES_MAX)
    ]


def answer(window: Window, found: Sequence[Found], extractor: str, nonce: bytes) -> list[Draft]:
    """Return the batch that closes a window: its memories, then the claim that lists them (``nonce``: 16 bytes)."""
    drafts = [
        Draft(MEMORY_FORMED, memory.payload(window.project, nonce), ordinal=number)
        for number, memory in enumerate(found)
    ]
    claim = {
        "window": nonce.hex(),
        "agent": window.agent,
        "session": window.session,
        "project": window.project,
        "extractor": extractor,
        "sources": [event.id for event in window.events],
        "events": [draft.ordinal for draft in drafts],
        "transcript": None,
    }
    return [*drafts, Draft(WINDOW_CONSOLIDATED, claim, ordinal=len(drafts))]
