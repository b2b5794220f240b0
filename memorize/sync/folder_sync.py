"""One round through a sync folder: take in what is new, publish what nobody carries, keep the own packs few.

A folder that is missing, unreadable or perhaps not mounted makes a round pause and say so. Nothing is ever deleted
because something is absent: only own packs, and only when another present one holds all that is in them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memorize.clock import Clock
from memorize.sync.catalog import TAKEN, Catalog, Row
from memorize.sync.folder import Folder, Listing
from memorize.sync.packfile import BAD, NEWER, OTHER, PENDING, UNKNOWN_KEY, Scope
from memorize.sync.plan import PACE, Pace, is_of, owner_of, pending_again, selves_of, to_examine, to_prove
from memorize.sync.port import Envelope, Holding, Received
from memorize.sync.proving import is_as_made, spoilt
from memorize.sync.publish import Publisher, Seal, Tally
from memorize.sync.ring import STORE, Keyring, Wrapped, adopt, wrapped_from, wrapped_row
from memorize.sync.taking import Taken, Taker, reasons

MISSING: Final = "the folder is not there"
UNREADABLE: Final = "the folder cannot be read"
UNMOUNTED: Final = (
    "the folder is empty and lies on another file system than before; perhaps it is not mounted. "
    'When it is as it should be: "memorize sync add folder" with its path, once more'
)
OTHER_KEY: Final = "the packs of this store in the folder are sealed under a key that is not held here"
UNWRITABLE: Final = "the folder cannot be written"

Progress = Callable[[int, int], None]


class Keys:
    """The keys that a round uses. ``take`` keeps wrapped keys that packs brought and returns the ring then."""

    def __init__(
        self,
        ring: Keyring,
        take: Callable[[list[Wrapped]], Keyring] | None = None,
        scope_of: Callable[[Envelope], Scope | None] | None = None,
    ) -> None:
        """Without ``take`` new keys live as long as this object. ``scope_of``: see ``pack.Builder``."""
        self.ring = ring
        self.scope_of = scope_of
        self._take = take

    def adopt(self, rows: Iterable[Sequence[Any]]) -> bool:
        """Take what can be taken of rows from packs; tell whether that changed anything."""
        wrapped = [one for one in map(wrapped_from, rows) if one is not None]
        after = adopt(self.ring, wrapped)
        if after == self.ring:
            return False
        self.ring = self._take(wrapped) if self._take is not None else after
        return True

    def seal(self, replica: bytes) -> Seal:
        """Return under what this replica publishes."""
        key = self.ring.current
        return Seal(key.store, (key.id, key.secret), replica, self.scope_of)


class FolderReport(NamedTuple):
    """What a round did and found.

    ``paused``: why nothing was done, or not everything (one of the constants, then a colon and details), else empty.
    ``emptied``: the folder held packs once and none at the start of this round. ``imported``: packs read whole.
    ``states``: state -> files that are not taken in, over all rounds; ``reasons``: path, state and words of each.
    ``waiting``: writers of other replicas that nothing in the folder carries, and that this one may publish for later.
    ``ahead``: the folder held events of this replica that it did not know: its replica must be renewed.
    ``keys``: keys came with it; the ring of ``Keys`` is another one. ``away``: how many of the pending files are only
    placeholders here, ``away_bytes``: what it would take to fetch them.
    """

    paused: str = ""
    emptied: bool = False
    imported: int = 0
    received: Received = Received()
    published: Tally = Tally()
    states: Mapping[str, int] = {}
    reasons: tuple[tuple[str, str, str], ...] = ()
    files: int = 0
    waiting: int = 0
    ahead: bool = False
    keys: bool = False
    away: int = 0
    away_bytes: int = 0

    @property
    def pending(self) -> int:
        """How many files are not whole, or not on this machine."""
        return self.states.get(PENDING, 0)

    @property
    def refused(self) -> int:
        """How many files can never be taken in as they are: damaged, or under another key."""
        return self.states.get(BAD, 0) + self.states.get(UNKNOWN_KEY, 0)


def sync_folder(
    holding: Holding,
    keys: Keys,
    folder: Folder,
    catalog: Catalog,
    clock: Clock,
    replica: bytes,
    *,
    erased: Collection[bytes] = (),
    retired: Collection[bytes] = (),
    before: Collection[bytes] = (),
    by_hand: bool = False,
    check: bool = False,
    progress: Progress | None = None,
    pace: Pace = PACE,
    random: Callable[[int], bytes] = os.urandom,
) -> FolderReport:
    """Do one round; only one at a time for a state directory, which the caller sees to.

    ``erased``: ids of events that are erased here. ``retired``: replicas of devices that never come back, whose packs
    others may remove. ``before``: what replicas this state directory was. ``by_hand``: a person waits: look at
    everything again, and hand out for others without waiting for their turn. ``check``: read every own pack again, not
    only those whose time has come. ``progress`` is told (done, total): bytes read, then events published. Raises what
    ``holding`` raises (Busy, CannotWrite, CannotRead) and CannotWrite for the catalog; never because of what is in the
    folder.
    """
    _see_time(catalog, clock.wall_ms(), pace)
    try:
        place, listing = folder.place(), folder.listing()
    except OSError as error:
        catalog.flush()
        why = MISSING if isinstance(error, FileNotFoundError | NotADirectoryError) else UNREADABLE
        return _report(catalog, paused=f"{why}: {error.strerror or error}")
    emptied = not listing.entries and not listing.hidden and bool(catalog.rows)
    if emptied and catalog.facts.place not in (0, place):
        catalog.flush()
        return _report(catalog, paused=UNMOUNTED, emptied=True)
    catalog.facts = catalog.facts._replace(place=place)
    selves = selves_of(holding, replica, before)
    turn = _Round(holding, keys, folder, catalog, replica, selves, pace, erased, by_hand, progress or _silent)
    turn.read(listing)
    turn.prove(listing, everything=check)
    paused, tally, waiting = turn.write(retired, random)
    catalog.flush()
    return _report(
        catalog,
        paused=paused,
        emptied=emptied,
        imported=turn.imported,
        received=turn.received,
        published=tally,
        files=len(turn.present),
        waiting=waiting,
        ahead=turn.ahead,
        keys=turn.keys_changed,
    )


class _Round:
    """One round. First everything is read, then written, so that what is published builds on all that is known."""

    def __init__(
        self,
        holding: Holding,
        keys: Keys,
        folder: Folder,
        catalog: Catalog,
        me: bytes,
        selves: Collection[str],
        pace: Pace,
        erased: Collection[bytes],
        by_hand: bool,
        progress: Progress,
    ) -> None:
        self._holding = holding
        self._keys = keys
        self._folder = folder
        self._catalog = catalog
        self._me = me
        self._selves = selves
        self._pace = pace
        self._erased = erased
        self._by_hand = by_hand
        self._progress = progress
        self.present: set[str] = set()
        self.imported = 0
        self.received = Received()
        self.ahead = False
        self.keys_changed = False

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, listing: Listing) -> None:
        """Take in what is new; when that brings keys, what can be opened by them, too."""
        catalog = self._catalog
        hidden = [path for path in catalog.rows if path.startswith(listing.hidden)] if listing.hidden else []
        self.present = {entry.path for entry in listing.entries} | set(hidden)
        # A row of a file that is not there is of no use but to know that there was once something.
        for path in [path for path in catalog.rows if path not in self.present]:
            catalog.drop(path)
        by_hand = self._by_hand
        while self._read_once(listing, by_hand=by_hand):
            by_hand = False

    def _read_once(self, listing: Listing, *, by_hand: bool) -> bool:
        ring = self._keys.ring
        taker = Taker(
            self._holding,
            self._folder,
            self._catalog,
            self._me,
            self._selves,
            self._pace,
            ring.find,
            ring.scope_secret,
            erased=self._erased,
            by_hand=self._by_hand,
        )
        todo = to_examine(
            listing.entries,
            self._catalog.rows,
            self._catalog.facts.observed,
            taker.held,
            lambda key: ring.find(key) is not None,
            lambda key: ring.scope_secret(key) is not None,
            by_hand=by_hand,
        )
        total = sum(entry.size for entry in todo)
        done, rows = 0, list[Sequence[Any]]()
        for entry in todo:
            taken = taker.take(entry)
            if taken is None:
                self.present.discard(entry.path)
            else:
                self._note(taken)
                rows += taken.wrapped
            done += entry.size
            self._progress(done, total)
        changed = bool(rows) and self._keys.adopt(rows)
        self.keys_changed = self.keys_changed or changed
        return changed

    def _note(self, taken: Taken) -> None:
        self.imported += taken.row.state == TAKEN
        self.received = self.received.plus(taken.received)
        self.ahead = self.ahead or taken.ahead
        if taken.received.new or taken.received.bodies:
            self._catalog.flush()

    def prove(self, listing: Listing, *, everything: bool) -> None:
        """Look whether own packs are as they were made; one that cannot be had just now is looked at next time."""
        observed = self._catalog.facts.observed
        rows = self._catalog.rows
        for entry in to_prove(listing.entries, rows, self._selves, observed, self._pace, everything=everything):
            row = rows[entry.path]._replace(proved=observed)
            try:
                sound = is_as_made(entry.path, self._folder.read(entry.path))
            except FileNotFoundError:
                self.present.discard(entry.path)
                continue
            except OSError:
                sound = True
            self._catalog.put(row if sound else pending_again(spoilt(row, row), 0, observed, self._pace))

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, retired: Collection[bytes], random: Callable[[int], bytes]) -> tuple[str, Tally, int]:
        """Publish, merge, tidy. Return why not everything was done, what was, and how many writers wait."""
        if self._is_other_key():
            return OTHER_KEY, Tally(), 0
        publisher = Publisher(
            self._holding,
            self._folder,
            self._catalog,
            self._keys.seal(self._me),
            self._selves,
            self._pace,
            self.present,
            random,
        )
        tally, waiting = Tally(), 0
        try:
            # Before anything lies under a new key, others must be able to find that key.
            tally = self._tell(publisher)
            runs, ids, waiting = publisher.missing(self._here(), retired, at_once=self._by_hand)
            total = sum(run.high - run.low + 1 for run in runs) + len(ids)
            if total:
                tally = tally.plus(publisher.publish(runs, ids, lambda done: self._progress(min(done, total), total)))
            tally = tally.plus(publisher.cleanse(self._erased, self._keys.ring.scope_secret))
            tally = tally.plus(publisher.mend())
            tally = tally.plus(publisher.merge())
            tally = tally.plus(publisher.tidy(retired))
        except OSError as error:
            return f"{UNWRITABLE}: {error.strerror or error}", tally, waiting
        return "", tally, waiting

    def _is_other_key(self) -> bool:
        """Tell whether this replica, which never published here, meets only packs of its store that it cannot open."""
        store = self._keys.ring.current.store
        rows = [self._catalog.rows[path] for path in self.present if path in self._catalog.rows]
        if self._me in self._catalog.facts.seen or any(is_of(row.path, self._me) for row in rows):
            return False
        of_store = [row for row in rows if row.store == store]
        opened = any(row.state == TAKEN for row in of_store)
        return not opened and any(row.state == UNKNOWN_KEY for row in of_store)

    def _here(self) -> set[bytes]:
        """Return the replicas that have files in the folder, and remember them."""
        found = set()
        for path in self.present:
            owner = owner_of(path)
            if len(owner) == 2 * len(self._me):
                try:
                    found.add(bytes.fromhex(owner))
                except ValueError:
                    continue
        facts = self._catalog.facts
        if not found.issubset(facts.seen):
            self._catalog.facts = facts._replace(seen=tuple(sorted(found.union(facts.seen))))
        return found

    def _tell(self, publisher: Publisher) -> Tally:
        """Publish wrapped keys under each older key by which another device can take them out."""
        ring = self._keys.ring
        if not ring.wrapped:
            return Tally()
        rows = [wrapped_row(one) for one in ring.wrapped]
        old = {one.old for one in ring.wrapped if one.purpose == STORE}
        keys = [(key.store, (key.id, key.secret)) for key in ring.keys if key.id in old]
        if any(one.purpose != STORE for one in ring.wrapped):
            keys.append((ring.current.store, (ring.current.id, ring.current.secret)))
        told = _digest_of(rows, keys)
        if told == self._catalog.facts.told and publisher.told():
            return Tally()
        tally = publisher.tell(rows, keys)
        self._catalog.facts = self._catalog.facts._replace(told=told)
        return tally


def _silent(done: int, total: int) -> None:
    pass


def _see_time(catalog: Catalog, wall: int, pace: Pace) -> None:
    """Let time go by as far as rounds have seen it: no jump of a clock, and no long sleep, ages anything."""
    facts = catalog.facts
    passed = min(max(0, wall - facts.wall), pace.pause) if facts.wall else 0
    catalog.facts = facts._replace(observed=facts.observed + passed, wall=wall)


def _digest_of(rows: Sequence[Sequence[Any]], keys: Sequence[tuple[bytes, Scope]]) -> bytes:
    import msgpack
    from blake3 import blake3

    return blake3(msgpack.packb([list(rows), [(store, key[0]) for store, key in keys]])).digest()


def _report(catalog: Catalog, **found: Any) -> FolderReport:
    rows: list[Row] = list(catalog.rows.values())
    states = {state: sum(row.state == state for row in rows) for state in (PENDING, UNKNOWN_KEY, BAD, OTHER, NEWER)}
    away = [row.size for row in rows if row.state == PENDING and row.stub]
    told = tuple(reasons(rows))
    return FolderReport(states=states, reasons=told, away=len(away), away_bytes=sum(away), **found)
