"""What is to be done in a sync folder, decided from what is known. Pure: no file, no clock, no chance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from memorize.sync.catalog import TAKEN, Row
from memorize.sync.chains import Link, Run
from memorize.sync.folder import Entry
from memorize.sync.intervals import Intervals
from memorize.sync.packfile import UNKNOWN_KEY
from memorize.sync.port import Holding, Span

MIB: Final = 1024 * 1024
# Packs that hold keys for other devices and no events; never merged.
KEYS_LEVEL: Final = 9
_TURNS_MAX: Final = 6  # directories of devices that are long gone must not make everybody wait


class Pace(NamedTuple):
    """How a folder is kept. Times in ms of observed time, sizes in compressed bytes.

    ``fan``: so many packs of a level make one of the next. ``caps``: size of a pack of a level. ``fresh``: above these
    sizes a pack of new events starts at level 1 or 2, as it is merged less often. ``step``: between two devices that
    could both relay. ``kept``: superseded packs beyond this number don't wait. ``proof``: so often an own pack is read
    again to see that it is as it was made; at most ``proof_bytes`` of them in a round, and at least one.
    """

    fan: tuple[int, ...] = (64, 24, 30)
    caps: tuple[int, ...] = (MIB, 4 * MIB, 8 * MIB, 64 * MIB)
    fresh: tuple[int, int] = (256 * 1024, 2 * MIB)
    superseded: int = 7 * 24 * 3600 * 1000
    kept: int = 1_000
    relay: int = 24 * 3600 * 1000
    step: int = 10 * 60 * 1000
    again: int = 60 * 1000
    again_max: int = 6 * 3600 * 1000
    # A round that comes after a longer pause counts as much: time that nobody saw go by ages nothing.
    pause: int = 6 * 3600 * 1000
    proof: int = 7 * 24 * 3600 * 1000
    proof_bytes: int = 16 * MIB


PACE: Final = Pace()


def directory(store: bytes, replica: bytes) -> str:
    """Return where a replica publishes, with a slash at the end."""
    return f"{store.hex()}/{replica.hex()}/"


def is_of(path: str, replica: bytes) -> bool:
    """Tell whether a file lies in a directory of this replica, of whatever store and in whatever case."""
    return owner_of(path) == replica.hex()


@lru_cache(maxsize=8192)  # asked of every file, several times a round
def owner_of(path: str) -> str:
    """Return the replica in whose directory a file lies, in hex as it is called; empty when it lies in none."""
    parts = path.split("/")
    return parts[1].lower() if len(parts) == 3 else ""


def selves_of(holding: Holding, replica: bytes, before: Collection[bytes] = ()) -> frozenset[str]:
    """Return this replica and the earlier incarnations of its state directory, in hex.

    ``before``: those that it knows of itself. One that was restored from a time when it had written nothing yet has
    no event of its own that would tell.
    """
    spans = holding.spans()
    written = {spans[writer][0] for writer in holding.own(spans.keys())}
    return frozenset(one.hex() for one in {*written, replica, *before})


def level_of(path: str) -> int:
    """Return the level that a pack's name tells; 0 for any other name."""
    head = path.rpartition("/")[2].partition("-")[0]
    return int(head) if len(head) == 1 and head.isascii() and head.isdigit() else 0


# -- reading ------------------------------------------------------------------------------------------------------


def to_examine(
    entries: Iterable[Entry],
    rows: Mapping[str, Row],
    observed: int,
    held: Intervals,
    has_key: Callable[[bytes], bool],
    has_scope: Callable[[bytes], bool],
    *,
    by_hand: bool,
) -> list[Entry]:
    """Return the files that are to be read now, large ones first: what they hold needs not be read again in small ones.

    A file whose content is elsewhere is fetched only when a person asks: it could take hours.
    """

    def wanted(entry: Entry) -> bool:
        row = rows.get(entry.path)
        if row is None or row.size != entry.size or (row.stub != entry.stub and row.state != TAKEN):
            return True
        if row.state == UNKNOWN_KEY:
            return has_key(row.key)
        if row.state != TAKEN:
            return by_hand or (row.due <= observed and not entry.stub)
        if any(has_scope(one) for one in row.missing):
            return True
        # Something that was received has been lost since, or was never right.
        return row.due <= observed and not row.missing and not _inside(row.runs, held)

    return sorted(filter(wanted, entries), key=lambda entry: (-(level_of(entry.path) % KEYS_LEVEL), entry.path))


def to_prove(
    entries: Iterable[Entry],
    rows: Mapping[str, Row],
    selves: Collection[str],
    observed: int,
    pace: Pace,
    *,
    everything: bool,
) -> list[Entry]:
    """Return the own packs that are to be read again now, those first that were not looked at for longest.

    Nobody else can mend them, and a disk that turned a bit tells nobody. None is fetched from elsewhere for it.
    """
    own = [entry for entry in entries if owner_of(entry.path) in selves and not entry.stub and entry.path in rows]
    whole = [entry for entry in own if rows[entry.path].state == TAKEN and rows[entry.path].size == entry.size]
    whole.sort(key=lambda entry: (rows[entry.path].proved, entry.path))
    if everything:
        return whole
    due = [entry for entry in whole if observed - rows[entry.path].proved >= pace.proof]
    sums = accumulate(entry.size for entry in due)
    return [entry for entry, size in zip(due, sums, strict=True) if size <= pace.proof_bytes or entry is due[0]]


def back_off(tries: int, pace: Pace) -> int:
    """Return after how many ms to look again at what was looked at in vain so many times."""
    return min(pace.again << min(tries, 20), pace.again_max)


def _inside(runs: Iterable[Run], held: Intervals) -> bool:
    return all(held.covers(run.writer, run.low, run.high) for run in runs)


# -- publishing ---------------------------------------------------------------------------------------------------


def carried(rows: Iterable[Row], store: bytes) -> Intervals:
    """Return what packs of this store hold."""
    found = Intervals()
    for row in rows:
        if row.state == TAKEN and row.store == store:
            for run in row.runs:
                found.add(run.writer, run.low, run.high)
    return found


def uncarried(spans: Mapping[bytes, tuple[bytes, Sequence[Span]]], known: Intervals) -> dict[bytes, list[Span]]:
    """Return writer -> what is held of it and stands in no pack."""
    found = {}
    for writer, (_, runs) in spans.items():
        left = [part for run in runs for part in known.without(writer, run.low, run.high)]
        if left:
            found[writer] = left
    return found


def exactly_uncarried(links: Mapping[bytes, Link], runs: Iterable[Run]) -> list[bytes]:
    """Return which of a writer's events (id -> place) stand in none of the runs, where several have one number.

    A number that only one event has is carried when it lies in a run: what was read from packs is held. Of several
    the one is carried to which a run's last event leads back.
    """
    by_number: dict[int, list[bytes]] = {}
    for identity, link in links.items():
        by_number.setdefault(link.seq, []).append(identity)
    inside = Intervals()
    found: set[bytes] = set()
    twins = {number for number, ids in by_number.items() if len(ids) > 1}
    for run in runs:
        inside.add(run.writer, run.low, run.high)
        if any(run.low <= number <= run.high for number in twins):
            at: bytes = run.last
            while at in links and links[at].seq >= run.low:
                found.add(at)
                at = links[at].prev
    return [
        identity
        for identity, link in links.items()
        if identity not in found and (link.seq in twins or not inside.covers(link.writer, link.seq, link.seq))
    ]


def relays(
    missing: Iterable[tuple[bytes, bytes]],
    waiting: Mapping[bytes, int],
    here: Collection[bytes],
    seen: Collection[bytes],
    me: bytes,
    observed: int,
    pace: Pace,
    *,
    at_once: bool = False,
) -> tuple[set[bytes], dict[bytes, int]]:
    """Return the writers of other replicas that this one publishes for, and since when which of them wait.

    ``missing``: writer and replica of what no pack carries. ``here``: replicas that publish in this folder;
    ``seen``: those that ever did, which are given time to come back. Of several that could relay each
    has its turn, so that mostly one does. ``at_once``: a person waits for it, so only those that are here have time.
    """
    since, due = {}, set()
    ranks = sorted({*here, me})
    for writer, replica in missing:
        since[writer] = waiting.get(writer, observed)
        first = int.from_bytes(writer[:8], "big") % len(ranks)
        turn = min((ranks.index(me) - first) % len(ranks), _TURNS_MAX)
        wait = turn * pace.step + (pace.relay if replica in seen else 0)
        if observed - since[writer] >= wait or (at_once and replica not in here):
            due.add(writer)
    return due, since


def level_for(size: int, pace: Pace) -> int:
    """Return the level at which a pack of new events of this size starts."""
    return sum(size > bound for bound in pace.fresh)


# -- tidying ------------------------------------------------------------------------------------------------------


def merges(rows: Iterable[Row], pace: Pace) -> list[tuple[int, list[Row]]]:
    """Return the groups of live own packs that are to become one pack of a higher level: (that level, the packs)."""
    by_level: dict[int, list[Row]] = {}
    for row in rows:
        by_level.setdefault(level_of(row.path), []).append(row)
    groups = []
    for level, fan in enumerate(pace.fan):
        found = by_level.get(level, [])
        if len(found) >= fan:
            groups += [(level + 1, group) for group in grouped(found, pace.caps[level + 1]) if len(group) > 1]
    return groups


def grouped(rows: Iterable[Row], cap: int) -> list[list[Row]]:
    """Return the packs in the order in which they were made, cut where their sizes would pass ``cap``."""
    groups: list[list[Row]] = []
    size = 0
    for row in sorted(rows, key=lambda row: row.number):
        if not groups or size + row.size > cap:
            groups.append([])
            size = 0
        groups[-1].append(row)
        size += row.size
    return groups


def deletable(own: Mapping[str, Row], observed: int, pace: Pace) -> list[Row]:
    """Return the superseded ones of the own packs that are present: long enough ago, or too many, the oldest first."""
    done = [row for row in own.values() if row.covered and is_safe(own, row)]
    done.sort(key=lambda row: (row.since, row.number))
    surplus = max(0, len(done) - pace.kept)
    return [row for at, row in enumerate(done) if at < surplus or observed - row.since >= pace.superseded]


def final(own: Mapping[str, Row], row: Row) -> Row | None:
    """Return the live pack that holds everything of a superseded one, None when it is not there any more."""
    seen = {row.path}
    found = own.get(row.covered)
    while found is not None and found.path not in seen:
        if not found.covered:
            return found
        seen.add(found.path)
        found = own.get(found.covered)
    return None


def is_safe(own: Mapping[str, Row], row: Row) -> bool:
    """Tell whether a superseded pack may go, as far as what holds its events is concerned."""
    found = final(own, row)
    return found is not None and found.state == TAKEN and not found.soiled


def soiled(rows: Iterable[Row], places: Intervals) -> list[Row]:
    """Return the packs that hold an event at one of these places."""
    return [row for row in rows if any(places.meets(run.writer, run.low, run.high) for run in row.runs)]


def pending_again(row: Row, tries: int, observed: int, pace: Pace) -> Row:
    """Return the row with the time at which its file is read again."""
    return row._replace(tries=tries, due=observed + back_off(tries, pace))
