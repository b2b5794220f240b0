"""One exchange with a peer, from an address to a report; and what a ring of keys means for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

from memorize.limits import PEER_IDLE_S
from memorize.log.codec import UNREADABLE
from memorize.sync import ssh
from memorize.sync.gifts import for_peer
from memorize.sync.handshake import GIFT_BYTES_MAX, Door, Role
from memorize.sync.keys import new_salt
from memorize.sync.port import Holding
from memorize.sync.ring import STORE, Keyring, Wrapped, wrapped_from, wrapped_row
from memorize.sync.session import Outcome, Session
from memorize.sync.transport import Link, Progress, Stream, run


class PeerReport(NamedTuple):
    """What came of an exchange. ``converged``: both hold the same set.

    ``received``: events or bodies new here; ``bad``: received ones that were not what they claim to be, dropped.
    ``bytes_out``, ``bytes_in``: of the protocol, before ssh or TLS. ``turns``: how often this side spoke. ``code`` for
    programs and ``reason`` for people tell why not (``key``, ``store``, ``version``: refused before any event moved).
    ``ahead``: own writers of which the peer knew more. ``wrapped``: keys to be taken up by ``ring.adopt``. ``who``: the
    replica that the initiator says it is; empty when it does not say, and on its own side.
    """

    converged: bool
    sent: int = 0
    received: int = 0
    bad: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    rounds: int = 0
    turns: int = 0
    code: str = ""
    reason: str = ""
    ahead: frozenset[bytes] = frozenset()
    wrapped: tuple[Wrapped, ...] = ()
    who: bytes = b""


def session(holding: Holding, ring: Keyring, role: Role, *, me: bytes = b"", stays: bool = False) -> Session:
    """Return a session that proves the current key, or another one which other devices may still have."""
    current, *older = doors(ring)
    return Session(holding, current.secret, current.store, role, older=older, gift=_gift(ring), me=me, stays=stays)


def doors(ring: Keyring) -> list[Door]:
    """Return the keys that a peer may prove, the current one first.

    An older key is among them while whoever holds it can follow to the current one; after a rotation by hand nobody
    can, and its holders are shut out.
    """
    current = ring.current
    reached = {current.id}
    grown = True
    while grown:
        found = {one.old for one in ring.wrapped if one.purpose == STORE and one.new in reached} - reached
        reached |= found
        grown = bool(found)
    others = sorted((key for key in ring.keys if key.id in reached - {current.id}), key=lambda key: key.rank)
    return [Door(key.store, key.secret) for key in (current, *reversed(others))]


def _gift(ring: Keyring) -> bytes:
    """Return the wrapped keys as they travel: the newest, as many as there is room for."""
    rows: list[Any] = []
    size = 0
    for one in sorted(for_peer(ring, new_salt), key=lambda one: one.generation, reverse=True):
        row = wrapped_row(one)
        size += len(msgpack.packb(row))
        if size > GIFT_BYTES_MAX - 16:
            break
        rows.append(row)
    packed: bytes = msgpack.packb(rows)
    return packed


def given(held: Session) -> tuple[Wrapped, ...]:
    """Return the wrapped keys that the other side of a session gave; none before it has proved itself."""
    if not held.trusted or not held.gift:
        return ()
    try:
        rows = msgpack.unpackb(held.gift, raw=False)
    except UNREADABLE:
        return ()
    found = map(wrapped_from, rows) if isinstance(rows, list) else iter(())
    return tuple(one for one in found if one is not None)


def sync_stream(
    stream: Stream,
    holding: Holding,
    ring: Keyring,
    role: Role,
    progress: Progress = lambda *_: None,
    idle_s: float = PEER_IDLE_S,
    me: bytes = b"",
) -> PeerReport:
    """Exchange events with whoever is at the other end of a stream, and close it. Raises Problems of this side only.

    ``me``: the replica of this side, which an initiator tells the other one.
    """
    held = session(holding, ring, role, me=me)
    outcome, link = run(held, stream, idle_s, progress)
    return _report(outcome, held, link)


def _report(outcome: Outcome, held: Session, link: Link) -> PeerReport:
    told = outcome._asdict()
    report = PeerReport(**told, wrapped=given(held), who=held.who)
    return report._replace(bytes_out=link.bytes_out, bytes_in=link.bytes_in, turns=held.turns)


def sync_peer(
    address: str,
    holding: Holding,
    ring: Keyring,
    progress: Progress = lambda *_: None,
    *,
    asks: bool = False,
    command: str = "",
    options: Sequence[str] = (),
    idle_s: float = PEER_IDLE_S,
    me: bytes = b"",
) -> PeerReport:
    """Exchange events with ``ssh://[user@]host[:port][/path/of/memorize]`` until both hold the same.

    ``asks``: there is a person at a terminal whom ssh may ask. ``command`` is run on the other side instead of
    ``memorize serve --stdio``; ``options`` are further options of ssh; ``me``: the replica of this side, so that the
    other one can tell a person who came. A peer that cannot be reached, or does not converge, is told in the report;
    what was received by then stays, and the next call goes on from there. Raises BadTarget, CannotRun, Busy,
    CannotRead, CannotWrite.
    """
    words = ssh.words(ssh.parse_address(address, command), asks=asks, options=options)
    child = ssh.Child(words)
    report = sync_stream(child.stream, holding, ring, Role.INITIATOR, progress, idle_s, me)
    if report.converged or report.code not in ("closed", "idle"):
        return report
    said = child.said()
    if report.bytes_in == 0:
        reason = said or ("it did not answer" if report.code == "idle" else "ssh ended without a word")
        return report._replace(code="unreachable", reason=reason)
    return report._replace(reason=f"{report.reason} ({said})" if said else report.reason)
