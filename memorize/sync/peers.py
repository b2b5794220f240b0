"""The paired devices: ``keys/peers.json``. A device is its certificate; its name and addresses are hints."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from memorize.errors import AmbiguousPeer, CannotRead, CannotWrite, ListDamaged, UnknownPeer
from memorize.log.files import Files, replace_file
from memorize.paths import Home
from memorize.sync.tls import fingerprint

PEERS_MAX: Final = 16
ADDRESSES_MAX: Final = 8
NAME_CHARS_MAX: Final = 100
_FORMAT: Final = 1
_BYTES_MAX: Final = 1024 * 1024
_LOCK_WAIT_S: Final = 10.0


class Address(NamedTuple):
    """Where a device may be reached."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return it as a person types it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Peer(NamedTuple):
    """A paired device. ``certificate``: DER; ``device``: its id at the time; ``since``: wall ms."""

    name: str
    certificate: bytes
    addresses: tuple[Address, ...] = ()
    device: bytes = b""
    since: int = 0

    @property
    def fingerprint(self) -> bytes:
        """By this the device is known."""
        return fingerprint(self.certificate)


def address(text: str, default_port: int) -> Address:
    """Return the address in ``HOST``, ``HOST:PORT`` or ``[HOST]:PORT``. Raises ValueError."""
    text = text.strip()
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        port = rest.removeprefix(":") if bracket and rest[:1] in ("", ":") else "?"
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    number = int(port) if port else default_port
    if not host or any(one.isspace() for one in host) or len(host) > 255 or not 0 < number < 65_536:
        raise ValueError("not an address")
    return Address(host, number)


def load(home: Home, files: Files) -> tuple[Peer, ...]:
    """Return the paired devices in the order in which they were paired. Raises CannotRead, ListDamaged."""
    path = str(home.peers)
    try:
        raw = files.read(path, _BYTES_MAX)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise CannotRead(path=path, detail=error.strerror or str(error)) from error
    try:
        return tuple(_peer(fields) for fields in json.loads(raw)["peers"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ListDamaged(path=path, detail=error, again="memorize peer pair") from error


def change(home: Home, files: Files, decide: Callable[[tuple[Peer, ...]], Iterable[Peer]]) -> tuple[Peer, ...]:
    """Load, let ``decide`` make another list of it, save that. Raises Busy, CannotRead, CannotWrite, ListDamaged."""
    path = str(home.peers)
    with files.lock(str(home.locks / "peers"), _LOCK_WAIT_S):
        before = load(home, files)
        after = tuple(decide(before))
        try:
            if after != before:
                _write(files, path, after)
        except OSError as error:
            raise CannotWrite(path=path, detail=error.strerror or str(error)) from error
        return after


def _write(files: Files, path: str, peers: tuple[Peer, ...]) -> None:
    """Write the file; without a peer there is none, by which a daemon sees that it has nobody to keep up for."""
    if not peers:
        files.unlink(path)
        return
    fields = {"format": _FORMAT, "peers": [_fields(peer) for peer in peers]}
    replace_file(files, path, (json.dumps(fields, ensure_ascii=False, indent=1) + "\n").encode())


def with_peer(peers: Iterable[Peer], new: Peer) -> list[Peer]:
    """Return the list with a device that was just paired, in the place of what it was before."""

    def same(peer: Peer) -> bool:
        return peer.certificate == new.certificate or bool(peer.device and peer.device == new.device)

    return [*(peer for peer in peers if not same(peer)), new][-PEERS_MAX:]


def named(peers: Iterable[Peer], text: str) -> Peer:
    """Return the device with this name, or whose fingerprint begins so. Raises UnknownPeer, AmbiguousPeer."""
    peers = tuple(peers)
    wanted = unicodedata.normalize("NFC", text)  # names come from file systems and keyboards that differ in it
    found = [peer for peer in peers if unicodedata.normalize("NFC", peer.name) == wanted]
    if not found and len(text) >= 4:
        found = [peer for peer in peers if peer.fingerprint.hex().startswith(text.lower())]
    if not found:
        raise UnknownPeer(name=text)
    if len(found) > 1:
        raise AmbiguousPeer(name=text, candidates=", ".join(peer.fingerprint.hex()[:12] for peer in found))
    return found[0]


def _fields(peer: Peer) -> dict[str, Any]:
    return {
        "name": peer.name,
        "certificate": base64.b64encode(peer.certificate).decode("ascii"),
        "addresses": [list(one) for one in peer.addresses],
        "device": peer.device.hex(),
        "since": peer.since,
    }


def _peer(fields: dict[str, Any]) -> Peer:
    return Peer(
        str(fields["name"]),
        base64.b64decode(fields["certificate"], validate=True),
        tuple(Address(str(host), int(port)) for host, port in fields["addresses"]),
        bytes.fromhex(fields["device"]),
        int(fields["since"]),
    )
