"""What the daemon says to a hook at a session start, at a prompt, and before a tool; nothing at any other event.

Answers come from a read-only view of the index that is kept open. What was said is put into the spool, like every other
capture, but only when the hook was still there to print it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

from memorize import agents
from memorize.agents import payload
from memorize.bootstrap import App
from memorize.bootstrap.intake import is_before_tool
from memorize.bootstrap.watching import Watch
from memorize.bootstrap.watching import warned as warnings_of
from memorize.capture.memorize_hook import ANSWER_S
from memorize.errors import IndexDamaged, Problem
from memorize.index.place import Place
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.log.spool import Unreadable, entry, put_batch, take
from memorize.model import (
    CONFLICT_WARNED,
    CONTEXT_DELIVERED,
    OBSERVED_PROMPT,
    SESSION_OPENED,
    Capture,
    Context,
    Draft,
    Payload,
)
from memorize.recall import silence
from memorize.recall.before import warned_payload
from memorize.recall.brief import delivered_payload
from memorize.recall.prompt import prompt_context

# Sources of a session start at which the agent's window holds nothing of what it was told before.
_FORGOTTEN: Final = frozenset({"startup", "clear", "compact"})
_SESSIONS_MAX: Final = 256
# Longer than an answer may take, an index that somebody holds is not waited for.
_BUSY_MS: Final = 50


class Answer(NamedTuple):
    """What the hook is to print in which session, and the record of what that tells, None when it tells nothing.

    ``afresh``: the agent's window was empty, so only this is in it. ``warned`` is the record of warnings, ``marks`` are
    what stands for them.
    """

    text: bytes = b""
    session: str = ""
    afresh: bool = False
    record: Payload | None = None
    warned: Payload | None = None
    marks: tuple[bytes, ...] = ()


SILENCE: Final = Answer()


class Told:
    """What sessions were told that the index may not know yet: the record of it waits in the spool like all else."""

    def __init__(self) -> None:
        """No session is known."""
        self._items: dict[str, set[bytes]] = {}
        self._afresh: set[str] = set()

    def begin(self, session: str) -> None:
        """The agent's window is empty: whatever was told before is to be told again."""
        self.forget(session)
        self._of(session)
        self._afresh.add(session)

    def forget(self, session: str) -> None:
        """What the session was told is for the index to know."""
        self._items.pop(session, None)
        self._afresh.discard(session)

    def add(self, session: str, items: Iterable[bytes]) -> None:
        """These were printed."""
        self._of(session).update(items)

    def of(self, session: str, view: Reader) -> frozenset[bytes]:
        """Return what the session was told since its window was empty."""
        recent = self._items.get(session, set())
        return frozenset(recent) if session in self._afresh else view.delivered(session) | recent

    def _of(self, session: str) -> set[bytes]:
        while session not in self._items and len(self._items) >= _SESSIONS_MAX:
            self.forget(next(iter(self._items)))
        return self._items.setdefault(session, set())


def seconds_for(name: str) -> float:
    """Return how long the hook of this spool file waits for something; 0 where there is never anything to say."""
    found = entry(name)
    if found is None or found.agent not in agents.names():
        return 0.0
    return ANSWER_S.get(found.event.lower().replace("_", "").replace(".", ""), 0.0)


def _is_damage(error: Exception) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


class Answerer:
    """Answers by spool file name. One thread only."""

    def __init__(self, app: App) -> None:
        """Nothing is opened before the first question."""
        self.app = app
        self.told = Told()
        self.watch = Watch(app)
        self.failures = 0
        self.failure = ""
        self._reader: Reader | None = None

    def warm(self) -> None:
        """Load what the first answer would have to wait for."""
        for name in agents.names():
            agents.agent(name)
        try:
            self._view().counts()
        except Exception:  # the first answer will tell
            self.close()

    def answer(self, name: str) -> Answer | None:
        """Return what the hook is to print; None when the index is not there or broken. Never raises."""
        try:
            capture = self._capture(name)
            return self._answer(capture) if capture else SILENCE
        except Unreadable:
            return SILENCE
        except Exception as error:
            # Silence is always a right answer.
            self.close()
            if isinstance(error, IndexDamaged) or _is_damage(error):
                return None
            self.failed(error)
            return SILENCE

    def failed(self, error: Exception) -> None:
        """Count what should not have happened; ``status`` tells it."""
        self.failures += 1
        self.failure = f"{type(error).__name__}: {error}"

    def printed(self, answer: Answer) -> None:
        """Note that the hook took the answer."""
        if answer.afresh:
            self.told.begin(answer.session)
        drafts = [
            Draft(kind, payload, ordinal)
            for ordinal, (kind, payload) in enumerate(
                ((CONTEXT_DELIVERED, answer.record), (CONFLICT_WARNED, answer.warned))
            )
            if payload is not None
        ]
        if not drafts:
            return
        items = answer.record["items"] if answer.record is not None else ()
        self.told.add(answer.session, [*(item[0] for item in items), *answer.marks])
        with contextlib.suppress(Problem, ValueError):  # a full disk: told twice is better than not told
            put_batch(self.app.home, drafts, self.app.clock)

    def missed(self, answer: Answer) -> None:
        """Note that the hook had given up: at a session start it printed the brief instead, and noted that itself."""
        if answer.afresh:
            self.told.forget(answer.session)

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
            return self.app.intake.recent.get(found.nonce)

    def _answer(self, capture: Capture) -> Answer:
        if is_before_tool(capture.event):
            return self._before(capture)
        agent = agents.agent(capture.agent)
        drafts = agent.parse(capture, self.app.place)
        if not drafts or drafts[0].kind not in (SESSION_OPENED, OBSERVED_PROMPT):
            return SILENCE  # not the person's words, or a place that is not remembered
        facts = drafts[0].payload
        session: str = facts["session"]
        place = self.app.place(payload.text_of(payload.read(capture), "cwd"))
        # After a compaction everything is told again, since the agent has just forgotten it.
        afresh = drafts[0].kind == SESSION_OPENED and facts["source"] in _FORGOTTEN
        view = self._view()
        told = frozenset() if afresh else self.told.of(session, view)
        if drafts[0].kind == SESSION_OPENED:
            context = self.app.context(place, session, reader=view, delivered=told)
        else:
            context = self._prompt(view, place, told, facts["text"])
        text = agent.render(capture.event, context.text)
        if not text or not context.items:
            return Answer(text, session, afresh)
        record = delivered_payload(context, capture.agent, place.project, capture.event, session)
        return Answer(text, session, afresh, record)

    def _before(self, capture: Capture) -> Answer:
        """Return the rules for what is about to be done, each time, and the warnings that were not given yet."""
        agent = agents.agent(capture.agent)
        intent = agent.intent(capture, self.app.place)
        if intent is None:
            return SILENCE  # neither a command nor an edit, or a place that is not remembered
        view = self._view()
        said = self.watch.before(intent, view, capture.nonce)
        if said.notices:
            told = self.told.of(intent.session, view)
            said = said._replace(notices=tuple(notice for notice in said.notices if notice.mark not in told))
        warned = warnings_of(said)
        text = agent.render(capture.event, said.rules.text + warned.text)
        if not text:
            return SILENCE
        project, session, event = intent.place.project, intent.session, capture.event
        answer = Answer(text, session)
        if said.rules.items:
            answer = answer._replace(record=delivered_payload(said.rules, agent.name, project, event, session))
        if warned.notices:
            payload = warned_payload(warned.notices, agent.name, project, event, session)
            answer = answer._replace(warned=payload, marks=tuple(notice.mark for notice in warned.notices))
        return answer

    def _prompt(self, view: Reader, place: Place, told: frozenset[bytes], text: str) -> Context:
        query = Query(view.connection, view.observation_text)
        now = self.app.clock.wall_ms()
        hits = silence.answers(query, text, query.family(self.app.known_as(place, view)), now, told, self.app.weights)
        return prompt_context(hits, now)

    def _view(self) -> Reader:
        if self._reader is None:
            self._reader = Reader.open(self.app.home)
        self._reader.connection.execute(f"pragma busy_timeout = {_BUSY_MS}")
        return self._reader
