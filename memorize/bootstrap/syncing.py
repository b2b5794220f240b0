"""Rounds of sync with all that a person configured, what came of them, and who else is there."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memorize.bootstrap import keeping
from memorize.bootstrap.scoping import Scoping
from memorize.bootstrap.store import Store
from memorize.counted import counted
from memorize.errors import BadTarget, Problem, UnknownTarget
from memorize.index import devices, erasures
from memorize.index.devices import Device
from memorize.log.files import replace_file
from memorize.log.lock import Lock
from memorize.model import DEVICE_RETIRED, Draft
from memorize.sync import asking, targets
from memorize.sync.asking import Asking
from memorize.sync.catalog import Catalog
from memorize.sync.folder import RealFolder
from memorize.sync.folder_sync import FolderReport, Keys, sync_folder
from memorize.sync.keys import Wrapped, adopt
from memorize.sync.packfile import BAD, NEWER, PENDING, UNKNOWN_KEY
from memorize.sync.peer import PeerReport, sync_peer
from memorize.sync.plan import owner_of, selves_of
from memorize.sync.targets import FOLDER, Target

WAIT_S: Final = 60.0
_BYTES_MAX: Final = 1 << 20
# A round goes on while one place brings what another lacks, and while an erasure is being acknowledged.
_PASSES: Final = 4
# States of files that are ours to take in one day, and how to say so.
_UNSETTLED: Final = {
    PENDING: "{} not come whole yet: wait for the tool that carries them, or delete what stays so",
    UNKNOWN_KEY: '{} sealed under a key that is not held here: "memorize key import"',
    BAD: "{} damaged: delete what is, and whoever made it hands it out again",
    NEWER: "{} written by a newer version: install it here",
}
_AWAY: Final = (
    "{} of {:.1f} MB {} of what lies elsewhere: have the tool keep the folder on this device, "
    'or fetch it now by "memorize sync"'
)
_SHARE: Final = '"memorize key export" on one of both, "memorize key import" on the other'
# What an exchange that was refused or never began needs, by its code; and how a shell says that there is no program.
_REMEDIES: Final = {"key": _SHARE, "store": _SHARE, "version": "install the newer version on both"}
_NO_PROGRAM: Final = ("not found", "No such file")
# target label, done, total: bytes read, then events published or exchanged
Progress = Callable[[str, int, int], None]


class Round(NamedTuple):
    """What one round with one target came to.

    ``settled``: nothing is left to do with it. ``reason``: why not. ``sent`` and ``received`` count events, ``files``
    the packs read; ``pending``, ``refused``: packs that are not taken in; ``foreign``: those of somebody else's store.
    ``waiting``: writers whose events this device may hand on for another one later. ``notes``: files and reasons.
    ``mended``: packs of this device that were spoilt in the folder and are replaced.
    ``set``: the set digest of this device after it.
    """

    target: Target
    settled: bool
    reason: str = ""
    sent: int = 0
    received: int = 0
    files: int = 0
    pending: int = 0
    refused: int = 0
    bad: int = 0
    foreign: int = 0
    waiting: int = 0
    notes: tuple[str, ...] = ()
    at_ms: int = 0
    set: str = ""
    mended: int = 0


class Syncing:
    """Syncs one state directory. Cheap to make; every round looks at the configuration and the keys again."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store
        self._path = store.home.receipts / "sync.json"

    # -- what is configured -----------------------------------------------------------------------------------------

    def targets(self) -> tuple[Target, ...]:
        """Return the targets in their order. Raises CannotRead."""
        return targets.load(self._store.home, self._store.files)

    def add(self, words: Sequence[str]) -> tuple[Target, bool]:
        """Add a target; False when it is there already. Raises BadTarget, Busy, CannotRead, CannotWrite."""
        self._store.identity  # noqa: B018 - the state directory is made with it
        target = targets.parse(words, self._store.home.root)
        if target.kind == FOLDER:
            try:
                self._take_as_mounted(target, self._folder(target).place())
            except OSError as error:
                raise BadTarget(what=target.where, detail=error.strerror or str(error)) from error
        known = self.targets()
        if target in known:
            return target, False
        targets.save(self._store.home, self._store.files, [*known, target])
        return target, True

    def _take_as_mounted(self, target: Target, place: int) -> None:
        """Whoever names a folder says that it is the right one, also when it lies elsewhere than it did."""
        path = self._store.home.root / "sync.sqlite"
        if not path.exists():
            return
        with Lock(self._store.home.locks / "sync", WAIT_S):
            catalog = Catalog.open(path, target.where)
            try:
                if catalog.facts.place not in (0, place):
                    catalog.facts = catalog.facts._replace(place=0)
                    catalog.flush()
            finally:
                catalog.close()

    def remove(self, words: Sequence[str]) -> Target:
        """Forget a target; nothing in it is changed. Raises UnknownTarget, CannotRead, CannotWrite."""
        known = self.targets()
        wanted = words[-1] if words else ""
        with contextlib.suppress(BadTarget):
            wanted = targets.parse((FOLDER, wanted), self._store.home.root).where if "://" not in wanted else wanted
        found = next((one for one in known if one.where == wanted), None)
        if found is None:
            raise UnknownTarget(what=" ".join(words))
        targets.save(self._store.home, self._store.files, [one for one in known if one != found])
        return found

    # -- rounds -----------------------------------------------------------------------------------------------------

    def rounds(
        self,
        chosen: Iterable[Target],
        progress: Progress | None = None,
        *,
        by_hand: bool = False,
        asks: bool = False,
        check: bool = False,
        wait_s: float = WAIT_S,
    ) -> list[Round]:
        """Do a round with each target, one after the other; a failure of one is told in its round and stops no other.

        ``by_hand``: a person waits. ``asks``: and sits at a terminal, where ssh may ask something. ``check``: read all
        own packs again.

        Raises Busy when another process syncs for so long, and what keeps this device from syncing at all.
        """
        told, places = progress or (lambda *_: None), list(chosen)
        sums: dict[Target, Round] = {}
        with Lock(self._store.home.locks / "sync", wait_s):
            self._store.reader()  # takes in what waits in the spool
            self._store.greet()
            for turn in range(_PASSES):
                once = check and not turn
                done = [self._round(one, told, by_hand=by_hand, asks=asks, check=once) for one in places]
                held = self._held()
                sums |= {one.target: _sum(sums.get(one.target), one)._replace(set=held) for one in done}
                self._note(list(sums.values()))
                self._store.after_sync()
                # Under a name that it was given just now this device is to be known, too.
                self._store.greet()
                # What one place brought is for the others, too, and so is what was said of it.
                brought = len(places) > 1 and any(one.received for one in done)
                if not brought and self._held() == held and not self._erases():
                    break
        return [sums[target] for target in places]

    def _erases(self) -> bool:
        """Tell whether an erasure is not acknowledged yet: it may wait for packs that the next pass makes anew."""
        return erasures.is_open(self._store.reader(drain=False).connection, self._store.identity.replica)

    def _held(self) -> str:
        return self._store.reader(drain=False).digest()[0]

    def _round(self, target: Target, progress: Progress, *, by_hand: bool, asks: bool, check: bool) -> Round:
        now = self._store.clock.wall_ms()
        try:
            if target.kind == FOLDER and Asking().ask([target.where], asking.ANSWER_S)[target.where] is None:
                return _silent(target, now)
            if target.kind == FOLDER:
                report = self._sync_folder(target, progress, by_hand=by_hand, check=check)
                holding = self._store.holding
                known = {replica.hex() for replica, _ in holding.spans().values()}
                done = _of_folder(target, report, keeping.keyring(self._store).stores, known, now)
                return _with_bare(done, len(holding.wanted()))
            return _of_peer(target, self._sync_peer(target, progress, asks=asks), now)
        except Problem as problem:
            return Round(target, settled=False, reason=f"{problem} ({problem.remedy()})", at_ms=now)

    def _sync_folder(self, target: Target, progress: Progress, *, by_hand: bool, check: bool) -> FolderReport:
        store = self._store
        ring = keeping.keyring(store)
        view = store.reader(drain=False)
        catalog = Catalog.open(store.home.root / "sync.sqlite", target.where)
        try:
            return sync_folder(
                store.holding,
                Keys(ring, self._take, Scoping(store, ring).scope_of),
                self._folder(target),
                catalog,
                store.clock,
                store.identity.replica,
                erased=view.erased(),
                retired=self.retired(),
                before=self._before(),
                by_hand=by_hand,
                check=check,
                progress=lambda done, total: progress(target.label, done, total),
            )
        finally:
            catalog.close()

    def _sync_peer(self, target: Target, progress: Progress, *, asks: bool) -> PeerReport:
        report = sync_peer(
            target.where,
            self._store.holding,
            keeping.keyring(self._store),
            lambda done, total: progress(target.label, done, total),
            asks=asks,
            me=self._store.identity.replica,
        )
        if report.wrapped:
            self._take(list(report.wrapped))
        return report

    def _take(self, wrapped: list[Wrapped]) -> Any:
        return keeping.update(self._store, lambda ring: adopt(ring, wrapped))

    def packs_clean(self) -> bool:
        """Tell whether no pack that this replica has in a folder holds a body that is erased. Raises CannotRead."""
        folders = [target for target in self.targets() if target.kind == FOLDER]
        erased = self._store.reader(drain=False).erased() if folders else frozenset()
        return all(self._is_clean(target, erased) for target in folders)

    def _is_clean(self, target: Target, erased: frozenset[bytes]) -> bool:
        catalog = Catalog.open(self._store.home.root / "sync.sqlite", target.where)
        try:
            selves = selves_of(self._store.holding, self._store.identity.replica, self._before())
            own = [row for row in catalog.rows.values() if owner_of(row.path) in selves]
            return not own or (erased <= catalog.erased and not any(row.soiled for row in own))
        finally:
            catalog.close()

    def _before(self) -> list[bytes]:
        return [former.replica for former in self._store.identity.before]

    def _folder(self, target: Target) -> RealFolder:
        return RealFolder(target.where, str(self._store.home.root / "outbox"), self._store.files)

    def unanswered(self, folders: Iterable[Target]) -> None:
        """Note that these folders did not answer, so that no round was begun with them."""
        now = self._store.clock.wall_ms()
        if silent := [_silent(target, now) for target in folders]:
            self._note(silent)

    # -- what came of them ------------------------------------------------------------------------------------------

    def last(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what the last round with each target came to, by its ``where``; empty when nobody knows."""
        try:
            found = json.loads(self._store.files.read(str(self._path), _BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return {}
        return {where: one for where, one in found.items() if _is_sound(one)} if isinstance(found, dict) else {}

    def _note(self, done: Sequence[Round]) -> None:
        told = {**self.last(), **{one.target.where: _plain(one) for one in done}}
        kept = {one.where for one in self.targets()} | {one.target.where for one in done}
        data = json.dumps({where: one for where, one in told.items() if where in kept}, ensure_ascii=False).encode()
        with contextlib.suppress(OSError):  # only shown; the next round tells it again
            replace_file(self._store.files, str(self._path), data)

    def devices(self) -> list[Device]:
        """Return the devices whose events are held, the one heard of last first."""
        return devices.devices(self._store.reader(drain=False).connection)

    def retired(self) -> frozenset[bytes]:
        """Return the replicas of devices that were said never to come back."""
        view = self._store.reader(drain=False)
        return devices.retired(view.connection, view.event)

    def retire(self, device: Device) -> None:
        """Say that a device never comes back: then others may remove its packs once they carry what is in them."""
        self._store.append([Draft(DEVICE_RETIRED, {"device": device.id})])

    def retire_replica(self, replica: bytes) -> None:
        """Say that no directory goes on under a replica: a copy that was deleted, or what one was once."""
        self._store.append([Draft(DEVICE_RETIRED, {"replica": replica.hex()})])


def _silent(target: Target, now: int) -> Round:
    reason = f"the folder does not answer within {asking.ANSWER_S:g} s; it is asked again"
    return Round(target, settled=False, reason=f"{reason}. Is the server there that it is mounted from?", at_ms=now)


def _of_folder(
    target: Target, report: FolderReport, stores: Collection[bytes], known: Collection[str], now: int
) -> Round:
    """Tell what a round came to. A pack of somebody else's store is no concern of ours, and only counted.

    ``known``: replicas whose events are held, in hex; what they left in a store from before they joined is not foreign.
    """
    got = report.received
    ours = [one for one in report.reasons if one[1] != UNKNOWN_KEY or _store(one[0]) in stores]
    kinds = Counter(state for _, state, _ in ours)
    refused = kinds[BAD] + kinds[UNKNOWN_KEY]
    kinds[PENDING] -= report.away
    open_ = [words.format(counted(kinds[state], "pack")) for state, words in _UNSETTLED.items() if kinds[state]]
    if report.away:
        what = "is only a placeholder" if report.away == 1 else "are only placeholders"
        open_.append(_AWAY.format(counted(report.away, "pack"), report.away_bytes / 1e6, what))
    reason = report.paused or "; ".join(open_)
    return Round(
        target,
        settled=not reason,
        reason=reason,
        sent=report.published.events,
        received=got.new + got.bodies,
        files=report.imported,
        pending=report.pending,
        refused=refused,
        bad=got.bad,
        waiting=report.waiting,
        notes=tuple(f"{path}: {state}{f', {why}' if why else ''}" for path, state, why in ours),
        foreign=sum(one not in ours and owner_of(one[0]) not in known for one in report.reasons),
        at_ms=now,
        mended=report.published.mended,
    )


def _sum(before: Round | None, now: Round) -> Round:
    """Return two passes of one round as one: how it stands after the second, and what both moved."""
    if before is None:
        return now
    names = ("sent", "received", "files", "bad", "mended")
    return now._replace(**{name: getattr(before, name) + getattr(now, name) for name in names})


def _with_bare(done: Round, bare: int) -> Round:
    """Tell of events whose body nobody here can read: then the sets differ, though every pack was taken in."""
    if not bare or done.reason:
        return done
    words = f"{counted(bare, 'event')} came without the text, under the key of a project that is not held here"
    remedy = '"memorize key export" on a device that has it, "memorize key import" here'
    return done._replace(settled=False, reason=f"{words}: {remedy}")


def _store(path: str) -> bytes:
    try:
        return bytes.fromhex(path.partition("/")[0])
    except ValueError:
        return b""


def _of_peer(target: Target, report: PeerReport, now: int) -> Round:
    return Round(
        target,
        settled=report.converged,
        reason=with_remedy(report),
        sent=report.sent,
        received=report.received,
        bad=report.bad,
        at_ms=now,
    )


def with_remedy(report: PeerReport) -> str:
    """Return why an exchange did not come to its end, and what helps."""
    remedy = _REMEDIES.get(report.code, "")
    if report.code == "unreachable" and any(words in report.reason for words in _NO_PROGRAM):
        remedy = "install memorize there, or give its path behind the host: ssh://HOST/PATH/OF/memorize"
    return f"{report.reason}: {remedy}" if remedy else report.reason


def _is_sound(one: object) -> bool:
    """Tell whether what was read is what ``_plain`` wrote, though maybe in another version, which had fewer fields."""
    if not isinstance(one, dict):
        return False
    plain = {name: value for name, value in Round._field_defaults.items() if isinstance(value, int | str)}
    return all(type(one.get(name, value)) is type(value) for name, value in plain.items())


def _plain(one: Round) -> dict[str, Any]:
    return {**one._asdict(), "target": one.target._asdict()}
