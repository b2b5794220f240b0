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


class Source(NamedTuple):
    """A range of bytes of a session's transcript: whole lines, of one generation of the file.

    ``tail_hash`` is that of the last bytes before ``end`` (``transcript.tail_hash``); ``part`` names the subagent whose
    own transcript it is, "" for the session's.
    """

    agent: str
    session: str
    generation: int
    start: int
    end: int
    tail_hash: str
    part: str = ""

    def payload(self) -> Payload:
        """Return what the claim says of it."""
        said: Payload = {
            "generation": self.generation,
            "from": self.start,
            "to": self.end,
            "tail": self.tail_hash,
        }
        return {**said, "part": self.part} if self.part else said


class Piece(NamedTuple):
    """What a window reads of a transcript: lines that no claim names, their marks, and the range they stand for."""

    source: Source
    lines: tuple[Spoken, ...]
    marks: tuple[bytes, ...]


class Window(NamedTuple):
    """Observations of one session in log order. ``agent``, ``session`` and ``project`` name where they come from.

    ``redo`` is the claim that this reading takes the place of, empty for a first one. ``lines`` are what the
    session's transcript holds beyond the last claim, in its order: the range ``transcript`` of it; ``marks`` name
    the lines among the sources of the claim. A window may consist of lines alone.
    """

    agent: str
    session: str
    project: str
    events: tuple[Event, ...]
    lines: tuple[Spoken, ...] = ()
    transcript: Source | None = None
    marks: tuple[bytes, ...] = ()
    redo: bytes = b""

    @property
    def sources(self) -> tuple[bytes, ...]:
        """What the claim names: the observations and the marks of the lines."""
        return (*(event.id for event in self.events), *self.marks)

    @property
    def key(self) -> bytes:
        """Names this very set of sources, so that a window that keeps failing can be parked."""
        return b"".join(sorted(self.sources))


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


def windows(
    agent: str, session: str, events: Iterable[Event], pieces: Iterable[Piece] = (), project: str = ""
) -> list[Window]:
    """Cut what is open of a session into windows: one a project, at most ``SOURCES_MAX`` observations each.

    Each piece of a transcript makes a window with the observations of its time; it belongs to the project that most
    observations belong to, or to ``project`` when there are none.
    """
    by_project: dict[str, list[Event]] = {}
    for event in events:
        found = event.payload.get("project", "") if event.payload else ""
        by_project.setdefault(found if isinstance(found, str) else "", []).append(event)
    read = list(pieces)
    place = max(by_project, key=lambda key: (len(by_project[key]), key), default=project) or project
    cut: list[Window] = []
    for key, sources in sorted(by_project.items()):
        if key != place or not read:
            cut += _plain(agent, session, key, sources)
    if not read:
        return cut
    for piece, sources in _shared(by_project.get(place, []), read):
        first, rest = sources[:SOURCES_MAX], sources[SOURCES_MAX:]
        cut.append(Window(agent, session, place, tuple(first), piece.lines, piece.source, piece.marks))
        cut += _plain(agent, session, place, rest)
    return cut


def _plain(agent: str, session: str, project: str, events: Sequence[Event]) -> list[Window]:
    return [
        Window(agent, session, project, tuple(events[start : start + SOURCES_MAX]))
        for start in range(0, len(events), SOURCES_MAX)
    ]


def _shared(events: Sequence[Event], pieces: Sequence[Piece]) -> list[tuple[Piece, list[Event]]]:
    """Give each observation to the piece of its time, later ones to the last of the session's own pieces."""
    shared: list[tuple[Piece, list[Event]]] = [(piece, []) for piece in pieces]
    own = [pair for pair in shared if not pair[0].source.part] or shared
    ends = [max((line.at_ms for line in piece.lines), default=0) for piece, _ in own[:-1]]
    for event in events:
        number = next((number for number, end in enumerate(ends) if event.header.wall <= end), len(own) - 1)
        own[number][1].append(event)
    return shared


def said_at(window: Window, found: Found) -> int:
    """Return when what a memory rests on was said: wall ms, 0 when nobody knows."""
    walls = [event.header.wall for event in window.events if event.id in found.sources]
    spoken = [line.at_ms for line in window.lines] or [event.header.wall for event in window.events]
    return max(walls or spoken, default=0)


def answer(
    window: Window, found: Sequence[Found], extractor: str, nonce: bytes, more: Sequence[Draft] = ()
) -> list[Draft]:
    """Return the batch that closes a window: its memories, what follows from them, then the claim that lists both.

    ``nonce`` has 16 bytes and is what every event of a window carries; ``more`` are drafts with the ordinals that
    follow those of the memories (``reconcile`` makes them).
    """
    drafts = []
    for number, memory in enumerate(found):
        payload = memory.payload(window.project, nonce)
        # What an old transcript says was not said when it is read, so the time goes along.
        if window.lines and (at_ms := said_at(window, memory)):
            payload = {**payload, "said_at": at_ms}
        drafts.append(Draft(MEMORY_FORMED, payload, ordinal=number))
    drafts += more
    claim = {
        "window": nonce.hex(),
        "agent": window.agent,
        "session": window.session,
        "project": window.project,
        "extractor": extractor,
        "sources": list(window.sources),
        "events": [draft.ordinal for draft in drafts],
        "transcript": window.transcript.payload() if window.transcript else None,
    }
    deps = (window.redo,) if window.redo else ()
    return [*drafts, Draft(WINDOW_CONSOLIDATED, claim, len(drafts), deps)]
