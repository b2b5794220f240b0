"""From captures to drafts: what the agents' modules need to know, and what they cannot know.

Agents say what was done; here it becomes known where: a project is told with the first capture or verb that meets it
at a path of this device, and linked with the one it was before when only its key has changed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from memorize import agents, model
from memorize.agents.payload import plain
from memorize.agents.turns import ORDINAL_PROJECT
from memorize.capture.memorize_hook import ANSWER_S, BEFORE_S
from memorize.errors import Busy, CannotWrite, IndexDamaged
from memorize.index.place import Place
from memorize.index.read import Reader
from memorize.log.spool import OWN_AGENT, Unreadable
from memorize.model import Capture, Draft, Payload

DELIVERED: Final = "delivered"
ORDINAL_LINK: Final = ORDINAL_PROJECT + 1
# Captures kept for a hook that asks about one which is ingested already.
RECENT_MAX: Final = 64
_RECENT_BYTES_MAX: Final = 2 << 20
_ANSWERED: Final = frozenset({model.SESSION_OPENED, model.OBSERVED_PROMPT})


@lru_cache(maxsize=64)
def is_before_tool(event: str) -> bool:
    """Tell whether a hook's event is one before a tool runs."""
    return ANSWER_S.get(event.lower().replace("_", "").replace(".", ""), 0.0) == BEFORE_S


class Said(NamedTuple):
    """What a capture says by itself, and the place of its working directory.

    ``place`` is None where nothing is to be told of it; ``kept`` is the capture when a hook may still ask about it.
    """

    drafts: Sequence[Draft]
    place: Place | None = None
    kept: Capture | None = None


def said(capture: Capture, locate: Callable[[str], Place]) -> Said:
    """Return what a capture of an agent says. Nothing is asked but the places of directories. Raises Unreadable."""
    agent = agents.agent(capture.agent) if capture.agent in agents.names() else None
    if agent is None:
        raise Unreadable(f"no agent called {capture.agent}")
    met: list[Place] = []

    def remember(path: str) -> Place:
        met.append(locate(path))
        return met[-1]

    drafts = agent.parse(capture, remember)
    asked = is_before_tool(capture.event) or (drafts and drafts[0].kind in _ANSWERED)
    # The first place that an agent's module asks for is that of the working directory.
    place = met[0] if drafts and met else None
    return Said([one for one in drafts if one.kind != model.PROJECT_SEEN], place, capture if asked else None)


def delivered(capture: Capture, session_of: Callable[[bytes], str]) -> Draft:
    """Read the note of a hook that printed a brief: the nonce of the session start, then the record.

    ``session_of`` tells the session that a capture began. Raises Unreadable.
    """
    nonce, _, line = capture.data.partition(b"\n")
    try:
        record = json.loads(line)
        items = [[bytes.fromhex(item[0]), str(item[1]), int(item[2])] for item in record["items"]]
        start = bytes.fromhex(nonce.decode("ascii"))
        payload = {**record, "items": items}
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise Unreadable(f"not a delivery record: {error}") from error
    return Draft(model.CONTEXT_DELIVERED, {**payload, "session": session_of(start)})


class Recent:
    """The latest captures that a hook may still ask about, by nonce."""

    def __init__(self) -> None:
        """There are none."""
        self._captures: dict[bytes, Capture] = {}
        self._bytes = 0

    def __iter__(self) -> Iterator[Capture]:
        """Give them, the oldest first."""
        return iter(self._captures.values())

    def get(self, nonce: bytes) -> Capture | None:
        """Return the capture of a nonce, None when it is not among them."""
        return self._captures.get(nonce)

    def keep(self, capture: Capture) -> None:
        """Keep a capture as the latest one, and give up the oldest ones."""
        captures = self._captures
        before = captures.pop(capture.nonce, None)
        captures[capture.nonce] = capture
        self._bytes += len(capture.data) - (len(before.data) if before is not None else 0)
        while len(captures) > RECENT_MAX or self._bytes > _RECENT_BYTES_MAX:
            self._bytes -= len(captures.pop(next(iter(captures))).data)

    def session_of(self, nonce: bytes) -> str | None:
        """Return the session that a capture is of; None when it is not known here."""
        known = self._captures.get(nonce)
        return None if known is None else _session_id(known)


class Intake:
    """Makes drafts of captures. ``device`` is its id in hex; ``view`` gives the index as it is."""

    def __init__(
        self,
        place: Callable[[str], Place],
        device: Callable[[], str],
        view: Callable[[], Reader],
        between: Callable[[], None],
    ) -> None:
        """Nothing is read before the first capture. ``between`` is called before each."""
        self.recent = Recent()
        self._place = place
        self._device = device
        self._view = view
        self._between = between
        self._told: dict[str, tuple[Place, Payload]] = {}

    def begin(self) -> None:
        """Begin a run: what was told about places in the last one is in the index now, or must be told again."""
        self._told.clear()

    def normalise(self, capture: Capture) -> Sequence[Draft]:
        """Turn a capture into drafts; keeps the latest captures for the daemon's answers. Raises Unreadable."""
        if capture.agent == OWN_AGENT and capture.event == DELIVERED:
            return [delivered(capture, self._session_of)]
        self._between()
        return self._take(said(capture, self._place))

    def follow(self, found: Said) -> Sequence[Draft]:
        """Turn what somebody else found a capture to say into the drafts that ``normalise`` makes of it."""
        self._between()
        return self._take(found)

    def _take(self, found: Said) -> Sequence[Draft]:
        if found.kept is not None:
            self.recent.keep(found.kept)
        return found.drafts if found.place is None else [*self.projects(found.place), *found.drafts]

    def projects(self, place: Place) -> list[Draft]:
        """Return the drafts that make a place's project known, with far ordinals; none when it is known already.

        None either when the index cannot tell: what is told without a look at it could part a project from its memory.
        """
        told = self._told.get(place.root)
        if told is not None and told[0] is place:
            return []
        payload = {
            "key": place.project,
            "name": plain(place.name),
            "identities": [[kind, plain(value)] for kind, value in place.identities],
            "path": place.root,
            "device": self._device(),
        }
        if told is not None and told[1] == payload:
            return []
        drafts: list[Draft] = []
        with contextlib.suppress(IndexDamaged, Busy, CannotWrite):
            view = self._view()
            if not view.knows_place(payload):
                drafts = [Draft(model.PROJECT_SEEN, payload, ORDINAL_PROJECT)]
                if old := view.former_key(self._device(), place):
                    drafts.append(Draft(model.PROJECT_LINKED, {"a": old, "b": place.project}, ORDINAL_LINK))
            self._told[place.root] = (place, payload)
        return drafts

    def _session_of(self, nonce: bytes) -> str:
        session = self.recent.session_of(nonce)
        if session is not None:
            return session
        with contextlib.suppress(IndexDamaged, Busy):
            return self._view().session_of(nonce)
        return ""


def _session_id(capture: Capture) -> str:
    try:
        value: Any = json.loads(capture.data)
    except (ValueError, RecursionError):
        return ""
    found = value.get("session_id") if isinstance(value, dict) else ""
    return found if isinstance(found, str) else ""
