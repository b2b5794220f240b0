"""``App``: what verbs and daemon ask for. Search, contexts and briefs, consolidation, one round of work."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from memorize import config as settings
from memorize import limits, model
from memorize.agents import TITLES
from memorize.bootstrap.store import Store
from memorize.clock import Clock, SystemClock
from memorize.config import Config
from memorize.errors import BadConfig, BadHome, Busy, CannotRead, IndexDamaged, Problem, ShortId
from memorize.index import groups, schema, unclaimed
from memorize.index.gitconfig import personal_files
from memorize.index.groups import Group
from memorize.index.place import Place
from memorize.index.query import EXPIRED, LIVE, Query
from memorize.index.read import Reader
from memorize.index.unclaimed import OpenSession, Owner
from memorize.log.codec import Bad
from memorize.log.lock import Lock
from memorize.log.segments import read_event
from memorize.model import Context, Event
from memorize.paths import Home, state_root
from memorize.recall import search as finding
from memorize.recall.rank import Weights

# What a verb that only reads does without is loaded where it is asked for.
if TYPE_CHECKING:
    from memorize.bootstrap.desk import Office
    from memorize.bootstrap.erasing import Erasing
    from memorize.bootstrap.models import Models
    from memorize.consolidate import worker
    from memorize.consolidate.windows import Window
    from memorize.recall.context import Situation

# One round of the daemon takes in this many files, so that boundaries behind a large backlog are not late.
WORK_FILES_MAX: Final = 2_048
# A session that said nothing for so long and never ended has died.
DEAD_MS: Final = 6 * 3600 * 1000
# After so long without a word from a device its sessions are consolidated here.
SILENT_MS: Final = 7 * 24 * 3600 * 1000
_FILES: Final = 8


class App(Store):
    """One state directory and everything that works on it."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        patience_s: float | None = None,
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Put the parts together; nothing is read or written yet. ``environ`` is what a model's program is run in."""
        super().__init__(home, config, clock, patience_s)
        self.environ = environ
        self.git_settings = personal_files(environ)
        self.weights = Weights(
            half_life_days=config.half_life_days,
            importance=config.importance_exponent,
            recency=config.recency_exponent,
            relevance=config.relevance_exponent,
        )
        self.catch_up = True  # look for sessions that ended while nobody looked
        self._looked: tuple[tuple[int, int], int] | None = None  # file of the index, last event looked at
        self._stale = True
        self.after_ingest, self.after_sync = lambda: self.erasing.after_ingest(), lambda: self.erasing.again()
        self.packs_clean = self._packs_clean

    @cached_property
    def erasing(self) -> Erasing:
        """This device's part in erasures."""
        from memorize.bootstrap.erasing import Erasing

        return Erasing(self)

    def again(self) -> App:
        """Return the same parts once more, for another thread: what is open belongs to the thread that opened it."""
        return App(self.home, self.config, self.clock, None, self.environ)

    def _packs_clean(self) -> bool:
        from memorize.bootstrap.syncing import Syncing  # only erasures ask, and it knows every way to sync

        return Syncing(self).packs_clean()

    def search(
        self,
        text: str,
        project: str | None,
        limit: int = 10,
        *,
        observations: bool = False,
        kinds: Collection[str] = (),
        dead: bool = False,
        review: bool = False,
        query: Query | None = None,
    ) -> finding.Results:
        """Search one project (None: all) and the personal memories; an empty text lists them by rank."""
        return finding.search(
            query or self.query(),
            text,
            [project] if project else [],
            model.SCOPES,
            self.clock.wall_ms(),
            limit,
            include_observations=observations,
            kinds=kinds,
            include_dead=dead,
            include_review=review,
            weights=self.weights,
        )

    def resolve(self, prefix: str, *, events: bool = False) -> bytes:
        """Return the id that begins with these digits. Raises ShortId, UnknownMemory, AmbiguousId."""
        if len(prefix.strip()) < groups.SHORT_MIN:
            raise ShortId(prefix=prefix.strip(), count=groups.SHORT_MIN)
        return groups.find(self.reader().connection, prefix, events=events)

    def group(self, identity: bytes) -> Group:
        """Return a memory with its text group. Raises UnknownMemory."""
        found = groups.load(self.reader().connection, identity)
        expired = found.expires_at is not None and found.expires_at <= self.clock.wall_ms()
        return found._replace(status=EXPIRED) if expired and found.status == LIVE else found

    def batch_of(self, identities: tuple[bytes, ...]) -> list[bytes]:
        """Return these events and their like from the same batches."""
        return groups.siblings(self.reader().connection, identities)

    def pins(self, group: Group) -> list[bytes]:
        """Return the pins of a memory or of what it replaced."""
        return groups.pins(self.reader().connection, (*group.members, *group.supersedes))

    # -- contexts -------------------------------------------------------------------------------------------------

    def context(
        self,
        place: Place,
        session: str = "",
        *,
        reader: Reader | None = None,
        delivered: frozenset[bytes] = frozenset(),
    ) -> Context:
        """Return what a session that starts at this place is told; without a session, its brief."""
        from memorize.recall.context import Situation

        view = reader or self.reader()
        key, now = self.known_as(place, view), self.clock.wall_ms()
        beside: tuple[str, ...] = ()
        if session:
            from memorize.bootstrap import watching  # with its tables of commands
            from memorize.recall import live

            beside = live.also_here(watching.around_session(self, view, key, place, now, without=session), now)
        situation = Situation(key, place.name, session, place.branch, live=beside, delivered=delivered)
        return self._context(view, situation)

    def _context(self, view: Reader, situation: Situation) -> Context:
        from memorize.recall.context import build_context

        query, zone = Query(view.connection, view.observation_text), self.clock.zone_minutes()
        files = query.recent_files(query.family(situation.project), _FILES)
        known = situation._replace(files=files, titles=TITLES, zone_minutes=zone)
        return build_context(query, known, self.clock.wall_ms(), self.config.context_tokens, weights=self.weights)

    def refresh_briefs(self, project: str | None = None, *, force: bool = True, drain: bool = True) -> bool:
        """Render the briefs of all directories, or of one project's; return whether anything had to be done.

        With ``force`` off, nothing is done while the state is the one that was rendered last.
        """
        from memorize.agents import briefing
        from memorize.bootstrap import watching
        from memorize.index import briefs
        from memorize.recall.context import Situation

        view = self.reader(drain=drain)
        mark = briefs.state_mark(view.connection)
        if not force and mark == briefs.rendered_mark(view.connection):
            return False
        spots = briefs.spots(view.connection, self.device(), project)
        made = briefing.render(spots, lambda spot: self._context(view, Situation(spot.project, spot.name)))
        briefs.put(self.home.index, made, mark if project is None else None, self._busy_s)
        briefing.write_files(self.home, made, all_of_them=project is None)
        briefing.write_triggers(self.home, watching.needles_of(self, view))
        return True

    def changed(self, scope: str, project: str) -> None:
        """Bring the briefs up to a change of memories of a project, or of personal ones; what hinders that is noted."""
        try:
            self.refresh_briefs(project if scope == "project" else None, drain=False)
        except (Problem, OSError) as problem:
            self.note(problem)

    # -- consolidation --------------------------------------------------------------------------------------------

    def open_sessions(
        self, only: Collection[tuple[str, str]] | None = None, *, all_devices: bool = False
    ) -> list[OpenSession]:
        """Return the sessions of this device, or of one long silent, that have a window open."""
        owner = Owner(self.device(), self.identity.replica, self.clock.wall_ms() - SILENT_MS)
        return unclaimed.open_sessions(self.reader().connection, None if all_devices else owner, only)

    def open_windows(
        self, sessions: Collection[tuple[str, str]] | None = None, *, all_devices: bool = False
    ) -> list[Window]:
        """Return the windows that no accepted claim covers, of these (agent, session) pairs or of all."""
        from memorize import reading
        from memorize.consolidate.windows import windows

        found: list[Window] = []
        for one in self.open_sessions(sessions, all_devices=all_devices):
            spots = unclaimed.unclaimed(self.reader(drain=False).connection, one.session)
            events = self._events(spots)
            own = [event for event in events if event.payload and event.payload.get("agent") == one.agent]
            view = self.reader(drain=False).connection
            pieces = reading.of_session(view, one.agent, one.session, self.may_remember)
            found += windows(one.agent, one.session, own, pieces)
        return found

    def may_remember(self, directory: str) -> bool:
        """Tell whether the person wants what is said in a directory remembered; an unknown one may be."""
        return not directory or not self.place(directory).capture_off

    def _events(self, spots: Iterable[tuple[str, int, int]]) -> list[Event]:
        """Read events; one that is damaged in the log is left out, since nobody can ever read it (``verify`` tells)."""
        found = []
        for file, offset, length in spots:
            with contextlib.suppress(Bad):
                found.append(read_event(self.home.root / file, offset, length))
        return found

    def windows_of(self, project: str | None) -> list[Window]:
        """Return the open windows that a person means: of every device, in one project and all joined with it."""
        found = self.open_windows(all_devices=True)
        family = self.reader(drain=False).family(project) if project is not None else ()
        return [one for one in found if project is None or one.project in family]

    def consolidate(
        self,
        sessions: Collection[tuple[str, str]] | None = None,
        *,
        project: str | None = None,
        observations_min: int = 1,
        wait_s: float = 0.0,
    ) -> worker.Report:
        """Form memories from the open windows of these sessions, or by hand (None) from all of a project.

        By hand neither the minimum nor a wait after failures holds; the caps do. One worker at a time; raises Busy
        when another one is at it.
        """
        with Lock(self.home.locks / "consolidate", wait_s):
            by_hand = sessions is None
            chosen = self.windows_of(project) if sessions is None else self.open_windows(sessions)
            if by_hand and project is None:
                self.models.attempts.keep_only(one.key for one in chosen)
            return self.office.close(chosen, self.office.terms(observations_min, by_hand=by_hand))

    def windows_again(self, project: str | None) -> list[Window]:
        """Return the windows that rules have closed, to be read once more by a model."""
        from memorize.consolidate.windows import Window

        reader = self.reader()
        family = reader.family(project) if project is not None else ()
        found = []
        for claim in unclaimed.claims_by(reader.connection, "rules"):
            if project is not None and claim.project not in family:
                continue
            events = [event for source in claim.sources if (event := reader.event(source)) is not None]
            said = sorted((event for event in events if event.payload), key=lambda event: event.order)
            if said:
                found.append(Window(claim.agent, claim.session, claim.project, tuple(said), redo=claim.id))
        return found

    def close_windows(self, chosen: Sequence[Window], wait_s: float = 0.0) -> worker.Report:
        """Form memories from these windows, by hand. Raises Busy when another worker is at it."""
        with Lock(self.home.locks / "consolidate", wait_s):
            return self.office.close(chosen, self.office.terms(by_hand=True))

    @cached_property
    def models(self) -> Models:
        """The extractors, the meter and what failed."""
        from memorize.bootstrap.models import models  # most verbs need none of it

        return models(self, self.environ)

    @cached_property
    def office(self) -> Office:
        """Where the models are put to work."""
        from memorize.bootstrap.desk import Office  # its tables of patterns take 30 ms to compile

        return Office(self, self.models)

    def work_once(self) -> int:
        """Do one round of what the daemon does: ingest, consolidate behind boundaries, render briefs.

        Returns the number of events and windows that were dealt with; 0 when there was nothing to do.
        """
        if self._looked is None:
            with contextlib.suppress(IndexDamaged):
                self._looked = self._latest()
        report = self.ingest(limit=WORK_FILES_MAX)
        done = report.files + report.recovered
        self._stale = self._stale or bool(done)
        if report.left:
            return done
        if self.config.extractor != "off":
            with contextlib.suppress(Busy):  # the one that is at it may have begun before: try again
                done += self._consolidate_ended()
        if self._stale or done:
            self.refresh_briefs(force=False)
            self._stale = False
        return done

    def _latest(self) -> tuple[tuple[int, int], int]:
        return schema.file_identity(self.home.index), unclaimed.arrived(self.reader(drain=False).connection)

    def _consolidate_ended(self) -> int:
        """Consolidate behind the boundaries that came since the last look, whoever ingested them."""
        latest = self._latest()
        if self._looked is None or self._looked[0] != latest[0]:
            # Another index numbers its events anew.
            self.catch_up, self._looked = True, latest
        connection = self.reader(drain=False).connection
        ended = unclaimed.boundaries(connection, self._looked[1])
        if going_on := unclaimed.answered(connection, self._looked[1]) - ended:
            ended |= {
                (one.agent, one.session)
                for one in self.open_sessions(going_on)
                if one.observations >= limits.STOP_OBSERVATIONS_MIN
            }
        if self.catch_up:
            ended |= self._ended_sessions()
        found = self.consolidate(ended, observations_min=self.config.observations_min).windows if ended else 0
        self._looked, self.catch_up = latest, False
        return found

    def _ended_sessions(self) -> set[tuple[str, str]]:
        """Sessions that ended while nobody looked: closed, or so long quiet that they must have died."""
        now = self.clock.wall_ms()
        return {
            (one.agent, one.session)
            for one in self.open_sessions()
            if (one.closed is not None and one.closed >= one.last) or now - one.last > DEAD_MS
        }


def open_app(environ: Mapping[str, str], clock: Clock | None = None, patience_s: float | None = None) -> App:
    """Return the program for this environment; ``patience_s`` is that of ``Store``.

    Raises BadHome, BadConfig, CannotRead.
    """
    home = Home(state_root(environ))
    try:
        text = home.config.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except NotADirectoryError as error:
        raise BadHome(path=home.root, detail="it is a file, or lies below one") from error
    except UnicodeDecodeError as error:
        detail = f"it is not UTF-8 (byte {error.start + 1}); save it so"
        raise BadConfig(path=home.config, detail=detail) from error
    except OSError as error:
        raise CannotRead(path=home.config, detail=error.strerror or error) from error
    return App(home, settings.parse(text, str(home.config)), clock or SystemClock(), patience_s, environ)
