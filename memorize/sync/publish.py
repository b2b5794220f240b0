"""Publishing into a sync folder: what no pack carries, merged packs, and packs without a body that was erased."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from memorize.ids import RANDOM_BYTES
from memorize.sync.catalog import TAKEN, Catalog, Row
from memorize.sync.chains import Link, Run, link_of
from memorize.sync.folder import Folder
from memorize.sync.intervals import Intervals
from memorize.sync.pack import Builder, Sealed
from memorize.sync.packfile import BAD, SALT_BYTES, Scope
from memorize.sync.plan import (
    KEYS_LEVEL,
    Pace,
    carried,
    deletable,
    directory,
    exactly_uncarried,
    final,
    grouped,
    is_of,
    is_safe,
    level_for,
    level_of,
    merges,
    owner_of,
    pending_again,
    relays,
    soiled,
    uncarried,
)
from memorize.sync.port import Envelope, Holding, Span

# Compressed; what is larger is cut, so that an interrupted first publication goes on where it was.
_CUT_BYTES: Final = 8 * 1024 * 1024
_PLAIN_CUT_BYTES: Final = 1024 * 1024 * 1024


class Seal(NamedTuple):
    """Under what, and as whom, this replica publishes. ``key``: id and secret of the store's current key."""

    store: bytes
    key: Scope
    replica: bytes
    scope_of: Callable[[Envelope], Scope | None] | None = None


class Tally(NamedTuple):
    """What was done: packs and events published for the first time, bytes written, packs merged, files deleted.

    ``mended``: own packs that were spoilt in the folder, and are replaced.
    """

    packs: int = 0
    events: int = 0
    size: int = 0
    merged: int = 0
    deleted: int = 0
    mended: int = 0

    def plus(self, other: Tally) -> Tally:
        """Return both together."""
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Publisher:
    """Writes this replica's packs. ``present``: paths that are in the folder now, kept up to date as it goes.

    Every method raises OSError when the folder fails, and what ``Holding`` raises; what was done until then is noted.
    """

    def __init__(
        self,
        holding: Holding,
        folder: Folder,
        catalog: Catalog,
        seal: Seal,
        selves: Collection[str],
        pace: Pace,
        present: set[str],
        random: Callable[[int], bytes],
    ) -> None:
        """``selves``: this replica and its earlier incarnations, in hex. ``random``: gives so many random bytes."""
        self._holding = holding
        self._folder = folder
        self._catalog = catalog
        self._seal = seal
        self._selves = selves
        self._pace = pace
        self._present = present
        self._random = random

    # -- what nobody carries --------------------------------------------------------------------------------------

    def missing(
        self, here: Collection[bytes], retired: Collection[bytes], *, at_once: bool = False
    ) -> tuple[list[Span], list[bytes], int]:
        """Return what is to be published now: runs, single events by id, and how many writers wait for their own.

        ``here``: replicas that publish in this folder. ``retired``: their packs are as good as gone. What this device
        wrote counts as carried only by packs of its own, also of earlier incarnations: nobody else vouches for it.
        ``at_once``: what others wrote who have nothing in the folder does not wait for them.
        """
        catalog = self._catalog
        gone = {one.hex() for one in retired}
        rows = [row for row in self._rows() if owner_of(row.path) not in gone]
        spans, loose = self._spans(rows)
        mine = self._holding.own(spans.keys())
        own_rows = [row for row in rows if owner_of(row.path) in self._selves]
        lacking: dict[bytes, list[Span]] = {}
        single: dict[bytes, list[bytes]] = {}
        for writers, packs in ((mine, own_rows), (spans.keys() - mine, rows)):
            some = {writer: spans[writer] for writer in writers}
            lacking |= uncarried(some, carried(packs, self._seal.store))
            single |= self._exactly(packs, some, lacking)
        writers = lacking.keys() | single.keys()
        own = mine & writers
        foreign = [(writer, spans[writer][0]) for writer in sorted(writers - own)]
        facts = catalog.facts
        due, since = relays(
            foreign,
            dict(facts.waiting),
            set(here) - set(retired),
            set(facts.seen) - set(retired),
            self._seal.replica,
            facts.observed,
            self._pace,
            at_once=at_once,
        )
        since = {writer: when for writer, when in since.items() if writer not in due}
        catalog.facts = facts._replace(waiting=tuple(sorted(since.items())))
        chosen = sorted(own | due)
        runs = [span for writer in chosen if writer not in single for span in lacking[writer]]
        return runs, [*(one for writer in chosen for one in single.get(writer, ())), *loose], len(since)

    def _spans(self, rows: Sequence[Row]) -> tuple[dict[bytes, tuple[bytes, list[Span]]], list[bytes]]:
        """Return the runs of all writers, and the events beside them that no pack carries: without writer or number."""
        placed: dict[bytes, tuple[bytes, list[Span]]] = {}
        beside: list[Span] = []
        for writer, (replica, runs) in self._holding.spans().items():
            if len(writer) != RANDOM_BYTES:
                beside += runs
                continue
            beside += [Span(writer, run.low, 0) for run in runs if run.low < 1]
            if found := [run._replace(low=max(1, run.low)) for run in runs if run.high > 0]:
                placed[writer] = (replica, found)
        known = {one for row in rows if row.state == TAKEN and row.store == self._seal.store for one in row.loose}
        loose = [one.id for one in self._holding.of_spans(beside) if one.id not in known] if beside else []
        return placed, [*loose, *self._bodiless(rows)]

    def _bodiless(self, rows: Sequence[Row]) -> list[bytes]:
        """Return the events of which packs have the header only, though the body is held here and not erased."""
        rows = [row for row in rows if row.state == TAKEN and row.store == self._seal.store]
        found = []
        for one in self._holding.get(sorted({one for row in rows for one in row.bare})):
            link = link_of(one.header) if one.body is not None else None
            if link is None:
                continue
            whole = [row for row in rows if one.id not in row.bare]
            if not carried(whole, self._seal.store).covers(link.writer, link.seq, link.seq):
                found.append(one.id)
        return found

    def _exactly(
        self,
        rows: Sequence[Row],
        spans: Mapping[bytes, tuple[bytes, Sequence[Span]]],
        lacking: Mapping[bytes, Sequence[Span]],
    ) -> dict[bytes, list[bytes]]:
        """Return writer -> events that no pack carries, of writers of whom two events may have one number."""
        whole = {head.writer for head in self._holding.heads()}
        found = {}
        for writer in spans.keys() - whole:
            if lacking.get(writer) == spans[writer][1]:
                continue  # nothing of it is carried at all
            links = self._links(writer, spans[writer][1])
            if ids := exactly_uncarried(links, self._runs_of(writer, rows)):
                found[writer] = ids
        return found

    def _links(self, writer: bytes, spans: Sequence[Span]) -> dict[bytes, Link]:
        """Return the places of a writer's events."""
        held = ((one.id, link_of(one.header)) for one in self._holding.of_spans(spans))
        return {identity: link for identity, link in held if link is not None and link.writer == writer}

    def _runs_of(self, writer: bytes, rows: Sequence[Row]) -> list[Run]:
        """Return the runs of a writer that these packs of this store hold."""
        taken = [row for row in rows if row.state == TAKEN and row.store == self._seal.store]
        return [run for row in taken for run in row.runs if run.writer == writer]

    def publish(self, runs: Sequence[Span], ids: Sequence[bytes], progress: Callable[[int], None]) -> Tally:
        """Publish these events in as many packs as they need. ``progress`` is told how many events are done."""
        tally = Tally()
        events = chain(self._holding.of_spans(runs), self._holding.get(ids))
        for builder in _built(events, self._seal.scope_of, self._random):
            sealed, _ = self._put(builder, level_for(builder.size, self._pace))
            tally = tally.plus(Tally(1, sealed.events, len(sealed.data)))
            progress(tally.events)
        return tally

    # -- packs out of packs ---------------------------------------------------------------------------------------

    def merge(self) -> Tally:
        """Make one pack of many small ones where there are enough. The small ones stay for a while."""
        live = [row for row in self._own().values() if not row.covered and not row.soiled and self._is_mergeable(row)]
        tally = Tally()
        for level, group in merges(live, self._pace):
            tally = tally.plus(self._replace(group, level))
        return tally

    def _is_mergeable(self, row: Row) -> bool:
        ready = row.state == TAKEN and row.due <= self._catalog.facts.observed
        return ready and row.store == self._seal.store and level_of(row.path) != KEYS_LEVEL

    def cleanse(self, erased: Collection[bytes], scope_secret: Callable[[bytes], bytes | None]) -> Tally:
        """Replace own packs that hold a body which is erased here (ids), and delete them at once.

        So are those with bodies under a scope key that was destroyed: nobody else could read them any more. Those of
        earlier incarnations too: no other device would. One that was copied and goes on does the same.
        """
        self._soil(erased)
        for row in self._own_ever().values():
            if not row.soiled and any(scope_secret(one) is None for one in row.scopes):
                self._catalog.put(row._replace(soiled=True))
        own = self._own_ever()
        dirty = [row for row in own.values() if row.soiled]
        now = self._catalog.facts.observed
        live = [row for row in dirty if (not row.covered or final(own, row) is None) and row.due <= now]
        tally = Tally()
        for level in sorted({level_of(row.path) for row in live}):
            same = [row for row in live if level_of(row.path) == level]
            for group in grouped(same, self._pace.caps[min(level, len(self._pace.caps) - 1)]):
                tally = tally.plus(self._replace(group, level))
        for path in [row.path for row in dirty]:
            own = self._own_ever()
            if path in own and own[path].covered and is_safe(own, own[path]):
                tally = tally.plus(self._delete(own[path]))
        return tally

    def _soil(self, erased: Collection[bytes]) -> None:
        """Mark the own packs that newly erased events are in."""
        fresh = set(erased) - self._catalog.erased
        if not fresh:
            return
        places = Intervals()
        for envelope in self._holding.get(sorted(fresh)):
            if (link := link_of(envelope.header)) is not None:
                places.add(link.writer, link.seq, link.seq)
        own = self._own_ever().values()
        for row in [*soiled(own, places), *(row for row in own if not fresh.isdisjoint(row.loose))]:
            self._catalog.put(row._replace(soiled=True))
        self._catalog.add_erased(fresh)
        self._catalog.flush()

    def _replace(self, group: Sequence[Row], level: int) -> Tally:
        """Publish what a group of own packs holds as it is held now, and note what of them is superseded by it."""
        spans = Intervals(Span(run.writer, run.low, run.high) for row in group for run in row.runs).spans()
        builder = Builder(self._seal.scope_of, {run.last for row in group for run in row.runs})
        loose = dict.fromkeys(one for row in group for one in row.loose)
        for event in chain(self._holding.of_spans(spans), self._holding.get(loose)):
            builder.add(event, self._random)
        made = self._put(builder, level) if builder.count else None
        now = self._catalog.facts.observed
        for row in group:
            whole = all(map(builder.chains.holds, row.runs)) and set(row.loose) <= set(builder.loose)
            if made is not None and whole:
                self._catalog.put(row._replace(covered=made[1].path, since=now))
            else:
                # It holds what is not held here any more: reading it again comes first.
                self._catalog.put(pending_again(row, row.tries + 1, now, self._pace))
        self._catalog.flush()
        return Tally(0, 0, len(made[0].data) if made is not None else 0, len(group))

    # -- files ----------------------------------------------------------------------------------------------------

    def tell(self, rows: Sequence[Sequence[Any]], keys: Iterable[tuple[bytes, Scope]]) -> Tally:
        """Publish keys for other devices under each of these (store, key); what told of fewer keys goes."""
        old = [row for row in self._own().values() if level_of(row.path) == KEYS_LEVEL]
        tally = Tally()
        for store, key in keys:
            sealed, _ = self._put(Builder(), KEYS_LEVEL, self._seal._replace(store=store, key=key), rows)
            tally = tally.plus(Tally(0, 0, len(sealed.data)))
        for row in old:
            tally = tally.plus(self._delete(row))
        return tally

    def told(self) -> bool:
        """Tell whether the folder holds a pack with keys of this replica."""
        return any(level_of(path) == KEYS_LEVEL and row.state == TAKEN for path, row in self._own().items())

    def mend(self) -> Tally:
        """Delete own packs that are not as they were made, once other own ones hold all that was in them."""
        tally = Tally()
        for row in [row for row in self._own_ever().values() if row.state == BAD and (row.runs or row.loose)]:
            if self._is_inside(row, [other for other in self._own_ever().values() if not other.soiled]):
                tally = tally.plus(self._delete(row)._replace(mended=1))
        return tally

    def tidy(self, retired: Collection[bytes]) -> Tally:
        """Delete superseded own packs whose time has come, and packs of retired devices that others carry whole."""
        tally = Tally()
        own = self._own()
        for row in deletable(own, self._catalog.facts.observed, self._pace):
            tally = tally.plus(self._delete(row))
        owners = {one.hex() for one in retired}
        gone = [row for row in self._rows() if owner_of(row.path) in owners and row.state == TAKEN]
        if gone:
            # Several devices share in relaying for one that does not come back: their packs together must hold it.
            kept = [row for row in self._rows() if owner_of(row.path) not in owners and not row.soiled]
            for row in gone:
                if self._is_inside(row, kept):
                    tally = tally.plus(self._delete(row))
        return tally

    def _is_inside(self, row: Row, kept: Sequence[Row]) -> bool:
        """Tell whether every event of a pack that was read stands in others of this store, too."""
        store = self._seal.store
        kept = [other for other in kept if other.state == TAKEN]
        inside, whole = carried(kept, store), {head.writer for head in self._holding.heads()}
        loose = {one for other in kept if other.store == store for one in other.loose}
        if not loose.issuperset(row.loose):
            return False
        for run in row.runs:
            if not inside.covers(run.writer, run.low, run.high):
                return False
            if run.writer not in whole and not self._leads_back(run, kept):
                return False
        return True

    def _leads_back(self, run: Run, kept: Sequence[Row]) -> bool:
        """Tell whether every event of a run is held and carried, where several may have one number."""
        links = self._links(run.writer, self._holding.spans()[run.writer][1])
        lacking = set(exactly_uncarried(links, self._runs_of(run.writer, kept)))
        at: bytes = run.last
        while at in links and at not in lacking:
            if links[at].seq <= run.low:
                return True
            at = links[at].prev
        return False

    def _put(
        self, builder: Builder, level: int, seal: Seal | None = None, wrapped: Sequence[Sequence[Any]] = ()
    ) -> tuple[Sealed, Row]:
        store, key, replica, _ = seal or self._seal
        sealed = builder.finish(level, store, key, self._random(SALT_BYTES), replica, wrapped)
        path = directory(store, replica) + sealed.name
        self._folder.create(path, sealed.data)
        number = self._catalog.next_number()
        row = Row(path, len(sealed.data), TAKEN, number, "", False, store, key[0], sealed.events, sealed.runs)
        row = row._replace(scopes=tuple(sorted(builder.scopes)), loose=tuple(builder.loose))
        row = row._replace(proved=self._catalog.facts.observed)  # it was read when it was made
        self._present.add(path)
        self._catalog.put(row)
        self._catalog.flush()
        return sealed, row

    def _delete(self, row: Row) -> Tally:
        self._folder.delete(row.path)
        self._present.discard(row.path)
        # Whatever this one held the events of is from now on held by what holds this one's.
        for other in list(self._catalog.rows.values()):
            if other.covered == row.path:
                self._catalog.put(other._replace(covered=row.covered))
        self._catalog.drop(row.path)
        self._catalog.flush()
        return Tally(deleted=1)

    def _rows(self) -> list[Row]:
        return [row for path, row in self._catalog.rows.items() if path in self._present]

    def _own_ever(self) -> dict[str, Row]:
        return {row.path: row for row in self._rows() if owner_of(row.path) in self._selves}

    def _own(self) -> dict[str, Row]:
        return {row.path: row for row in self._rows() if is_of(row.path, self._seal.replica)}


def _built(
    events: Iterable[Envelope], scope_of: Callable[[Envelope], Scope | None] | None, random: Callable[[int], bytes]
) -> Iterator[Builder]:
    """Return builders that hold the events, each full but the last."""
    builder = Builder(scope_of)
    for event in events:
        builder.add(event, random)
        if builder.size >= _CUT_BYTES or builder.plain >= _PLAIN_CUT_BYTES:
            yield builder
            builder = Builder(scope_of)
    if builder.count:
        yield builder
