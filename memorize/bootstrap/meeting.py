"""Pairing with the parts of this program: what this device tells of itself, takes, gives and remembers."""

from __future__ import annotations

import contextlib
import platform
import socket
import time
from collections.abc import Callable, Iterable
from typing import Final

from memorize.bootstrap import keeping
from memorize.bootstrap.store import Store
from memorize.errors import NotPaired
from memorize.sync import keys, lan, pairing, peers, tls
from memorize.sync.code import Code
from memorize.sync.pairing import GUEST, HOST, About, Hands, NoAttempt, Terms
from memorize.sync.peers import Address, Peer

CONNECT_S: Final = 10.0
_TICK_S: Final = 0.25


def device_name(store: Store) -> str:
    """Return what other devices call this one."""
    return store.config.peers_name or platform.node() or "unnamed"


def own_certificate(store: Store) -> tls.OwnCertificate:
    """Return the certificate of this device. Raises CannotRead, CannotWrite."""
    return tls.own_certificate(store.home, store.files, store.identity.device)


def own_addresses(store: Store) -> tuple[Address, ...]:
    """Return where the daemon of this device can be reached while it listens."""
    return tuple(Address(host, store.config.peers_port) for host in lan.own_addresses())


def about(store: Store) -> About:
    """Return what this device tells of itself in a pairing."""
    ring = keeping.keyring(store)
    return About(
        device_name(store),
        store.identity.device,
        own_certificate(store).der,
        ring.store,
        ring.left,
        store.reader().counts().events,
        own_addresses(store),
        store.config.peers_listen == "on",
    )


def wait_for(
    store: Store, code: Code, listener: socket.socket, seconds: float, told: Callable[[Terms], None] = lambda _: None
) -> Terms:
    """Wait for the device at which the code is typed, and pair with it. ``told``: called before anything changes.

    The first one that tries uses the code up, whether it is right or wrong. Raises NotPaired, and what ``take`` raises.
    """
    mine = about(store)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        listener.settimeout(min(_TICK_S, left))
        try:
            wire, _ = listener.accept()
        except TimeoutError:
            continue
        with wire, contextlib.suppress(NoAttempt):
            terms = pairing.as_host(wire, code, mine, _hands(store, lambda _: True))
            told(terms)
            _remember(store, terms.guest, ())
            return terms
    raise NotPaired(detail="nobody came in time")


def call(store: Store, code: Code, places: Iterable[Address], agree: Callable[[Terms], bool]) -> Terms:
    """Pair with the device that shows the code, at the first of these addresses that answers. Raises as above."""
    mine = about(store)
    why = "it was found at no address"
    for place in places:
        try:
            wire = socket.create_connection((place.host, place.port), CONNECT_S)
        except OSError as error:
            why = f"{place} cannot be reached ({error.strerror or error})"
            continue
        with wire:
            terms = pairing.as_guest(wire, code, mine, _hands(store, agree))
        ports = {one.port for one in terms.host.addresses}
        _remember(store, terms.host, [Address(place.host, port) for port in sorted(ports)])
        return terms
    raise NotPaired(detail=why)


def joins_here(terms: Terms, side: str) -> bool:
    """Tell whether this side joins the other one's store."""
    return terms.joins == side and terms.host.store != terms.guest.store


def other(terms: Terms, side: str) -> About:
    """Return the other device."""
    return terms.guest if side == HOST else terms.host


def mine(terms: Terms, side: str) -> About:
    """Return this device."""
    return terms.guest if side == GUEST else terms.host


def _hands(store: Store, agree: Callable[[Terms], bool]) -> Hands:
    return Hands(agree, lambda: keys.offer(keeping.keyring(store)), lambda given: keeping.take(store, given))


def _remember(store: Store, met: About, reached: Iterable[Address]) -> None:
    addresses = tuple(dict.fromkeys((*reached, *met.addresses)))[: peers.ADDRESSES_MAX]
    new = Peer(met.name, met.certificate, addresses, met.device, store.clock.wall_ms())
    peers.change(store.home, store.files, lambda known: peers.with_peer(known, new))
