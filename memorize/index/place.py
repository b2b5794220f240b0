"""Which project a directory belongs to, read from ``.git`` files alone: git is never run, and need not be there.

The identities of a project, the strongest first: the id in its marker file, its remote, its first commit, its path on
this device. The strongest one present makes the key; the weaker ones are hints.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from memorize.clock import Clock, SystemClock
from memorize.ids import project_key
from memorize.index import gitfiles

MARKER: Final = ".memorize.toml"
_MARKER_BYTES_MAX: Final = 64 * 1024
_EXCLUDE_CHARS_MAX: Final = 1024 * 1024
_NOTHING_SAID: Final[Mapping[str, object]] = MappingProxyType({})
_NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})
_CACHED_MAX: Final = 256
_FOLDS: Final = sys.platform in ("darwin", "win32")
_STAMPED_MAX: Final = 4096
# Within this time a directory is not even looked at again: a batch of captures names the same few over and over.
_TRUSTED_NS: Final = 20_000_000


class Place(NamedTuple):
    """Where a directory lies.

    ``root`` is the top of the checkout, ``dir`` the directory relative to it (with ``/``, "" at the top).
    ``branch`` is empty when HEAD is detached, ``head`` when there is no commit yet. ``capture_off``: the person asked
    not to be remembered here. ``marker`` is what the marker file says, empty without one. ``folds``: names that differ
    in case are one file here; git tried it when it made the repository, else it is what the system usually does.
    ``aliases`` are those of git there, name -> expansion.
    """

    project: str
    name: str
    identities: tuple[tuple[str, str], ...]
    root: str
    dir: str
    branch: str
    head: str
    capture_off: bool
    marker: Mapping[str, object]
    folds: bool = False
    aliases: Mapping[str, str] = _NO_ALIASES


# What a file looked like when it was read: inode, size, time of the last change; None when it was not there.
_Stamp = tuple[int, int, int] | None
_Stamps = tuple[tuple[str, _Stamp], ...]


class Places:
    """``locate`` with a memory: a directory is read again only when one of the files that decided has changed."""

    def __init__(
        self,
        device: str,
        exclude: str | os.PathLike[str] = "",
        clock: Clock | None = None,
        settings: tuple[str, ...] = (),
    ) -> None:
        """``device`` names this machine; ``exclude`` is the file of directories that are never captured.

        ``settings`` are the person's own configuration files of git, the weaker one first.
        """
        self._settings = settings
        self._device = device
        self._exclude = os.fspath(exclude)
        self._clock = clock or SystemClock()
        self._known: dict[str, tuple[int, _Stamps, Place]] = {}
        self._stamped: dict[str, tuple[int, _Stamp]] = {}

    def __call__(self, path: str) -> Place:
        """Return the place of a directory."""
        now = self._clock.monotonic_ns()
        held = self._known.get(path)
        if held is not None:
            looked, stamps, place = held
            if 0 <= now - looked < _TRUSTED_NS:
                return place
            if all(self._stamp(name, now) == stamp for name, stamp in stamps):
                self._known[path] = (now, stamps, place)
                return place
        finder = _Finder(self._device, self._exclude, self._settings)
        place = finder.locate(path)
        if len(self._known) >= _CACHED_MAX:
            self._known.pop(next(iter(self._known)))
        self._known[path] = (now, tuple((name, _stamp(name)) for name in finder.looked_at), place)
        return place

    def _stamp(self, name: str, now: int) -> _Stamp:
        """Return what a file looks like, or did a moment ago: the directories of a checkout share most files."""
        held = self._stamped.get(name)
        if held is not None and 0 <= now - held[0] < _TRUSTED_NS:
            return held[1]
        if len(self._stamped) >= _STAMPED_MAX:
            self._stamped.clear()
        found = _stamp(name)
        self._stamped[name] = (now, found)
        return found


def locate(
    path: str | os.PathLike[str],
    device: str,
    exclude: str | os.PathLike[str] = "",
    settings: tuple[str, ...] = (),
) -> Place:
    """Return the place of a directory, which need not exist. Never raises for what lies on the disk."""
    return _Finder(device, os.fspath(exclude), settings).locate(os.fspath(path))


class _Finder:
    """One look; ``looked_at`` are the files that decided, present or not."""

    def __init__(self, device: str, exclude: str, settings: tuple[str, ...]) -> None:
        self._device = device
        self._exclude = exclude
        self._settings = settings
        self.looked_at: dict[str, None] = {}

    def locate(self, path: str) -> Place:
        start = os.path.abspath(path.replace("\0", ""))
        above = _above(start)
        git = next((found for folder in above if (found := self._checkout(folder)) is not None), None)
        top, marker, off = self._markers(above, git.top if git is not None else "")
        top = git.top if git is not None else top or start
        identities = self._identities(git, marker, top)
        inside = os.path.relpath(start, top)
        return Place(
            project_key(*identities[0]),
            _text(marker.get("name")) or _name(identities),
            identities,
            _clean(top),
            "" if inside == os.curdir else _clean(inside.replace(os.sep, "/")),
            git.branch if git is not None else "",
            git.head if git is not None else "",
            off or self._excluded(above),
            marker,
            git.folds if git is not None else _FOLDS,
            git.aliases if git is not None else _NO_ALIASES,
        )

    def _checkout(self, folder: str) -> gitfiles.Checkout | None:
        self.looked_at[os.path.join(folder, ".git")] = None
        found = gitfiles.read(folder, self._settings)
        if found is not None:
            self.looked_at.update(dict.fromkeys(found.files))
        return found

    def _markers(self, above: list[str], top: str) -> tuple[str, Mapping[str, object], bool]:
        """Return the nearest marker's directory, what it says, and whether any marker above switches capture off.

        A marker above a checkout speaks for other projects; only its opt-out is heard. An inner marker lifts no outer
        opt-out: the hook does not look that closely either.
        """
        nearest, said, off, inside = "", _NOTHING_SAID, False, True
        for folder in above:
            path = os.path.join(folder, MARKER)
            self.looked_at[path] = None
            words = _marker(path)
            if words is not None:
                off = off or words.get("capture") is False
                if inside and not nearest:
                    nearest, said = folder, words
            inside = inside and folder != top
        return nearest, said, off

    def _excluded(self, above: list[str]) -> bool:
        """Tell whether the file of excluded directories names one of these, by whatever spelling or link."""
        if not self._exclude:
            return False
        self.looked_at[self._exclude] = None
        try:
            with open(self._exclude, encoding="utf-8", errors="surrogateescape") as file:
                listed = [os.path.expanduser(line.strip()) for line in file.read(_EXCLUDE_CHARS_MAX).split("\n")]
        except OSError:
            return False
        places = {_inode(folder) for folder in above} - {None}
        return any(line in above or _inode(line) in places for line in listed if os.path.isabs(line))

    def _identities(
        self, git: gitfiles.Checkout | None, marker: Mapping[str, object], top: str
    ) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        if name := _text(marker.get("id")):
            found.append(("marker", name))
        if git is not None and git.remote:
            found.append(("remote", git.remote))
        if git is not None and git.first_commit:
            found.append(("root", git.first_commit))
        # The worktrees of one repository share its common directory, so they are one project without a remote, too.
        where = _real(git.home if git is not None else top)
        found.append(("path", f"{self._device}\0{_clean(where)}"))
        return tuple(found)


def _above(start: str) -> list[str]:
    """Return a directory and all above it."""
    found = [start]
    while (parent := os.path.dirname(found[-1])) != found[-1]:
        found.append(parent)
    return found


def _marker(path: str) -> Mapping[str, object] | None:
    """Return what a marker says, None when there is none. Of one that cannot be parsed only the opt-out counts."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MARKER_BYTES_MAX).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return None
    import tomllib  # few projects have a marker

    try:
        said: dict[str, object] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        said = {}
    if any(line.partition("#")[0].replace(" ", "").replace("\t", "") == "capture=false" for line in text.splitlines()):
        said["capture"] = False
    return said


def marker_fault(root: str) -> str:
    """Return why the marker file of a checkout is no TOML, "" when it is, or is not there."""
    import tomllib

    try:
        with open(os.path.join(root, MARKER), "rb") as file:
            tomllib.loads(file.read(_MARKER_BYTES_MAX).decode("utf-8-sig"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, RecursionError) as error:
        return str(error)
    return ""


def _name(identities: tuple[tuple[str, str], ...]) -> str:
    for kind, value in identities:
        if kind == "remote":
            return value.rsplit("/", 1)[-1]
    path = identities[-1][1].split("\0", 1)[1]
    return os.path.basename(path).removesuffix(".git") or path


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _clean(path: str) -> str:
    """Return a path as text that can be stored; names that are no UTF-8 keep their bytes as escapes."""
    return path.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino)


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)
