"""Finding what a person wants erased, and asking for it."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from memorize.bootstrap import keeping
from memorize.bootstrap.app import App
from memorize.errors import CannotRead
from memorize.index import related
from memorize.index.related import Going
from memorize.limits import ERASE_IDS_MAX
from memorize.log.codec import Bad
from memorize.log.frames import ERASED, EVENT
from memorize.log.segments import RECEIVED, SEGMENTS, SUFFIX, frame_event, read_segment
from memorize.model import ERASE_REQUESTED, PROJECT_SEEN, Draft, Event

Progress = Callable[[int, int], None]

# Names and enumerations: to look for words in them would find everything.
_NO_WORDS: Final = frozenset({"agent", "session", "project", "window", "kind", "scope", "trust", "source", "device"})


class Item(NamedTuple):
    """One event that goes: its first words and why."""

    id: bytes
    kind: str
    text: str
    why: str


def matching(app: App, text: str, progress: Progress) -> list[bytes]:
    """Return every event that can be erased and whose text, paths or names contain these words, whatever their case.

    The log itself is read, not the index, which keeps only the beginning of long texts.
    """
    wanted = _folded(text)
    names = [f"{folder}/{name}" for folder in (SEGMENTS, RECEIVED) for name in _names(app, folder)]
    found: list[bytes] = []
    for number, name in enumerate(names):
        progress(number, len(names))
        try:
            frames = read_segment(app.files, str(app.home.root / name)).frames
        except OSError as error:
            raise CannotRead(path=app.home.root / name, detail=error.strerror or error) from error
        for frame in frames:
            if frame.type != EVENT or frame.flags & ERASED:
                continue
            with contextlib.suppress(Bad):
                event = frame_event(frame)
                if related.may_go(event.kind) and event.kind != PROJECT_SEEN and _says(event.payload, wanted):
                    found.append(event.id)
    progress(len(names), len(names))
    return list(dict.fromkeys(found))


def of_project(app: App, project: str) -> list[bytes]:
    """Return the events of a project and of all that is joined with it."""
    reader = app.reader()
    keys = reader.family(project)
    seen = [
        identity
        for identity in related.sightings(reader.connection)
        if (event := reader.event(identity)) is not None and (event.payload or {}).get("key") in keys
    ]
    return related.of_projects(reader.connection, keys, seen)


def items(app: App, going: Going, most: int | None = None) -> list[Item]:
    """Return what goes, in the order of the log; ``most``: how many of it."""
    reader = app.reader(drain=False)
    kinds = related.kinds_of(reader.connection, going.ids)
    chosen = list(going.ids)[:most]
    found = [(reader.event(identity), identity) for identity in chosen]
    return [Item(one, kinds.get(one, ""), _first_words(event), going.ids[one]) for event, one in found]


def request(app: App, going: Going, *, reason: str = "") -> list[bytes]:
    """Ask every replica to erase this, and begin here. Returns the ids of the requests; they hold no text.

    Raises NotKept, Deferred, NotWritten.
    """
    connection = app.reader(drain=False).connection
    projects, sessions = related.projects_of(connection, going.ids), related.sessions_of(connection, going.ids)
    ids = sorted(going.ids)
    drafts: list[Draft] = []
    for start in range(0, len(ids), ERASE_IDS_MAX):
        payload: dict[str, Any] = {"ids": ids[start : start + ERASE_IDS_MAX], "reason": reason, "projects": projects}
        if not start:
            payload |= {"kept": list(going.kept), "sessions": sessions}
        drafts.append(Draft(ERASE_REQUESTED, payload, len(drafts)))
    with app.erasing.held_back():
        made = app.append(drafts, strict=True)
        # New keys before the old ones are spent by the acknowledgement.
        if projects and keeping.keyring(app).scopes:
            for identity in made:
                keeping.renew_scopes(app, projects, identity)
    return made


def _names(app: App, folder: str) -> list[str]:
    try:
        return sorted(name for name in app.files.names(str(app.home.root / folder)) if name.endswith(SUFFIX))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CannotRead(path=app.home.root / folder, detail=error.strerror or error) from error


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _says(payload: object, wanted: str) -> bool:
    return any(wanted in _folded(text) for text in _texts(payload))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            if name not in _NO_WORDS:
                yield from _texts(one)
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for one in value:
            yield from _texts(one)


# The field that tells most of an event, the first that it has.
_TELLING: Final = ("text", "command", "path", "subject", "tool", "reason", "source", "name", "verdict")


def _first_words(event: Event | None) -> str:
    payload = (event.payload if event is not None else None) or {}
    return next((value for name in _TELLING if isinstance(value := payload.get(name), str) and value), "")


def known(app: App, ids: Collection[bytes]) -> dict[bytes, str]:
    """Return id -> kind of those of these events that are known."""
    return related.kinds_of(app.reader(drain=False).connection, ids)
