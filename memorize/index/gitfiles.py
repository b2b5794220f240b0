"""What the files of a repository say, without git: where its parts lie, branch, HEAD, remote, first commit."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import unquote

from memorize.index.gitcommits import first_commit
from memorize.index.gitconfig import FILE_BYTES_MAX, aliases, entries, read_text
from memorize.patterns import late

_LOG_BYTES_MAX: Final = 8 * 1024 * 1024
_PACKED_REFS_BYTES_MAX: Final = 64 * 1024 * 1024
# How many loose commits are read to find the first one: where there is a remote it is a mere hint.
_LOOSE_MAX: Final = 200
_LOOSE_WITHOUT_REMOTE_MAX: Final = 10_000
_LINKS_MAX: Final = 8
_NO_ALIASES: Final[Mapping[str, str]] = MappingProxyType({})
_YES: Final = ("true", "yes", "on", "1")
_SHA: Final = late(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_URL: Final = late(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_SCP: Final = late(r"(?:[^@/]+@)?(?P<host>\[[^\]]+\]|[^:/\\]{2,}):(?P<path>.*)", re.DOTALL)
_PORTS: Final = {"ssh": "22", "https": "443", "http": "80", "git": "9418", "git+ssh": "22"}


class Checkout(NamedTuple):
    """A checkout. ``top`` is its upper directory; ``home`` names the repository on this machine.

    All worktrees of one repository have one ``home``. ``remote`` is normalised, "" without one. ``files`` are those
    that decided the answer, so that a change can be noticed. ``folds``: names that differ in case are one file, as git
    found when it made the repository.
    """

    top: str
    home: str
    branch: str
    head: str
    remote: str
    first_commit: str
    files: tuple[str, ...]
    folds: bool = False
    aliases: Mapping[str, str] = _NO_ALIASES


class History(NamedTuple):
    """What the log of HEAD tells of a repository: the commits it was at, and what it was cloned from (None: nothing).

    Empty without a repository, and where git was told to keep no log.
    """

    commits: frozenset[str] = frozenset()
    source: str | None = None


def history(folder: str) -> History:
    """Return the history of the checkout whose top is ``folder``. Never raises."""
    git = _git_dir(os.path.join(folder, ".git"))
    text = read_text(os.path.join(_common_dir(git), "logs", "HEAD"), _LOG_BYTES_MAX) if git is not None else None
    lines = (text or "").splitlines()
    commits = frozenset(line.split(" ", 2)[1] for line in lines if line.count(" ") > 1)
    _, cloned, source = (lines[0] if lines else "").partition("\tclone: from ")
    return History(commits, source.strip() if cloned else None)


def read(folder: str, settings: tuple[str, ...] = ()) -> Checkout | None:
    """Return the checkout whose top is ``folder``, None when it is none. Never raises.

    ``settings`` are the person's own configuration files of git, the weaker one first.
    """
    link = os.path.join(folder, ".git")
    git = _git_dir(link)
    if git is None:
        return None
    common = _common_dir(git)
    branch, head, decided = _head(git, common)
    config = os.path.join(common, "config")
    home = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    known, looked = aliases((*settings, config))
    files = (link, os.path.join(git, "HEAD"), config, *decided, *looked)
    remote, folds = _settings(config)
    first = first_commit(common, head, _LOOSE_MAX if remote else _LOOSE_WITHOUT_REMOTE_MAX)
    return Checkout(folder, home, branch, head, remote, first, files, folds, known)


def _git_dir(link: str) -> str | None:
    """Return the git directory that ``.git`` is or names; a directory without HEAD is none."""
    if os.path.isdir(link):
        found = link
    else:
        text = read_text(link, FILE_BYTES_MAX)
        if text is None or not text.startswith("gitdir:"):
            return None
        found = _line(text[len("gitdir:") :])
        found = os.path.normpath(os.path.join(os.path.dirname(link), found))
    return found if os.path.lexists(os.path.join(found, "HEAD")) else None


def _common_dir(git: str) -> str:
    """Return the directory that all worktrees share."""
    text = read_text(os.path.join(git, "commondir"), FILE_BYTES_MAX)
    if text is None:
        return git
    return os.path.normpath(os.path.join(git, _line(text)))


def _line(text: str) -> str:
    """Return a path as git wrote it into a file: one line break at the end is git's, others belong to the name."""
    return text.lstrip(" ").removesuffix("\n").removesuffix("\r")


def _head(git: str, common: str) -> tuple[str, str, tuple[str, ...]]:
    """Return branch, commit and the files that told."""
    name = os.path.join(git, "HEAD")
    text = (read_text(name, FILE_BYTES_MAX) or "").strip()
    if not text.startswith("ref:"):
        return "", text if _SHA.match(text) else "", ()
    ref = text[len("ref:") :].strip()
    # With the reftable format HEAD names a branch that cannot be, and the references are in no file of their own.
    branch = "" if ref == "refs/heads/.invalid" else ref.removeprefix("refs/heads/")
    files: list[str] = []
    for _ in range(_LINKS_MAX):
        found = ""
        for base in dict.fromkeys((git, common)):
            path = os.path.join(base, *ref.split("/"))
            files.append(path)
            found = found or (read_text(path, FILE_BYTES_MAX) or "").strip()
        if not found:
            files.append(os.path.join(common, "packed-refs"))
            found = _packed(files[-1], ref)
        if not found.startswith("ref:"):
            return branch, found if _SHA.match(found) else "", tuple(files)
        ref = found[len("ref:") :].strip()
    return branch, "", tuple(files)


def _packed(path: str, ref: str) -> str:
    text = read_text(path, _PACKED_REFS_BYTES_MAX)
    if text is None:
        return ""
    end = text.find(f" {ref}\n")
    start = text.rfind("\n", 0, end) + 1 if end >= 0 else 0
    return text[start:end] if end >= 0 else ""


def _settings(config: str) -> tuple[str, bool]:
    """Return the normalised URL of ``origin``, else of the first remote by name ("" for none), and ``ignorecase``."""
    text = read_text(config, FILE_BYTES_MAX)
    if text is None:
        return "", False
    remotes: dict[str, str] = {}
    folds = False
    for section, name, key, value in entries(text):
        if section == "remote" and value is not None and key == "url" and name not in remotes:
            remotes[name] = normal_remote(value)
        elif section == "core" and key == "ignorecase":
            folds = value is None or value.lower() in _YES
    known = {key: url for key, url in remotes.items() if url}
    return known.get("origin") or (known[min(known)] if known else ""), folds


def normal_remote(url: str) -> str:
    """Return ``host/path`` of a remote, so that all ways to write one are equal; "" for a local path.

    The host is case-folded; scheme, user, password, default port, ``.git`` and slashes at the ends go.
    """
    url = url.strip()
    full = _URL.fullmatch(url)
    if full is not None:
        scheme = full["scheme"].lower()
        host, _, path = full["rest"].partition("/")
        if scheme == "file":
            return ""
        host = host.rsplit("@", 1)[-1]
        host, port = _port(host)
        if port and port != _PORTS.get(scheme):
            host = f"{host}:{port}"
        path = unquote(path)
    else:
        short = _SCP.fullmatch(url)
        if short is None:
            return ""
        host, path = short["host"].strip("[]"), short["path"]
    host = host.casefold().rstrip(".")
    path = re.sub(r"/{2,}", "/", path.split("?", 1)[0].split("#", 1)[0]).strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}" if host and path else ""


def _port(host: str) -> tuple[str, str]:
    """Return a host and its port; an address of version 6 stands in brackets."""
    if host.startswith("["):
        inner, _, rest = host[1:].partition("]")
        return inner, rest.removeprefix(":")
    name, _, port = host.partition(":")
    return name, port
