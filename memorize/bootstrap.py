"""The composition root: puts the rooms together once and hands them to verbs and daemon as ``App``.

Nothing below this room reads the environment, and nothing above it knows how the parts are wired.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from memorize import agents, model, reading
from memorize import config as settings
from memorize.agents import briefing
from memorize.clock import Clock, SystemClock
from memorize.config import Config
from memorize.consolidate.windows import Window, windows
from memorize.errors import BadHome, Busy, CannotRead, IndexDamaged, IndexMissing, NotWritten, SyncedHome
from memorize.index import briefs, groups, unclaimed
from memorize.index.groups import Group
from memorize.index.place import Place, Places
from memorize.index.projector import Projector
from memorize.index.query import Query
from memorize.index.read import Reader
from memorize.index.rebuild import rebuild
from memorize.index.unclaimed import OpenSession
from memorize.log.files import RealFiles
from memorize.log.identity import Identity, load_or_renew
from memorize.log.ingest import Ingester, IngestReport
from memorize.log.lock import Lock
from memorize.log.recovery import IndexAhead
from memorize.log.segments import read_event
from memorize.log.spool import Unreadable, put_batch
from memorize.log.syncfolders import syncing_tool
from memorize.model import Capture, Context, Draft, Payload
from memorize.paths import Home, state_root
from memorize.recall import search as finding
from memorize.recall.context import Situation, build_context
from memorize.recall.rank import Weights

if TYPE_CHECKING:
    from memorize.consolidate import worker

DELIVERED: Final = "delivered"
TITLES: Final = MappingProxyType({name: agents.agent(name).title for name in agents.names()})
# One round of the daemon takes in this many files, so that boundaries behind a large backlog are not late.
WORK_FILES_MAX: Final = 2_048
# A session that said nothing for so long and never ended has died.
DEAD_MS: Final = 6 * 3600 * 1000
_FILES: Final = 8
_TRIES: Final = 3


class App:
    """One state directory and everything that works on it. Cheap to make; parts are opened when they are needed."""

    def __init__(self, home: Home, config: Config, clock: Clock) -> None:
        """Put the parts together; nothing is read or written yet."""
        self.home = home
        self.config = config
        self.clock = clock
        self.files = RealFiles()
        self.projector = Projector(home.index)
        self.weights = Weights(
            half_life_days=config.half_life_days,
            importance=config.importance_exponent,
            recency=config.recency_exponent,
            relevance=config.relevance_exponent,
        )
        self.boundaries: dict[tuple[str, str], str] = {}
        self.recent: dict[bytes, Capture] = {}
        self._readers: list[Reader] = []
        self._first = True

    # -- identity and place ---------------------------------------------------------------------------------------

    @cached_property
    def identity(self) -> Identity:
        """Store, device and replica of this state directory; made at the first use. Raises SyncedHome."""
        if not self.home.identity.exists() and (tool := syncing_tool(self.home.root)) is not None:
            raise SyncedHome(path=self.home.root, tool=tool)
        return load_or_renew(self.home, self.files, self.clock)

    def place(self, directory: str) -> Place:
        """Return the project of a directory. Relative paths are taken from the process's own directory."""
        return self._places(directory)

    @cached_property
    def _places(self) -> Places:
        return Places(self.identity.device.hex(), self.home.exclude, self.clock)

    def seen(self, place: Place) -> list[Draft]:
        """Return the draft that makes a place's project known, with a far ordinal; none when it is known already."""
        payload = {
            "key": place.project,
            "name": place.name,
            "identities": [list(pair) for pair in place.identities],
            "path": place.root,
            "device": self.identity.device.hex(),
        }
        return [] if self._knows(payload) else [Draft(model.PROJECT_SEEN, payload, ordinal=100)]

    # -- the way in -----------------------------------------------------------------------------------------------

    def normalise(self, capture: Capture) -> Sequence[Draft]:
        """Turn a capture into drafts; notes boundaries and keeps the latest captures for the daemon's answers."""
        if capture.agent == "memorize" and capture.event == DELIVERED:
            return self._delivered(capture)
        agent = agents.agent(capture.agent) if capture.agent in agents.names() else None
        if agent is None:
            raise Unreadable(f"no agent called {capture.agent}")
        drafts = agent.parse(capture, self.place)
        self.recent[capture.nonce] = capture
        while len(self.recent) > 64:
            del self.recent[next(iter(self.recent))]
        if drafts and (kind := agent.boundary(capture)) is not None:
            payload = drafts[0].payload
            self.boundaries[payload["agent"], payload["session"]] = kind
        return [told for draft in drafts if (told := self._news(draft)) is not None]

    def _news(self, draft: Draft) -> Draft | None:
        """Add the device to a ``project.seen``, and leave out one that tells nothing new."""
        if draft.kind != model.PROJECT_SEEN:
            return draft
        payload = {**draft.payload, "device": self.identity.device.hex()}
        return None if self._knows(payload) else draft._replace(payload=payload)

    def _knows(self, payload: Payload) -> bool:
        with contextlib.suppress(IndexMissing, IndexDamaged, Busy):
            return self.reader(drain=False).knows_place(payload)
        return False

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
        with contextlib.suppress(IndexMissing, IndexDamaged, Busy):
            return self.reader(drain=False).session_of(nonce)
        return ""

    def ingest(self, limit: int | None = None, wait_s: float = 5.0) -> IngestReport:
        """Ingest the spool; builds the index first when it is missing, damaged or ahead of the log.

        Raises Busy, CannotRead, CannotWrite.
        """
        ingester = self._ingester
        for _ in range(_TRIES):
            try:
                return ingester.run(limit, wait_s)
            except (IndexMissing, IndexDamaged, IndexAhead):
                self.rebuild(wait_s)
        return ingester.run(limit, wait_s)

    @cached_property
    def _ingester(self) -> Ingester:
        return Ingester(self.home, self.files, self.clock, self.identity, self.normalise, self.projector)

    def append(self, drafts: Sequence[Draft], *, strict: bool = False) -> list[bytes]:
        """Write drafts as one batch and return their ids in order of ordinal. Raises Busy, CannotWrite, NotWritten."""
        nonce = put_batch(self.home, drafts, self.clock, strict)
        self.ingest()
        known = self.projector.known([nonce])
        wanted = [(nonce, draft.ordinal) for draft in sorted(drafts, key=lambda draft: draft.ordinal)]
        if any(name not in known for name in wanted):
            raise NotWritten(path=self.home.spool)
        return [known[name] for name in wanted]

    def rebuild(self, wait_s: float = 5.0, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew from the log and swap it in; return the number of events."""
        with Lock(self.home.locks / "rebuild", wait_s):
            self.close()
            return rebuild(self.home, self.clock, progress)

    def indexed(self) -> Mapping[str, int]:
        """Return file name -> offset up to which the index covers it; empty when there is no index."""
        with contextlib.suppress(IndexMissing, IndexDamaged):
            return self.projector.offsets()
        return {}

    def close(self) -> None:
        """Close what is open. Everything opens again when it is needed."""
        self.projector.close()
        while self._readers:
            self._readers.pop().close()

    # -- the way out ----------------------------------------------------------------------------------------------

    def reader(self, *, drain: bool = True) -> Reader:
        """Return the read side of the index, up to date: what lies in the spool is ingested first.

        When another process holds the lock it is at work on just that, and the index is read as it is.
        """
        if drain:
            with contextlib.suppress(Busy):
                self.ingest(wait_s=1.0)
        if not self._readers:
            self._readers.append(Reader.open(self.home))
        return self._readers[0]

    def query(self) -> Query:
        """Return the questions that recall asks, up to date."""
        reader = self.reader()
        return Query(reader.connection, reader.observation_text)

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
        """Return the id that begins with these digits. Raises UnknownMemory, AmbiguousId."""
        return groups.find(self.reader().connection, prefix, events=events)

    def group(self, identity: bytes) -> Group:
        """Return a memory with its text group. Raises UnknownMemory."""
        return groups.load(self.reader().connection, identity)

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
        situation = Situation(place.project, place.name, session, place.branch, delivered=delivered)
        return self._context(reader or self.reader(), situation)

    def _context(self, view: Reader, situation: Situation) -> Context:
        query, zone = Query(view.connection, view.observation_text), self.clock.zone_minutes()
        files = query.recent_files(query.family(situation.project), _FILES)
        known = situation._replace(files=files, titles=TITLES, zone_minutes=zone)
        return build_context(query, known, self.clock.wall_ms(), self.config.context_tokens, weights=self.weights)

    def refresh_briefs(self, project: str | None = None, *, force: bool = True) -> bool:
        """Render the briefs of all directories, or of one project's; return whether anything had to be done.

        With ``force`` off, nothing is done while the state is the one that was rendered last.
        """
        view = self.reader()
        mark = briefs.state_mark(view.connection)
        if not force and mark == briefs.rendered_mark(view.connection):
            return False
        spots = briefs.spots(view.connection, self.identity.device.hex(), project)
        made = briefing.render(spots, lambda spot: self._context(view, Situation(spot.project, spot.name)))
        briefs.put(self.home.index, made, mark if project is None else None)
        briefing.write_files(self.home, made, all_of_them=project is None)
        return True

    # -- consolidation --------------------------------------------------------------------------------------------

    def open_sessions(self) -> list[OpenSession]:
        """Return the sessions of this replica that have a window open."""
        return unclaimed.open_sessions(self.reader().connection, self.identity.replica)

    def open_windows(self, sessions: Collection[tuple[str, str]] | None = None) -> list[Window]:
        """Return the windows that no accepted claim covers, of these (agent, session) pairs or of all."""
        found: list[Window] = []
        for one in self.open_sessions():
            if sessions is not None and (one.agent, one.session) not in sessions:
                continue
            spots = unclaimed.unclaimed(self.reader(drain=False).connection, one.session)
            events = [read_event(self.home.root / file, offset, length) for file, offset, length in spots]
            own = [event for event in events if event.payload and event.payload.get("agent") == one.agent]
            pieces = reading.of_session(self.reader(drain=False).connection, one.agent, one.session)
            found += windows(one.agent, one.session, own, pieces)
        return found

    def close_windows(self, chosen: Sequence[Window], wait_s: float = 0.0) -> worker.Report:
        """Form memories from these windows. Raises Busy when another worker is at it."""
        from memorize.consolidate import worker

        with Lock(self.home.locks / "consolidate", wait_s):
            return worker.run(chosen, lambda drafts: self.append(drafts, strict=True))

    def consolidate(
        self,
        sessions: Collection[tuple[str, str]] | None = None,
        *,
        project: str | None = None,
        observations_min: int = 1,
        wait_s: float = 0.0,
    ) -> worker.Report:
        """Form memories from every open window. One worker at a time; raises Busy when another one is at it."""
        from memorize.consolidate import worker  # its tables of patterns take 30 ms to compile

        with Lock(self.home.locks / "consolidate", wait_s):
            chosen = [one for one in self.open_windows(sessions) if project in (None, one.project)]
            return worker.run(chosen, lambda drafts: self.append(drafts, strict=True), observations_min)

    def work_once(self) -> int:
        """Do one round of what the daemon does: ingest, consolidate behind boundaries, render briefs.

        Returns the number of events and windows that were dealt with; 0 when there was nothing to do.
        """
        report = self.ingest(limit=WORK_FILES_MAX)
        done = report.files + report.recovered
        if (self.boundaries or self._first) and not report.left and self.config.extractor != "off":
            ended = set(self.boundaries) | self._ended_sessions()
            self.boundaries, self._first = {}, False
            with contextlib.suppress(Busy):
                done += self.consolidate(ended, observations_min=self.config.observations_min).windows
        if done and not report.left:
            self.refresh_briefs(force=False)
        return done

    def _ended_sessions(self) -> set[tuple[str, str]]:
        """Sessions that ended while nobody looked: closed, or so long quiet that they must have died."""
        now = self.clock.wall_ms()
        found = unclaimed.open_sessions(self.reader(drain=False).connection, self.identity.replica)
        return {
            (one.agent, one.session)
            for one in found
            if (one.closed is not None and one.closed >= one.last) or now - one.last > DEAD_MS
        }


def _session_id(capture: Capture) -> str:
    try:
        value: Any = json.loads(capture.data)
    except (ValueError, RecursionError):
        return ""
    found = value.get("session_id") if isinstance(value, dict) else ""
    return found if isinstance(found, str) else ""


def open_app(environ: Mapping[str, str], clock: Clock | None = None) -> App:
    """Return the program for this environment. Raises BadConfig, CannotRead."""
    home = Home(state_root(environ))
    try:
        text = home.config.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except NotADirectoryError as error:
        raise BadHome(path=home.root, detail="it is a file, or lies below one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRead(path=home.config, detail=getattr(error, "strerror", None) or error) from error
    return App(home, settings.parse(text, str(home.config)), clock or SystemClock())
