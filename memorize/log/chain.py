"""The chain of one writer: numbers, links and encodes the events that it appends."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from memorize import __version__
from memorize.ids import commitment, event_id
from memorize.limits import FORMAT
from memorize.log.codec import SALT_BYTES, encode_body, encode_header, tidy
from memorize.log.frames import EVENT, pack_frame
from memorize.log.identity import Identity
from memorize.log.spool import Unreadable
from memorize.model import DEVICE_HELLO, MEMORY_FORMED, WINDOW_CONSOLIDATED, Draft, Event, Header, text_key

_LAMPORT_MAX = 2**63 - 1
READS = (1,)  # generations of the format that this program reads


class Origin(NamedTuple):
    """Where drafts come from: the nonce of their capture, and when it was made (boot, monotonic ns, wall ms)."""

    nonce: bytes
    boot: bytes
    mono: int
    wall: int


class Link(NamedTuple):
    """Where a chain has come to: number and id of its last event, and the largest Lamport number seen."""

    seq: int
    prev: bytes
    lamport: int


def greeting(identity: Identity) -> Draft:
    """Return what a replica says of itself before everything else."""
    payload: dict[str, Any] = {
        "device": identity.device.hex(),
        "name": platform.node(),
        "platform": platform.system(),
        "version": __version__,
        "reads": list(READS),
    }
    if identity.before:
        payload["before"] = [former.replica for former in identity.before]
        payload["gone"] = [former.replica for former in identity.before if former.gone]
    return Draft(DEVICE_HELLO, payload)


class Chain:
    """Makes the events of one writer, one after the other. ``link`` may be set back when they are not kept."""

    def __init__(self, identity: Identity, link: Link, redact: Callable[[Any], Any]) -> None:
        """Go on after ``link``. ``redact`` is applied to every payload: there is no other way into the log."""
        self.identity = identity
        self.link = link
        self._redact = redact

    def events(
        self, drafts: Sequence[Draft], origin: Origin, known: dict[int, bytes], marker: bytes
    ) -> list[tuple[Event, bytes]]:
        """Return event and frame of every draft whose ordinal is not ``known`` yet, and make them known.

        Raises Unreadable, and then has made nothing, when a draft cannot become an event.
        """
        before = self.link
        ids = dict(known)
        made: list[tuple[Event, bytes]] = []
        try:
            for draft in drafts:
                if draft.ordinal not in ids:
                    event, frame = self._event(draft, origin, ids, marker)
                    ids[draft.ordinal] = event.id
                    made.append((event, frame))
        except (OSError, MemoryError):
            self.link = before
            raise
        except Exception as error:
            # Whatever is wrong with one capture must not keep the others out of the log.
            self.link = before
            raise Unreadable(f"{type(error).__name__}: {error}") from error
        known.update(ids)
        return made

    def _event(self, draft: Draft, origin: Origin, ids: Mapping[int, bytes], marker: bytes) -> tuple[Event, bytes]:
        payload = tidy(draft.payload)
        if draft.kind == WINDOW_CONSOLIDATED and type(payload.get("events")) is list:
            payload["events"] = _resolved(payload["events"], ids)
        clean = self._redact(payload)
        if draft.kind == MEMORY_FORMED and clean.get("text") != payload.get("text"):
            # The key repeats the text in another case, in which the secret looks like none.
            clean["text_key"] = text_key(str(clean["text"]))
        body, stored = encode_body(clean, os.urandom(SALT_BYTES))
        seq, prev, lamport = self.link
        identity = self.identity
        header = Header(
            FORMAT,
            identity.store,
            identity.replica,
            identity.writer,
            seq + 1,
            prev,
            min(lamport + 1, _LAMPORT_MAX),
            tuple(_resolved(draft.deps, ids)) if draft.deps else (),
            draft.kind,
            len(body),
            commitment(body),
            origin.nonce,
            draft.ordinal,
            origin.boot,
            origin.mono,
            origin.wall,
        )
        raw = encode_header(header)
        identity_of_event = event_id(raw)
        self.link = Link(header.seq, identity_of_event, header.lamport)
        return Event(identity_of_event, header, stored), pack_frame(marker, EVENT, 0, raw, body)


def _resolved(refs: Sequence[object], ids: Mapping[int, bytes]) -> list[Any]:
    """Return the references with every ordinal replaced by the id of that event. KeyError for an unknown one."""
    return [ids[ref] if type(ref) is int else ref for ref in refs]
