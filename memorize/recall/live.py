"""Other sessions at work in the project, and what an agent is told of them before it acts. Pure.

At work is who was active lately. No lock and no process is looked at, so a session that crashed fades by itself, and
nothing here ever stops anybody. Of another device the window ends with the last that was heard of it.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from memorize import limits
from memorize.clock import lasting
from memorize.index.devices import Device
from memorize.index.working import Touch, Working, mark
from memorize.patterns import late
from memorize.recall.gitdeeds import BRANCH, TREE, WORKTREE, Deed

FILE: Final = "file"
GIT: Final = "git"

LIVE_MS: Final = limits.LIVE_S * 1000
NEWS_MS_MAX: Final = limits.NEWS_S_MAX * 1000
ANNOUNCED_MS: Final = limits.ANNOUNCED_S * 1000
_OTHERS_MAX: Final = 4
_FILES_MAX: Final = 3
_PATH_CHARS_MAX: Final = 120
_NAME_CHARS_MAX: Final = 60
# Names that stand in a sentence as they are: nothing in them ends a sentence or begins another.
_WORD: Final = late(r"[\w./@+~#%=,-]+")
_DONE: Final = {"create": "created", "delete": "deleted"}


class Other(NamedTuple):
    """Another session of the project. Times are wall ms.

    ``device`` is "" for this machine, else the other one's name; ``heard``: the last that is known of that machine, for
    this one the present. ``ended``: it was closed.
    """

    agent: str
    session: str
    branch: str
    root: str
    device: str
    opened: int
    last: int
    heard: int
    ended: bool

    @property
    def since(self) -> int:
        """From when on its edits count."""
        return self.heard - LIVE_MS


class Announced(NamedTuple):
    """An edit that a session of this device is about to make in a project. ``nonce`` names the call that said so."""

    nonce: bytes
    project: str
    path: str
    agent: str
    session: str
    branch: str
    at: int


class View(NamedTuple):
    """What is known around a session. ``touches`` the latest first; ``folds``: names that differ in case are one file.

    ``root`` and ``branch`` are those of its checkout; ``titles`` the agents' names for a person.
    """

    others: tuple[Other, ...]
    touches: tuple[Touch, ...] = ()
    announced: tuple[Announced, ...] = ()
    root: str = ""
    branch: str = ""
    folds: bool = False
    titles: Mapping[str, str] = MappingProxyType({})


class Notice(NamedTuple):
    """A warning: of what kind, about what, because of which event (or call), on account of which session."""

    kind: str
    subject: str
    source: bytes
    other: str
    text: str

    @property
    def mark(self) -> bytes:
        """What stands for it among the things that a session was told."""
        return mark(self.kind, self.subject, self.source)


def others(sessions: Iterable[Working], devices: Iterable[Device], here: str, now_ms: int) -> tuple[Other, ...]:
    """Return the sessions that are or were lately at work, this device's first, then the latest first.

    ``here`` is the id of this device. The caller leaves out the session that asks.
    """
    known = {replica: device for device in devices for replica in device.replicas}
    found = []
    for one in sessions:
        device = known.get(one.device)
        at_home = device is None or device.id == here
        heard = now_ms if device is None or at_home else min(device.last, now_ms)
        if heard < now_ms - NEWS_MS_MAX or one.last < heard - LIVE_MS:
            continue
        name = "" if device is None or at_home else device.name or device.id[:8]
        opened = one.last if one.opened is None else min(one.opened, one.last)
        found.append(
            Other(one.agent, one.session, one.branch, one.root, name, opened, one.last, heard, one.closed is not None)
        )
    return tuple(sorted(found, key=lambda one: (bool(one.device), -one.last, one.session)))


def same_file(path: str, *, folds: bool) -> str:
    """Return what equal files have in common: the path in NFC, without case where the file system knows none."""
    text = unicodedata.normalize("NFC", path)
    return unicodedata.normalize("NFC", text.casefold()) if folds else text


def file_notices(view: View, path: str, branch: str, now_ms: int) -> list[Notice]:
    """Return what to say before a file is written: of each session that wrote it lately, or is about to, one notice.

    ``branch`` is that of the checkout which the file lies in. A session that has ended left its work where it was: it
    counts only from another branch.
    """
    wanted, found = same_file(path, folds=view.folds), []
    for other in view.others:
        edits = [
            touch
            for touch in view.touches
            if (touch.session, touch.agent) == (other.session, other.agent)
            and other.since <= touch.at
            and same_file(touch.path, folds=view.folds) == wanted
            and not (other.ended and touch.branch == branch)
        ]
        coming = next((one for one in view.announced if _announces(one, other, wanted, view, now_ms)), None)
        if coming is not None and not other.ended and (not edits or coming.at > edits[0].at):
            text = _about_to(view, coming, other, branch, now_ms)
            found.append(Notice(FILE, path, coming.nonce, other.session, text))
        elif edits:
            text = _edited(view, path, edits, other, branch, now_ms)
            found.append(Notice(FILE, path, edits[0].id, other.session, text))
    return found


def _announces(one: Announced, other: Other, wanted: str, view: View, now_ms: int) -> bool:
    same = (one.session, one.agent) == (other.session, other.agent)
    return same and one.at >= now_ms - ANNOUNCED_MS and same_file(one.path, folds=view.folds) == wanted


def _edited(view: View, path: str, edits: Sequence[Touch], other: Other, branch: str, now_ms: int) -> str:
    last = edits[0]
    done = _DONE.get(last.op, "edited")
    return (
        f"{_short(path)} was {done} {_ago(last.at, now_ms)} by {_who(view, other, last.branch, now_ms)}"
        f"{_lines(edits)}. {_advice(other, last.branch, branch)}"
    )


def _about_to(view: View, coming: Announced, other: Other, branch: str, now_ms: int) -> str:
    who, begun = _who(view, other, coming.branch, now_ms), _ago(coming.at, now_ms)
    return f"{_short(coming.path)} is being edited (begun {begun}) by {who}. {_advice(other, coming.branch, branch)}"


def _lines(edits: Sequence[Touch]) -> str:
    added, removed = sum(touch.added for touch in edits), sum(touch.removed for touch in edits)
    several = f" in {len(edits)} edits" if len(edits) > 1 else ""
    return f", +{added} -{removed} lines{several}" if added or removed else several.replace(" in", ",", 1)


def _advice(other: Other, theirs: str, ours: str) -> str:
    if other.device:
        return "What is here may be older than that; ask the user whether to sync or to go on."
    if theirs != ours:
        return "Both branches change this file and will meet in a merge; ask the user who goes first if that matters."
    return "Read the file again before you change it, or ask the user who goes first."


def _who(view: View, other: Other, branch: str, now_ms: int) -> str:
    age = ""
    if other.device:
        news = lasting(now_ms - other.heard)
        age = f"; last news from there {news} ago" if news else ""
        what = f'a session on device "{_device(other)}"'
    elif other.ended:
        what = "a session that has ended since"
    else:
        what = "another live session"
    on = f", branch {_name(branch)}" if branch else ""
    return f"{what} ({view.titles.get(other.agent, _name(other.agent))}{on}{age})"


def git_notices(view: View, deed: Deed, now_ms: int) -> list[Notice]:
    """Return what to say before a command that may take other sessions' work along.

    ``view`` is that of the checkout which the command works in.
    """
    found = []
    for other in view.others:
        if other.ended or not _reaches(view, deed, other):
            continue
        edits = [
            touch
            for touch in view.touches
            if (touch.session, touch.agent) == (other.session, other.agent)
            and other.since <= touch.at
            and _meets(view, deed, touch)
        ]
        if edits:
            text = _endangered(view, deed, other, edits, now_ms)
            found.append(Notice(GIT, deed.label, edits[0].id, other.session, text))
    return found


def _reaches(view: View, deed: Deed, other: Other) -> bool:
    """Tell whether a deed reaches what a session works on; without its checkout its branch decides."""
    if deed.reach == BRANCH:
        return True
    if other.device:
        return False
    if deed.reach == WORKTREE:
        return any(other.root == name or other.root.endswith(f"/{name.strip('/')}") for name in deed.names)
    return other.root == view.root if other.root and view.root else other.branch == view.branch


def _meets(view: View, deed: Deed, touch: Touch) -> bool:
    if deed.reach == BRANCH:
        return touch.branch in (deed.names or (view.branch,))
    if deed.reach == WORKTREE or not deed.names:
        return True
    path = same_file(touch.path, folds=view.folds)
    wanted = [same_file(name, folds=view.folds) for name in deed.names]
    return any(name == "" or path == name or path.startswith(f"{name}/") for name in wanted)


def _endangered(view: View, deed: Deed, other: Other, edits: Sequence[Touch], now_ms: int) -> str:
    paths = list(dict.fromkeys(touch.path for touch in edits))
    more = f" and {len(paths) - _FILES_MAX} more" if len(paths) > _FILES_MAX else ""
    files = ", ".join(_short(path) for path in paths[:_FILES_MAX]) + more
    where = "in this checkout" if deed.reach == TREE else "there"
    return (
        f"{deed.label} can take along or overwrite what {_who(view, other, edits[0].branch, now_ms)} edited {where} "
        f"{_ago(edits[0].at, now_ms)}: {files}. Make sure that it is committed or not needed, or ask the user first."
    )


def also_here(view: View, now_ms: int) -> tuple[str, ...]:
    """Return a line for each session that is at work beside this one, those of this device first."""
    at_work = [other for other in view.others if not other.ended]
    lines = [_beside(view, other, now_ms) for other in at_work[:_OTHERS_MAX]]
    if len(at_work) > _OTHERS_MAX:
        lines.append(f"{len(at_work) - _OTHERS_MAX} more: memorize sessions")
    return tuple(lines)


def _beside(view: View, other: Other, now_ms: int) -> str:
    facts = [f'device "{_device(other)}", last news {_ago(other.heard, now_ms)}'] if other.device else []
    if not other.device and other.root and view.root and other.root != view.root:
        facts.append(f"worktree {_short(posixpath.relpath(other.root, view.root))}")
    if span := lasting(other.heard - other.opened):
        facts.append(f"for {span}")
    branch = f" on branch {_name(other.branch)}" if other.branch else ""
    known = f" ({', '.join(facts)})" if facts else ""
    return f"{view.titles.get(other.agent, _name(other.agent))}{branch}{known}: {_doing(view, other, now_ms)}."


def _doing(view: View, other: Other, now_ms: int) -> str:
    """Return what a session wrote lately, each file once."""
    files: dict[str, Touch] = {}
    for touch in view.touches:
        if (touch.session, touch.agent) == (other.session, other.agent) and other.since <= touch.at:
            files.setdefault(same_file(touch.path, folds=view.folds), touch)
    said = [f"{_short(touch.path)} {_ago(touch.at, now_ms)}" for touch in list(files.values())[:_FILES_MAX]]
    if not said:
        return f"no file edited lately, last active {_ago(other.last, now_ms)}"
    more = f" and {len(files) - _FILES_MAX} more files" if len(files) > _FILES_MAX else ""
    return f"edited {', '.join(said)}{more}"


def shared(view: View) -> dict[str, list[Touch]]:
    """Return the files that two or more of these sessions edited lately, each with the latest edit of each session."""
    found: dict[str, dict[tuple[str, str], Touch]] = {}
    alive = {(other.session, other.agent): other for other in view.others if not other.ended}
    for touch in view.touches:
        other = alive.get((touch.session, touch.agent))
        if other is not None and other.since <= touch.at:
            path = same_file(touch.path, folds=view.folds)
            found.setdefault(path, {}).setdefault((touch.session, touch.agent), touch)
    return {path: list(edits.values()) for path, edits in found.items() if len(edits) > 1}


def _ago(then_ms: int, now_ms: int) -> str:
    """Return when something was, as it stands in a sentence."""
    span = lasting(now_ms - then_ms)
    return f"{span} ago" if span else "just now"


def _short(path: str) -> str:
    """Return the path, or the end of one that is too long to be shown."""
    return _told(path if len(path) <= _PATH_CHARS_MAX else f"...{path[3 - _PATH_CHARS_MAX :]}")


def _name(text: str) -> str:
    return _told(text[:_NAME_CHARS_MAX])


def _device(other: Other) -> str:
    return other.device[:_NAME_CHARS_MAX].replace('"', "'")


def _told(name: str) -> str:
    """Return a name that somebody else chose, in quotes where it could be read as a part of the sentence."""
    return name if _WORD.fullmatch(name) else '"' + name.replace('"', "'") + '"'
