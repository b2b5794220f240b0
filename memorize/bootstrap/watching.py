"""What an agent is told before a tool: the rules for it, and what other sessions do. Put together of recall's parts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from memorize import limits
from memorize.agents import TITLES, shell
from memorize.agents.base import Intent
from memorize.bootstrap.store import Store
from memorize.index import briefs, commands, working
from memorize.index.devices import devices
from memorize.index.place import Place
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.model import Context
from memorize.patterns import late
from memorize.recall import before, gitdeeds, live
from memorize.recall.actions import action_context, rules_for_actions
from memorize.recall.live import Announced, Notice, View
from memorize.recall.needles import needles
from memorize.recall.triggers import EDIT, own_triggers, triggers_of

ACTION: Final = "action"
_ELSEWHERE: Final = late(r"/|[A-Za-z]:/")
_ANNOUNCED_MAX: Final = 256
# So many directories, the latest ones, are asked for their own triggers and aliases.
_PLACES_MAX: Final = 32
_NOTHING: Final = Context("", (), 0)


class Said(NamedTuple):
    """What is to be said before a tool: rules, then warnings."""

    rules: Context = _NOTHING
    notices: tuple[Notice, ...] = ()


class Watch:
    """Knows which edits were announced lately; everything else it asks the index."""

    def __init__(self, store: Store) -> None:
        """Nothing is announced yet."""
        self._store = store
        self._announced: dict[tuple[str, str, str], Announced] = {}

    def before(self, intent: Intent, view: Reader, nonce: bytes) -> Said:
        """Return what to say, whatever was said before; and keep what the intent announces."""
        store, now = self._store, self._store.clock.wall_ms()
        place = store.place(intent.cwd)
        key = store.known_as(place, view)
        query = Query(view.connection)
        rules = self._rules(query, intent, place, query.family(key), now)
        notices = [*self._beside(intent, place, view, key, now), *self._failed(intent, place, view, key, now)]
        self._announce(intent, key, nonce, now)
        return Said(rules, tuple(notices))

    def _rules(self, query: Query, intent: Intent, place: Place, roots: tuple[str, ...], now: int) -> Context:
        if not any(query.triggered(root, now) for root in (*roots, "")):
            return _NOTHING
        # Globs count from the root of the repository: what lies elsewhere, with its whole path, fits none.
        actions = [f"{EDIT}{target.path}" for target in intent.targets if not _ELSEWHERE.match(target.path)]
        if intent.command:
            own = own_triggers(place.marker)
            actions += triggers_of(intent.command, aliases=place.aliases, own=own, shell=intent.shell)
        found = rules_for_actions(query, actions, roots, now)
        context = action_context(found, now, self._store.clock.zone_minutes())
        return context._replace(items=tuple((identity, ACTION, score) for identity, _, score in context.items))

    def _beside(self, intent: Intent, place: Place, view: Reader, key: str, now: int) -> list[Notice]:
        deeds = gitdeeds.deeds(intent.command, intent.cwd, intent.shell) if intent.command else []
        if not deeds and not intent.targets:
            return []
        around = around_session(self._store, view, key, place, now, without=intent.session)
        if not around.others:
            return []
        family = view.family(key)
        coming = tuple(one for one in self._announced.values() if one.project in family)
        around = around._replace(announced=coming)
        found = [
            notice for target in intent.targets for notice in live.file_notices(around, target.path, target.branch, now)
        ]
        for deed in deeds:
            there = self._store.place(deed.folder)
            if there.project == place.project:
                at = around._replace(root=there.root, branch=there.branch)
                found += live.git_notices(at, deed.within(there.root, there.dir), now)
        return found

    def _failed(self, intent: Intent, place: Place, view: Reader, key: str, now: int) -> list[Notice]:
        """Return the failure of this command; what only looks is not kept when it succeeds, so nobody can tell."""
        if not intent.command:
            return []
        number = commands.number(intent.command, place.dir)
        runs = working.runs(view.connection, view.family(key), number)
        failure = before.standing_failure(runs, intent.session)
        if failure is None or shell.reads_only(intent.command):
            return []
        return [before.failure_notice(failure, view.payload(failure.run.n), TITLES, now)]

    def _announce(self, intent: Intent, key: str, nonce: bytes, now: int) -> None:
        for target in intent.targets:
            slot = (intent.session, intent.agent, target.path)
            self._announced.pop(slot, None)
            self._announced[slot] = Announced(nonce, key, target.path, intent.agent, intent.session, target.branch, now)
        while len(self._announced) > _ANNOUNCED_MAX:
            del self._announced[next(iter(self._announced))]


def around_session(store: Store, view: Reader, key: str, place: Place, now: int, without: str = "") -> View:
    """Return the sessions at work in a project and what they wrote, as seen from a place.

    ``without`` is the session that asks.
    """
    found = at_work(store, view, view.family(key), now, without)
    return found._replace(root=place.root, branch=place.branch, folds=place.folds)


def at_work(store: Store, view: Reader, keys: Collection[str] | None, now: int, without: str = "") -> View:
    """Return the sessions at work in these projects, or in all, and what they wrote, as seen from nowhere."""
    connection = view.connection
    found = working.sessions(connection, keys, now - live.NEWS_MS_MAX)
    found = [one for one in found if not without or one.session != without]
    others = live.others(found, devices(connection), store.device(), now) if found else ()
    touches = working.touches(connection, keys, min(other.since for other in others)) if others else []
    return View(others, tuple(touches), titles=TITLES)


def needles_of(store: Store, view: Reader) -> tuple[bytes, ...]:
    """Return what the hook looks for when it has no daemon to ask: what the rules of all projects may fire by."""
    rules = Query(view.connection).triggered(None, store.clock.wall_ms())
    triggers = {name for _, names in rules for name in names}
    own: dict[str, tuple[str, ...]] = {}
    aliases: set[str] = set()
    for spot in briefs.spots(view.connection, store.device())[:_PLACES_MAX] if triggers else ():
        place = store.place(spot.path)
        aliases.update(place.aliases.values())
        for name, lines in own_triggers(place.marker).items():
            own[name] = (*own.get(name, ()), *lines)
    return needles(triggers, own, aliases)


def warned(said: Said, octets: int = limits.ANSWER_BYTES_MAX) -> before.Warned:
    """Return the warnings as text, in what the rules leave of the room."""
    return before.warnings(said.notices, octets - len(said.rules.text.encode()))
