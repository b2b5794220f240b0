"""What a run of the ingester tells."""

from __future__ import annotations

from typing import NamedTuple

from memorize.log.frames import Damage


class IngestReport(NamedTuple):
    """What a run did.

    ``files``: spool files that are done with. ``events``: events written. ``known``: drafts that were in the log
    already. ``bad``: files set aside. ``unread``: files that could not be read now and stay. ``left``: files still in
    the spool, at least. ``recovered``: events indexed that an earlier run had written. ``damages``: (file, damage) met
    in what was read. ``unreadable``: received files that gave an input error.
    """

    files: int = 0
    events: int = 0
    known: int = 0
    bad: int = 0
    unread: int = 0
    left: int = 0
    recovered: int = 0
    damages: tuple[tuple[str, Damage], ...] = ()
    unreadable: tuple[str, ...] = ()
