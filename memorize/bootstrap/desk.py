"""What the consolidation worker needs of the shell, out of one state directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memorize.bootstrap.models import Models
from memorize.bootstrap.store import Store
from memorize.consolidate.login import Choice
from memorize.consolidate.neighbours import Neighbours, side_of
from memorize.consolidate.prompt import Offered
from memorize.consolidate.reconcile import Memory
from memorize.consolidate.windows import Window
from memorize.consolidate.worker import Report, Terms, run
from memorize.index.query import Query
from memorize.model import OBSERVED_PROMPT, SCOPES, Draft
from memorize.recall import search

_OFFERED_MAX: Final = 20
# Of what the person said so much is searched with; more words make the search slower and no better.
_ASKED_CHARS: Final = 2_000
# Failures after which the login is looked at anew.
_LOGIN_LOST: Final = ("not-logged-in", "missing")


class Desk:
    """The memories beside a window, and the way into the log."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store

    def memory(self, window: Window) -> Memory:
        """Return what stands beside a window's memories, as the index is now."""
        return Neighbours(self._store.reader(drain=False), window.project, self._store.clock.wall_ms())

    def offered(self, window: Window) -> Sequence[Offered]:
        """Return the memories that share most words with what the person said in a window."""
        reader = self._store.reader(drain=False)
        said = [str((event.payload or {}).get("text", "")) for event in window.events if event.kind == OBSERVED_PROMPT]
        said += [line.text for line in window.lines if line.role == "user"]
        text = " ".join(said)[:_ASKED_CHARS]
        if not text.strip():
            return []
        query = Query(reader.connection)
        now = self._store.clock.wall_ms()
        hits = search.search(query, text, [window.project], SCOPES, now, _OFFERED_MAX).hits
        found = ((hit.row.id, side_of(reader, hit.row.id)) for hit in hits)
        return [
            Offered(identity, side.kind, side.scope, side.text, side.trust, side.obsolete_when)
            for identity, side in found
            if side is not None
        ]

    def told(self, window: Window) -> frozenset[bytes]:
        """Return the memories that the window's session was told since its last compaction."""
        return self._store.reader(drain=False).delivered(window.session)

    def append(self, drafts: Sequence[Draft]) -> object:
        """Write a batch and return when it is durable."""
        return self._store.append(drafts, strict=True)


class Office:
    """How the models of one state directory are used."""

    def __init__(self, store: Store, models: Models) -> None:
        """Nothing is read yet."""
        self._store = store
        self._models = models
        self.desk = Desk(store)

    def terms(self, observations_min: int = 1, *, by_hand: bool) -> Terms:
        """Return how the worker goes about it under this configuration."""
        config = self._store.config
        return Terms(
            observations_min=observations_min,
            deadline_s=float(config.deadline_s),
            model=config.model or None,
            by_hand=by_hand,
        )

    def close(self, windows: Sequence[Window], terms: Terms) -> Report:
        """Close what can be closed, and remember what was learned of the login."""
        choice = self._models.extractors.choose()
        if choice.model is not None and not terms.by_hand and windows and not self._models.attempts.boundary():
            return Report(wait=len(windows))
        report = run(windows, self.desk, choice, self._models.meter, self._models.attempts, terms)
        self._learn(choice, report)
        return report

    def _learn(self, choice: Choice, report: Report) -> None:
        if choice.model is None:
            return
        if report.calls > report.failed:
            self._models.extractors.answered(choice.name)
        if any(word in report.notice for word in _LOGIN_LOST):
            self._models.extractors.forget(choice.name)
