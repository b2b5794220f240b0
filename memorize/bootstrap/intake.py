"""From captures to drafts: what the agents' modules need to know, and what they cannot know.

Agents say what was done; here it becomes known where: a project is told with the first capture or verb that meets it
at a path of this device, and linked with the one it was before when only its key has changed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from memorize import agents, model
from memorize.agents.payload import plain
from memorize.agents.turns import ORDINAL_PROJECT
from memorize.capture.memorize_hook import ANSWER_S, BEFORE_S
from memorize.errors import Busy, CannotWrite, IndexDamaged
from memorize.index.place import Place
from memorize.index.read import Reader
from memorize.log.spool import Unreadable
from memorize.model import Capture, Draft, Payload

DELIVERED: Final = "delivered"
ORDINAL_LINK: Final = ORDINAL_PROJECT + 1
# Captures kept for a hook that asks about one which is ingested already.
_RECENT_MAX: Final = 64
_RECENT_BYTES_MAX: Final = 2 << 20
_ANSWERED: Final = frozenset({model.SESSION_OPENED, model.OBSERVED_PROMPT})


@lru_cache(maxsize=64)
def is_before_tool(event: str) -> bool:
    """Tell whether a hook's event is one before a tool runs."""
    return ANSWER_S.get(event.lower().replace("_", "").replace(".", ""), 0.0) == BEFORE_S


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
        self.recent: dict[bytes, Capture] = {}
        self._place = place
        self._device = device
        self._view = view
        self._between = between
        self._recent_bytes = 0
        self._told: dict[str, tuple[Place, Payload]] = {}

    def begin(self) -> None:
        """Begin a run: what was told about places in the last one is in the index now, or must be told again."""
        self._told.clear()

    def normalise(self, capture: Capture) -> Sequence[Draft]:
        """Turn a capture into drafts; keeps the latest captures for the daemon's answers. Raises Unreadable."""
        if capture.agent == "memorize" and capture.event == DELIVERED:
            return self._delivered(capture)
        agent = agents.agent(capture.agent) if capture.agent in agents.names() else None
        if agent is None:
            raise Unreadable(f"no agent called {capture.agent}")
        self._between()
        met: list[Place] = []

        def locate(path: str) -> Place:
            met.append(self._place(path))
            return met[-1]

        drafts = agent.parse(capture, locate)
        if is_before_tool(capture.event) or (drafts and drafts[0].kind in _ANSWERED):
            self._keep(capture)
        if not drafts:
            return []
        told = [draft for draft in drafts if draft.kind != model.PROJECT_SEEN]
        # The first place that an agent's module asks for is that of the working directory.
        return [*self.projects(met[0]), *told] if met else told

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

    def _keep(self, capture: Capture) -> None:
        before = self.recent.pop(capture.nonce, None)
        self.recent[capture.nonce] = capture
        self._recent_bytes += len(capture.data) - (len(before.data) if before is not None else 0)
        while len(self.recent) > _RECENT_MAX or self._recent_bytes > _RECENT_BYTES_MAX:
            self._recent_bytes -= len(self.recent.pop(next(iter(self.recent))).data)

    def _delivered(self, capture: Capture) -> Sequence[Draft]:
        """Read the note of a hook that printed a brief: the nonce of the session start, then the record."""
        nonce, _, line = capture.data.partition(b"\n")
        try:
            record = json.loads(line)
            items = [[bytes.fromhex(item[0]), str(item[1]), int(item[2])] for item in record["items"]]
            start = bytes.fromhex(nonce.decode("ascii"))
            payload = {**record, "items": items}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise Unreadable(f"not a delivery record: {error}") from error
        known = self.recent.get(start)
        session = _session_id(known) if known else self._session_of(start)
        return [Draft(model.CONTEXT_DELIVERED, {**payload, "session": session})]

    def _session_of(self, nonce: bytes) -> str:
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
