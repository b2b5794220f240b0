"""What keeps a daemon up for other devices: paired ones, and the folders and addresses to sync with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memorize.bootstrap import App
from memorize.errors import Problem

if TYPE_CHECKING:
    from memorize.daemon.carrying import Carrying
    from memorize.daemon.peering import Peering

LEAVE_S: Final = 10.0


class Others:
    """Starts what looks after other devices once there are any. Without any, nothing of it is loaded."""

    def __init__(self, app: App) -> None:
        """Nothing is looked at yet."""
        self._app = app
        self._peering: Peering | None = None
        self._carrying: Carrying | None = None

    def look(self) -> bool:
        """See that everything that is wanted runs; tell whether the daemon is to stay for it."""
        # Both are asked: one must not hide the other.
        return any([self._look_for_peers(), self._look_for_targets()])

    def peers(self) -> dict[str, Any]:
        """Return what is known of the connections to paired devices."""
        return self._peering.status() if self._peering is not None else {}

    def close(self) -> None:
        """Have everything end, and wait for it."""
        running = [one for one in (self._peering, self._carrying) if one is not None]
        for one in running:
            one.leave.set()
        for one in running:
            one.join(timeout=LEAVE_S)

    def _look_for_peers(self) -> bool:
        if self._peering is not None and self._peering.is_alive():
            return True
        if not self._app.home.peers.exists():
            return False
        from memorize.daemon.peering import Peering

        self._peering = Peering(self._app, self._app.again)
        self._peering.start()
        return True

    def _look_for_targets(self) -> bool:
        if not self._app.home.sync.exists():
            return False
        from memorize.sync import targets

        try:
            if not targets.load(self._app.home, self._app.files):
                return False
        except Problem:  # a verb tells
            return False
        if self._carrying is None or not self._carrying.is_alive():
            from memorize.daemon.carrying import Carrying

            self._carrying = Carrying(self._app.again())
            self._carrying.start()
        return True
