"""The values that flow between the rooms. Frozen; no I/O, no time, no randomness.

``Draft`` is an event that has not been written yet, ``Event`` one that has. Payloads are plain mappings with string
keys, as they are stored (docs/format.md lists the fields of each kind): kinds and fields are only ever added, and a
reader keeps what it does not know.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Payload = Mapping[str, Any]

# Kinds. Add, never change the meaning.
DEVICE_HELLO: Final = "device.hello"
DEVICE_RETIRED: Final = "device.retired"
STORE_JOINED: Final = "store.joined"
PROJECT_SEEN: Final = "project.seen"
PROJECT_LINKED: Final = "project.linked"
PROJECT_UNLINKED: Final = "project.unlinked"
SESSION_OPENED: Final = "session.opened"
SESSION_CLOSED: Final = "session.closed"
OBSERVED_PROMPT: Final = "observed.prompt"
OBSERVED_EDIT: Final = "observed.edit"
OBSERVED_SHELL: Final = "observed.shell"
OBSERVED_TOOL: Final = "observed.tool"
OBSERVED_REPLY: Final = "observed.reply"
OBSERVED_COMMIT: Final = "observed.commit"
OBSERVED_NOTE: Final = "observed.note"
WINDOW_CONSOLIDATED: Final = "window.consolidated"
MEMORY_FORMED: Final = "memory.formed"
MEMORY_SUPERSEDED: Final = "memory.superseded"
MEMORY_RETRACTED: Final = "memory.retracted"
MEMORY_RESTORED: Final = "memory.restored"
MEMORY_PINNED: Final = "memory.pinned"
MEMORY_UNPINNED: Final = "memory.unpinned"
MEMORY_CONFIRMED: Final = "memory.confirmed"
MEMORY_JUDGED: Final = "memory.judged"
CONTEXT_DELIVERED: Final = "context.delivered"
CONFLICT_WARNED: Final = "conflict.warned"
ERASE_REQUESTED: Final = "erase.requested"
ERASE_ACKNOWLEDGED: Final = "erase.acknowledged"

KINDS: Final = frozenset(value for name, value in dict(globals()).items() if name.isupper() and isinstance(value, str))

# These can never be erased (DESIGN 9).
INDELIBLE: Final = frozenset({WINDOW_CONSOLIDATED, ERASE_REQUESTED, ERASE_ACKNOWLEDGED, DEVICE_HELLO})

MEMORY_KINDS: Final = (
    "decision",
    "constraint",
    "preference",
    "fact",
    "failure",
    "progress",
    "question",
    "summary",
    "rule",
)
SCOPES: Final = ("project", "personal")
TRUSTS: Final = ("external", "agent", "user")  # ascending
VERDICTS: Final = ("same", "refines", "replaces", "contradicts", "unrelated")
# The tag of a memory that a consolidation formed and that nobody is told until a person accepts it.
REVIEW: Final = "review"


def text_key(text: str) -> str:
    """Return the text by which equal memories are found: NFC, case-folded, white space folded.

    The writer stores it: Unicode versions differ between devices, so a reader never computes it again.
    """
    folded = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())


class Draft(NamedTuple):
    """An event to be written.

    ``deps`` holds full ids, or an ``int``: the ordinal of an earlier draft of the same batch, which the ingester
    replaces by that event's id. The same holds for the list ``payload["events"]`` of a claim.
    ``ordinal`` names the event within its capture and is fixed by the draft's role, so that a capture that is
    ingested again gives the same (nonce, ordinal) pairs.
    """

    kind: str
    payload: Payload
    ordinal: int = 0
    deps: tuple[bytes | int, ...] = ()


class Header(NamedTuple):
    """The decoded header of an event (docs/format.md). Empty bytes stand for an absent id."""

    format: int
    store: bytes
    replica: bytes
    writer: bytes
    seq: int
    prev: bytes
    lamport: int
    deps: tuple[bytes, ...]
    kind: str
    body_len: int
    commitment: bytes
    nonce: bytes
    ordinal: int
    boot: bytes
    mono: int
    wall: int
    scope_key: bytes = b""
    person: bytes = b""
    must: tuple[int, ...] = ()


class Event(NamedTuple):
    """A written event. ``payload`` is None when the body is erased, or cannot be read (then ``malformed``)."""

    id: bytes
    header: Header
    payload: Payload | None
    malformed: bool = False

    @property
    def kind(self) -> str:
        """The kind, for example ``memory.formed``."""
        return self.header.kind

    @property
    def order(self) -> tuple[int, bytes]:
        """(lamport, id): the one total order of events."""
        return (self.header.lamport, self.id)


class Stored(NamedTuple):
    """Where a frame lies: a file name below ``segments/`` or ``received/``, its offset and its whole length.

    ``bare``: the frame is without the body, which was erased or has not come yet.
    """

    event: Event
    file: str
    offset: int
    length: int
    bare: bool = False


# (lamport, id): the one order in which events are compared and exchanged.
Key = tuple[int, bytes]


class Envelope(NamedTuple):
    """One event as bytes. ``body`` None: it was erased, or is not held; then only the header travels."""

    id: bytes
    lamport: int
    header: bytes
    body: bytes | None
    signature: bytes = b""

    @property
    def key(self) -> Key:
        """Where the event stands in the order."""
        return (self.lamport, self.id)


class Received(NamedTuple):
    """What became of envelopes. ``new``: written; ``bodies``: known ones that got their body; ``known``: nothing new.

    ``bad``: not what they claim to be, dropped. ``stripped``: of the new ones, those written without their body,
    which is erased here.
    """

    new: int = 0
    bodies: int = 0
    known: int = 0
    bad: int = 0
    stripped: int = 0

    def plus(self, other: Received) -> Received:
        """Return both together."""
        return Received(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Capture(NamedTuple):
    """One spool file: what one hook call or one verb dropped. ``data`` is the payload as it came in."""

    agent: str
    event: str
    nonce: bytes
    mono: int
    data: bytes
    cut: bool = False


class Context(NamedTuple):
    """A text for an agent and what it is made of. ``items``: (memory id, reason, score)."""

    text: str
    items: tuple[tuple[bytes, str, float], ...]
    tokens: int
