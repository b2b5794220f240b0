"""What the daemon says to a hook: the context at a session start, a few memories at a prompt, else nothing.

Answers come from a read-only view of the index that is kept open; what was said is put into the spool, like every
other capture, so that the log knows what each session was told.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Final

from memorize import agents
from memorize.agents import payload
from memorize.bootstrap import App
from memorize.errors import Problem
from memorize.index.place import Place
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.log.spool import Unreadable, entry, put_batch, take
from memorize.model import CONTEXT_DELIVERED, Capture, Context, Draft
from memorize.recall import silence
from memorize.recall.brief import delivered_payload
from memorize.recall.prompt import prompt_context

_SESSION_START: Final = "SessionStart"
_PROMPT: Final = "UserPromptSubmit"
# Sources of a session start at which the agent's window holds nothing of what it was told before.
_FORGOTTEN: Final = frozenset({"startup", "clear", "compact"})


class Answerer:
    """Answers by spool file name. One thread only."""

    def __init__(self, app: App) -> None:
        """Nothing is opened before the first question."""
        self.app = app
        self._reader: Reader | None = None

    def answer(self, name: str) -> bytes:
        """Return what the hook is to print, empty for silence. Never raises."""
        try:
            capture = self._capture(name)
            return self._answer(capture) if capture else b""
        except (Problem, Unreadable, OSError, sqlite3.Error, ValueError, RecursionError, MemoryError):
            # Silence is always a right answer; a wedged index is the ingester's to mend.
            self.close()
            return b""

    def close(self) -> None:
        """Close the view of the index; the next question opens it again."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with contextlib.suppress(sqlite3.Error):
                reader.close()

    def _capture(self, name: str) -> Capture | None:
        found = entry(name)
        if found is None:
            return None
        try:
            return take(self.app.files, f"{self.app.home.spool}/new", found)
        except FileNotFoundError:
            # The ingester was quicker.
            return self.app.recent.get(found.nonce)

    def _answer(self, capture: Capture) -> bytes:
        if capture.agent not in agents.names() or capture.event not in (_SESSION_START, _PROMPT):
            return b""
        call = payload.read(capture)
        place = self.app.place(payload.text_of(call, "cwd"))
        if place.capture_off:
            return b""
        session = payload.text_of(call, "session_id")
        if capture.event == _SESSION_START:
            context = self._session_start(place, session, payload.text_of(call, "source"))
        else:
            context = self._prompt(place, session, payload.text_of(call, "prompt"))
        answer = agents.agent(capture.agent).render(capture.event, context.text)
        if answer and context.items:
            told = delivered_payload(context, capture.agent, place.project, capture.event, session)
            put_batch(self.app.home, [Draft(CONTEXT_DELIVERED, told)], self.app.clock)
        return answer

    def _session_start(self, place: Place, session: str, source: str) -> Context:
        """After a compaction everything is told again, since the agent has just forgotten it."""
        told = frozenset() if source in _FORGOTTEN else self._told(session)
        return self.app.context(place, session, reader=self._view(), delivered=told)

    def _prompt(self, place: Place, session: str, text: str) -> Context:
        view = self._view()
        query = Query(view.connection, view.observation_text)
        now, told = self.app.clock.wall_ms(), self._told(session)
        hits = silence.answers(query, text, query.family(place.project), now, told, self.app.weights)
        return prompt_context(hits, now)

    def _told(self, session: str) -> frozenset[bytes]:
        return self._view().delivered(session)

    def _view(self) -> Reader:
        if self._reader is None:
            self._reader = Reader.open(self.app.home)
        return self._reader
