"""Which devices reached this one by ssh, and how that ended: receipts of ``memorize serve --stdio``."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final, NamedTuple

from memorize.bootstrap.store import Store
from memorize.bootstrap.syncing import with_remedy
from memorize.errors import Problem
from memorize.index import devices
from memorize.log.files import replace_file
from memorize.log.lock import Lock
from memorize.sync.peer import PeerReport

_BYTES_MAX: Final = 1 << 20
_KEPT_MAX: Final = 32
_WAIT_S: Final = 5.0


class Visit(NamedTuple):
    """The last exchange that a device began, as this side saw it.

    ``device``: its id in hex; empty when it did not say, or is not known here: then only ``address``, from where ssh
    said that it came, tells one from another. ``settled``: both held the same. ``set``: the set digest then.
    """

    device: str
    name: str
    address: str
    at_ms: int
    settled: bool
    reason: str = ""
    sent: int = 0
    received: int = 0
    set: str = ""


def note(store: Store, report: PeerReport, address: str) -> None:
    """Keep what an exchange came to, in place of the one before with this device.

    It is only shown, so what hinders it is not told.
    """
    with contextlib.suppress(OSError, Problem), Lock(store.home.locks / "visits", _WAIT_S):
        view = store.reader(drain=False)
        known = devices.devices(view.connection)
        found = next((one for one in known if report.who and report.who in one.replicas), None)
        reason = "" if report.converged else with_remedy(report)
        visit = Visit(
            found.id if found else "",
            found.name if found else "",
            address,
            store.clock.wall_ms(),
            report.converged,
            reason,
            report.sent,
            report.received,
            view.digest()[0],
        )
        kept = [visit, *(one for one in visits(store) if _who(one) != _who(visit))][:_KEPT_MAX]
        data = json.dumps([one._asdict() for one in kept], ensure_ascii=False).encode()
        replace_file(store.files, _path(store), data)


def visits(store: Store) -> list[Visit]:
    """Return the last visit of each device, the latest first; none when nobody knows."""
    try:
        found = json.loads(store.files.read(_path(store), _BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return []
    read = [_visit(one) for one in found] if isinstance(found, list) else []
    return [one for one in read if one is not None]


def _path(store: Store) -> str:
    return str(store.home.visits)


def _who(visit: Visit) -> str:
    return visit.device or visit.address


def _visit(fields: Any) -> Visit | None:
    """Return what was noted, maybe by another version; None when it is something else."""
    known = {name: fields[name] for name in Visit._fields if name in fields} if isinstance(fields, dict) else {}
    try:
        visit = Visit(**known)
    except TypeError:
        return None
    kinds = (str, str, str, int, bool, str, int, int, str)
    return visit if all(type(value) is kind for value, kind in zip(visit, kinds, strict=True)) else None
