"""A hint that something changed in a sync folder. Listing is the truth: whatever fails here only makes it later.

Watchers miss things on every system: queues overflow, network mounts tell nothing, a directory made anew is not the
one that is watched. So nothing is concluded from silence, and nothing but "look" from an event.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any


class FolderWatch:
    """Watches folders where the system can. ``changed`` is set when one of them should be listed."""

    def __init__(self, changed: threading.Event | None = None) -> None:
        """``changed``: an event of the caller's own, so that one wait covers everything it waits for."""
        self.changed = changed or threading.Event()
        self._observer: Any = None
        self._watched: tuple[str, ...] = ()

    def watch(self, folders: Iterable[str]) -> bool:
        """Watch these folders from now on instead of those before; tell whether all of them can be watched."""
        wanted = tuple(sorted(folders))
        if wanted == self._watched and self.is_alive():
            return True
        self.close()
        self._watched = wanted
        try:
            self._start(wanted)
        except Exception:
            # No room for another watch, no such folder, a system that has none: listing does it alone.
            self.close()
            return False
        return True

    def is_alive(self) -> bool:
        """Tell whether the watcher still runs."""
        return self._observer is not None and bool(self._observer.is_alive())

    def close(self) -> None:
        """Stop watching."""
        observer, self._observer = self._observer, None
        if observer is not None:
            try:
                observer.stop()
                observer.join(5.0)
            except Exception:  # it never ran
                return

    def _start(self, folders: Iterable[str]) -> None:
        from watchdog.events import FileSystemEventHandler
        from watchdog.observers import Observer

        changed = self.changed

        class Handler(FileSystemEventHandler):
            """Any event means the same. Reading a file is none: our own reading would wake us for ever."""

            def on_any_event(self, event: Any) -> None:
                if event.event_type not in ("opened", "closed_no_write"):
                    changed.set()

        observer = Observer()
        observer.daemon = True
        for folder in folders:
            observer.schedule(Handler(), folder, recursive=True)
        observer.start()
        self._observer = observer
