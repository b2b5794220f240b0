"""Who writes: store, device, replica and writer of a state directory, and when they must be new.

A *replica* is renewed when this directory may be a copy of another one; a *writer* also at each boot and after a write
error. Two that still collide are only twins: every reader keeps both of their events.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from memorize.clock import Clock
from memorize.errors import BadHome, CannotRead, CannotWrite
from memorize.ids import RANDOM_BYTES, random_id
from memorize.log.files import Files, replace_file, write_all
from memorize.log.segments import HEADER_BYTES, SUFFIX, parse_header
from memorize.paths import Home

KEY_BYTES: Final = 32
KEY_SUFFIX: Final = ".key"
_FORMAT: Final = 1
_NOTES_MAX: Final = 50
_FORMER_MAX: Final = 32
_IDENTITY_BYTES_MAX: Final = 64 * 1024
_LOCK_WAIT_S: Final = 10.0
_IDS: Final = ("store", "device", "replica", "writer", "boot")
_MACHINE_FILES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")


# Why a replica is renewed: the directory is not where it was, or another one.
MADE: Final = "made"
COPIED: Final = "this state directory is a copy, or was moved or restored"
# Why it is renewed when events of it come back that its log does not hold.
KNOWN_ELSEWHERE: Final = (
    "another device or a folder held events of this replica that were not here: this state directory was restored from"
    " a backup, is a copy, or had lost them; they were taken in, nothing is lost"
)


class Note(NamedTuple):
    """One renewal, for ``doctor``: when (wall ms) and why."""

    wall: int
    what: str


class Former(NamedTuple):
    """A replica that this state directory was before. ``gone``: it is known that no directory goes on under it.

    That is known when this directory stands at the very path where that one stood, on the same machine. In any other
    case the other one may be there still: this one is its copy, or was made from it elsewhere.
    """

    replica: bytes
    gone: bool


class Identity(NamedTuple):
    """The identity of this incarnation of the state directory.

    ``machine`` and ``place`` (device, inode, birth time of the directory) are the fingerprint. ``seq`` and ``last`` are
    a lower bound of what the writer has written; ``active`` the segment it appends to. ``swept`` says that every
    other own segment is sealed. ``root`` is the path of the directory, ``before`` what replicas it was.
    """

    store: bytes
    device: bytes
    replica: bytes
    writer: bytes
    boot: bytes
    machine: str
    place: tuple[int, int, int]
    seq: int = 0
    last: bytes = b""
    active: str = ""
    swept: bool = True
    notes: tuple[Note, ...] = ()
    root: str = ""
    before: tuple[Former, ...] = ()


def machine_id() -> str:
    """Return what the operating system calls this machine, empty where it says nothing."""
    for name in _MACHINE_FILES:
        try:
            return Path(name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
    return ""


def load_or_renew(home: Home, files: Files, clock: Clock, machine: Callable[[], str] = machine_id) -> Identity:
    """Return the identity of ``home``, made or renewed when it has to be. Safe when many processes start at once.

    Raises CannotRead, CannotWrite, BadHome, Busy.
    """
    here = machine()
    try:
        found = _load(home, files)
        place = files.place(str(home.root)) if found is not None else (0, 0, 0)
        if found is not None and found.root == _root(home) and _doubt(found, place, here, clock.boot()) is None:
            return found
        make_dirs(home, files)
    except OSError as error:
        raise _problem(home, error) from error
    with files.lock(str(home.locks / "identity"), _LOCK_WAIT_S):
        try:
            found = _load(home, files)
            renewed = _renewed(home, files, clock, found, here)
            if renewed is not found:
                # The key first: once there is an identity, nobody looks for a missing key again.
                _make_key(home, files, renewed.store, fresh=found is None and renewed.notes[-1].what == MADE)
                save(home, files, renewed)
        except OSError as error:
            raise CannotWrite(path=str(home.identity), detail=error.strerror or str(error)) from error
    return renewed


def peek(home: Home, files: Files) -> Identity | None:
    """Return the identity as it lies on disk, None when there is none; nothing is made or renewed. Raises OSError."""
    return _load(home, files)


def renew_writer(home: Home, files: Files, clock: Clock, identity: Identity, why: str) -> Identity:
    """Return the identity with a new writer, saved. The old one's segment is sealed by the next ingest. OSError."""
    return _save_new(home, files, _new_writer(identity, clock, why))


def renew_replica(home: Home, files: Files, clock: Clock, identity: Identity, why: str) -> Identity:
    """Return the identity with a new replica and writer, saved: others know more of this one than it does. OSError."""
    return _save_new(home, files, _new_replica(_new_writer(identity, clock, why), gone=False))


def enter_store(home: Home, files: Files, clock: Clock, store: bytes) -> Identity:
    """Have the state directory write to another store from now on; the writer is new, so a segment is of one store.

    Its key must lie in ``keys`` already. Nothing happens when it writes there. Raises Busy, CannotRead, CannotWrite.
    """
    # Between two batches: a writing ingester that renews itself after an error would put the old store back.
    with files.lock(str(home.locks / "ingest"), _LOCK_WAIT_S), files.lock(str(home.locks / "identity"), _LOCK_WAIT_S):
        try:
            found = _load(home, files)
        except OSError as error:
            raise CannotRead(path=str(home.identity), detail=error.strerror or str(error)) from error
        if found is None:
            raise CannotRead(path=str(home.identity), detail="there is no identity yet, or it is damaged")
        if found.store == store:
            return found
        entered = _new_writer(found, clock, f"joined store {store.hex()}")._replace(store=store)
        try:
            save(home, files, entered)
        except OSError as error:
            raise CannotWrite(path=str(home.identity), detail=error.strerror or str(error)) from error
    return entered


def save(home: Home, files: Files, identity: Identity) -> None:
    """Write the identity beside, sync and rename. Raises OSError."""
    replace_file(files, str(home.identity), _dump(identity))


def note_progress(home: Home, files: Files, identity: Identity) -> None:
    """Save what the writer has come to, unless it was renewed meanwhile. Raises OSError, Busy."""
    with files.lock(str(home.locks / "identity"), _LOCK_WAIT_S):
        current = _load(home, files)
        if current is None or current.writer == identity.writer:
            save(home, files, identity)


def make_dirs(home: Home, files: Files) -> None:
    """Create the state directory and its folders where they are missing, and make that durable. Raises OSError."""
    wanted = [home.spool / name for name in ("tmp", "new", "bad")]
    wanted += [home.hook, home.segments, home.received, home.locks, home.keys, home.receipts]
    files.make_dir(str(home.root))
    for path in wanted:
        files.make_dir(str(path))
    for folder in (home.spool, home.root, home.root.parent):
        files.sync_dir(str(folder))


def key_path(home: Home, store: bytes) -> Path:
    """Return where the key of a store lies."""
    return home.keys / f"{store.hex()}{KEY_SUFFIX}"


# -- doubt --------------------------------------------------------------------------------------------------------


def _doubt(identity: Identity, place: tuple[int, int, int], machine: str, boot: bytes) -> str | None:
    """Return why this cannot simply go on as before; None when it can."""
    if _copied(identity, place, machine, boot):
        return COPIED
    return "the machine was started again" if identity.boot != boot else None


def _copied(identity: Identity, place: tuple[int, int, int], machine: str, boot: bytes) -> bool:
    if machine and identity.machine and machine != identity.machine:
        return True
    # Device numbers may change with a boot; within one they tell a snapshot from what it was taken of.
    same_boot = identity.boot == boot
    return place[1:] != identity.place[1:] or (same_boot and place[0] != identity.place[0])


def _renewed(home: Home, files: Files, clock: Clock, found: Identity | None, machine: str) -> Identity:
    place, boot = files.place(str(home.root)), clock.boot()
    if found is None:
        return _first(home, files, clock, machine, place)
    root = _root(home)
    why = _doubt(found, place, machine, boot)
    if why is None:
        return found if found.root == root else found._replace(root=root)
    renewed = _new_writer(found, clock, why)
    if _copied(found, place, machine, boot):
        # Without a name of the machine nobody knows whether this is another one, with a directory at the same path.
        renewed = _new_replica(renewed, gone=bool(machine) and machine == found.machine and root == found.root)
    if machine and found.machine and machine != found.machine:
        renewed = renewed._replace(device=random_id())
    return renewed._replace(boot=boot, machine=machine or found.machine, place=place, root=root)


def _root(home: Home) -> str:
    """Return where the state directory lies, whatever links lead to it."""
    return os.path.realpath(home.root)


def _first(home: Home, files: Files, clock: Clock, machine: str, place: tuple[int, int, int]) -> Identity:
    store, why = _known_store(home, files)
    fresh = Identity(
        store or random_id(), random_id(), random_id(), random_id(), clock.boot(), machine, place, swept=not store
    )
    return fresh._replace(notes=(Note(clock.wall_ms(), why),), root=_root(home))


def _known_store(home: Home, files: Files) -> tuple[bytes, str]:
    """Look for the store that a lost identity belonged to: in the newest own segment, else in the name of a key."""
    directory = str(home.segments)
    names = [name for name in files.names(directory) if name.endswith(SUFFIX)]
    headers = [parse_header(files.read(f"{directory}/{name}", HEADER_BYTES)) for name in names]
    readable = [header for header in headers if header is not None]
    if readable:
        return max(readable, key=lambda header: header.created).store, "the identity file was lost or unreadable"
    for name in sorted(files.names(str(home.keys))):
        if name.endswith(KEY_SUFFIX) and (store := _from_hex(name.removesuffix(KEY_SUFFIX))):
            return store, "the identity file was lost or unreadable"
    return b"", MADE


def _new_writer(identity: Identity, clock: Clock, why: str) -> Identity:
    notes = (*identity.notes, Note(clock.wall_ms(), why))[-_NOTES_MAX:]
    return identity._replace(
        writer=random_id(), boot=clock.boot(), seq=0, last=b"", active="", swept=False, notes=notes
    )


def _new_replica(identity: Identity, *, gone: bool) -> Identity:
    before = (*identity.before, Former(identity.replica, gone))[-_FORMER_MAX:]
    return identity._replace(replica=random_id(), before=before)


# -- the file -----------------------------------------------------------------------------------------------------


def _load(home: Home, files: Files) -> Identity | None:
    """Return the identity on disk; None when there is none that can be understood. Raises OSError."""
    try:
        raw = files.read(str(home.identity), _IDENTITY_BYTES_MAX)
    except FileNotFoundError:
        return None
    try:
        return _parse(json.loads(raw))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _parse(fields: dict[str, Any]) -> Identity:
    names = {name: bytes.fromhex(fields[name]) for name in _IDS}
    if any(len(value) != RANDOM_BYTES for value in names.values()):
        raise ValueError("an id has the wrong length")
    device, inode, birth = (int(value) for value in fields["place"])
    return Identity(
        **names,
        machine=str(fields["machine"]),
        place=(device, inode, birth),
        seq=int(fields["seq"]),
        last=bytes.fromhex(fields["last"]),
        active=str(fields["active"]),
        swept=bool(fields["swept"]),
        notes=tuple(Note(int(wall), str(what)) for wall, what in fields["notes"]),
        root=str(fields.get("root", "")),
        before=tuple(Former(bytes.fromhex(replica), bool(gone)) for replica, gone in fields.get("before", ())),
    )


def _dump(identity: Identity) -> bytes:
    fields = {"format": _FORMAT, **{name: getattr(identity, name).hex() for name in _IDS}}
    fields |= {
        "machine": identity.machine,
        "place": list(identity.place),
        "seq": identity.seq,
        "last": identity.last.hex(),
        "active": identity.active,
        "swept": identity.swept,
        "notes": [list(note) for note in identity.notes],
        "root": identity.root,
        "before": [[former.replica.hex(), former.gone] for former in identity.before],
    }
    return (json.dumps(fields, indent=1) + "\n").encode()


def _save_new(home: Home, files: Files, identity: Identity) -> Identity:
    with files.lock(str(home.locks / "identity"), _LOCK_WAIT_S):
        save(home, files, identity)
    return identity


def _make_key(home: Home, files: Files, store: bytes, *, fresh: bool) -> None:
    """Make the key of a new store. One that was there before has it, or has lost it: nobody could use another one."""
    directory, path = str(home.keys), str(key_path(home, store))
    if os.path.basename(path) in files.names(directory):  # noqa: PTH119
        files.sync_dir(directory)  # who made it may have died before its name was durable
        return
    if not fresh:
        return
    beside = path + ".new"
    if os.path.basename(beside) in files.names(directory):  # noqa: PTH119
        files.unlink(beside)
    handle = files.create(beside)
    try:
        write_all(files, handle, os.urandom(KEY_BYTES))
        files.fsync(handle)
    finally:
        files.close(handle)
    files.rename(beside, path)
    files.sync_dir(directory)


def _from_hex(text: str) -> bytes:
    try:
        value = bytes.fromhex(text)
    except ValueError:
        return b""
    return value if len(value) == RANDOM_BYTES else b""


def _problem(home: Home, error: OSError) -> Exception:
    detail = error.strerror or str(error)
    # A directory that cannot be made is one that cannot be used; a full disk is another matter.
    if isinstance(error, NotADirectoryError | FileExistsError | PermissionError | FileNotFoundError):
        return BadHome(path=str(home.root), detail=detail)
    if error.filename is not None and os.fspath(error.filename) == str(home.identity):
        return CannotRead(path=str(home.identity), detail=detail)
    return CannotWrite(path=str(home.root), detail=detail)
