"""What the daemon says to a hook: the context at a session start, a few memories at a prompt, else nothing.

Answers come from a read-only view of the index that is kept open; what was said is put into the spool, like every
other capture, so that the log knows what each session was told.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from typing import Final

from memorize import agents
from memorize.agents.payload import read_call
from memorize.bootstrap import App
from memorize.errors import Problem
from memorize.index.place import Place
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.log.spool import Unreadable, entry, put_batch, take
from memorize.model import CONTEXT_DELIVERED, Capture, Context, Draft
from memorize.recall import silence
from memorize.recall.brief import delivered_payload
from memorize.recall.context import Situation, build_context

_SESSION_START: Final = "SessionStart"
_PROMPT: Final = "UserPromptSubmit"


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
        if capture.agent not in agents.names():
            return b""
        kinds: dict[str, Callable[[Capture, dict[str, object]], Context | None]] = {
            _SESSION_START: self._session_start,
            _PROMPT: self._prompt,
        }
        find = kinds.get(capture.event)
        if find is None:
            return b""
        call = read_call(capture)
        context = find(capture, call)
        if context is None or not context.text:
            return b""
        answer = agents.agent(capture.agent).render(capture.event, context.text)
        if answer and context.items:
            place, session = self._where(call)
            payload = delivered_payload(context, capture.agent, place.project, capture.event, session)
            put_batch(self.app.home, [Draft(CONTEXT_DELIVERED, payload)], self.app.clock)
        return answer
