"""Reading a sync folder: whatever parses is taken in, whatever its name; what does not is remembered, never touched."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from memorize.limits import PACK_BYTES_MAX
from memorize.log.receive import in_batches
from memorize.sync.catalog import TAKEN, Catalog, Row
from memorize.sync.chains import Chains, Run, link_of
from memorize.sync.folder import Entry, Folder
from memorize.sync.intervals import Intervals
from memorize.sync.pack import Pack, decode
from memorize.sync.packfile import BAD, NEWER, OTHER, PENDING, UNKNOWN_KEY, BadPack, probe
from memorize.sync.plan import Pace, owner_of, pending_again
from memorize.sync.port import Holding, Received
from memorize.sync.proving import is_as_made, spoilt

_BATCH_EVENTS: Final = 2_000
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})


class Taken(NamedTuple):
    """What reading one file came to.

    ``wrapped``: rows of keys. ``ahead``: it held events of this replica that this replica did not know.
    """

    row: Row
    received: Received
    wrapped: tuple[Sequence[Any], ...] = ()
    ahead: bool = False


class Taker:
    """Takes packs in. ``held``: what this replica has, kept up to date as it goes."""

    def __init__(
        self,
        holding: Holding,
        folder: Folder,
        catalog: Catalog,
        me: bytes,
        selves: Collection[str],
        pace: Pace,
        find: Callable[[bytes], bytes | None],
        scope_secret: Callable[[bytes], bytes | None],
        *,
        erased: Collection[bytes] = (),
        by_hand: bool,
    ) -> None:
        """Put the parts together; nothing is read yet.

        ``selves``: this replica and its earlier incarnations, in hex. ``find`` and ``scope_secret``: the secret of a
        store key and of a scope key by its id. ``erased``: ids of events that are erased here; an own pack that holds
        the body of one is noted as soiled. ``by_hand``: a person waits, so contents that lie elsewhere may be fetched.
        """
        self._by_hand = by_hand
        self._holding = holding
        self._folder = folder
        self._catalog = catalog
        self._me = me
        self._selves = selves
        self._pace = pace
        self._find = find
        self._scope_secret = scope_secret
        self._erased = erased
        self.held = Intervals(run for _, runs in holding.spans().values() for run in runs)
        self._reach: dict[bytes, int] | None = None  # writer -> number up to which it is held without a gap or a twin
        self._read_runs: dict[bytes, set[tuple[int, int]]] = {}
        for row in catalog.rows.values():
            self._note_runs(row)

    def take(self, entry: Entry) -> Taken | None:
        """Read a file and receive what it holds; None when it is gone. The row is in the catalog then.

        Raises what ``Holding.receive`` raises; then nothing is noted, and the file is read again.
        """
        before = self._catalog.rows.get(entry.path)
        row = self._blank(entry, before)
        try:
            taken = self._read(entry, row, before)
        except FileNotFoundError:
            return None
        tries = before.tries + 1 if before is not None and before.size == entry.size else 0
        if taken.row.state != TAKEN or not self._whole(taken.row):
            taken = taken._replace(row=pending_again(taken.row, tries, self._catalog.facts.observed, self._pace))
        taken = taken._replace(row=taken.row._replace(proved=self._catalog.facts.observed))
        self._catalog.put(taken.row)
        self._note_runs(taken.row)
        return taken

    def _blank(self, entry: Entry, before: Row | None) -> Row:
        number = before.number if before is not None else self._catalog.next_number()
        row = Row(entry.path, entry.size, PENDING, number, stub=entry.stub)
        return row if before is None else row._replace(covered=before.covered, since=before.since, soiled=before.soiled)

    def _read(self, entry: Entry, row: Row, before: Row | None) -> Taken:
        if entry.size > PACK_BYTES_MAX:
            return Taken(row._replace(state=BAD, why="it is larger than any pack"), Received())
        if entry.stub and not self._by_hand:
            return Taken(row._replace(why="its content is not on this machine"), Received())
        try:
            data = self._folder.read(entry.path)
        except OSError as error:
            if error.errno in _GONE:
                raise FileNotFoundError(error.errno, error.strerror) from error
            return Taken(row._replace(why=error.strerror or str(error)), Received())
        found = probe(data)
        row = row._replace(state=found.state, why=found.why, store=found.store, key=found.key)
        # One that this replica could have made is looked at: it may hold what is to be taken out of it.
        own = owner_of(entry.path) in self._selves
        try:
            pack = decode(data, self._find, self._scope_secret)
        except BadPack as error:
            row = row._replace(state=error.state, why=str(error))
            lost = own and before is not None and bool(before.runs or before.loose) and not is_as_made(row.path, data)
            return Taken(spoilt(row, before) if lost and before is not None else row, Received())
        row = row._replace(events=pack.events)
        if not own and not pack.stripped and self._known(pack.runs, pack.events):
            return Taken(row._replace(state=TAKEN, why="", runs=pack.runs), Received(known=pack.events), pack.wrapped)
        return self._receive(pack, row)

    def _known(self, runs: Sequence[Run], events: int) -> bool:
        """Tell whether every event of these runs is held, and there are no others.

        It is when a run that was read reaches as far, and no number of its writer is missing or there twice: then the
        last event of the run, if it is held, is one of those, and names them all. A writer that only looks whole is
        not enough, for an event that is held may come after a twin of one that is held.
        """
        if sum(run.high - run.low + 1 for run in runs) != events:
            return False
        heads = self._heads()
        if not all(run.high <= heads.get(run.writer, 0) and self._was_read(run) for run in runs):
            return False
        lasts = {run.last for run in runs}
        return {envelope.id for envelope in self._holding.get(lasts)} == lasts

    def _heads(self) -> dict[bytes, int]:
        if self._reach is None:
            self._reach = {head.writer: head.seq for head in self._holding.heads()}
        return self._reach

    def _was_read(self, run: Run) -> bool:
        return any(low <= run.low and run.high <= high for low, high in self._read_runs.get(run.writer, ()))

    def _note_runs(self, row: Row) -> None:
        if row.state == TAKEN and not row.due:
            for run in row.runs:
                self._read_runs.setdefault(run.writer, set()).add((run.low, run.high))

    def _receive(self, pack: Pack, row: Row) -> Taken:
        received, ahead, soiled = Received(), False, row.soiled
        chains, whole, loose = Chains(), Chains(), list[bytes]()
        why = ""
        try:
            for batch in in_batches(pack.envelopes, _BATCH_EVENTS):
                places = {one.id: link for one in batch if (link := link_of(one.header)) is not None}
                mine = [one for one, link in places.items() if link.replica == self._me]
                known = {one.id for one in self._holding.get(mine)} if mine else set()
                received = received.plus(self._holding.receive(batch))
                ahead = ahead or any(one.id not in known for one in self._holding.get(mine))
                for one in batch:
                    soiled = soiled or (one.body is not None and one.id in self._erased)
                    if one.id in places:
                        chains.add(one.id, places[one.id])
                        if one.body is not None:
                            whole.add(one.id, places[one.id])
                    else:
                        loose.append(one.id)
        except BadPack as error:
            why = str(error)
        if received.new or received.bodies:
            self._reach = None
        for run in whole.runs() if not received.bad else ():
            self.held.add(run.writer, run.low, run.high)
        if received.bad and not why:
            # Which ones is not told, so nothing of it counts as carried.
            why, chains = f"{received.bad} of its events are not what they claim to be", Chains()
            loose.clear()
        state = BAD if why else TAKEN
        row = row._replace(state=state, why=why, runs=chains.runs(), soiled=soiled)
        row = row._replace(missing=tuple(sorted(pack.missing)), scopes=tuple(sorted(pack.scopes)), loose=tuple(loose))
        row = row._replace(bare=tuple(sorted(one for one in pack.bare if one not in self._erased)))
        return Taken(row, received, pack.wrapped, ahead)

    def _whole(self, row: Row) -> bool:
        return all(self.held.covers(run.writer, run.low, run.high) for run in row.runs)


def reasons(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    """Return path (as text that can be shown), state and words of every file that was not taken in."""
    states = (PENDING, UNKNOWN_KEY, BAD, OTHER, NEWER)
    found = [row for row in rows if row.state in states]
    return [(os.fsencode(row.path).decode("utf-8", "backslashreplace"), row.state, row.why) for row in found]
