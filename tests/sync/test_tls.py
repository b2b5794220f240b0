"""TLS between daemons: only the certificates that are known by heart get through, and nothing else is listened to."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from memorize.log.files import RealFiles
from memorize.paths import Home
from memorize.sync.tls import NotThePeer, OwnCertificate, fingerprint, is_certificate, own_certificate, secured

PATIENCE_S = 120.0
FILES = RealFiles()


def _certificate(root: Path, name: str) -> OwnCertificate:
    home = Home(root / name)
    home.keys.mkdir(parents=True, exist_ok=True)
    return own_certificate(home, FILES, name.encode().ljust(16, b"\0")[:16])


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OwnCertificate]:
    root = tmp_path_factory.mktemp("기기")
    return {name: _certificate(root, name) for name in ("desk", "laptop", "stranger")}


Told = tuple[bytes, bytes] | Exception


def _meet(
    server: Callable[[socket.socket], tuple[ssl.SSLSocket, bytes]],
    client: Callable[[socket.socket], tuple[ssl.SSLSocket, bytes]],
) -> tuple[Told, Told]:
    """Have two sides shake hands on loopback and say a word; return what each heard and saw, or how it failed."""

    def play(wire: socket.socket, of: Callable[[socket.socket], tuple[ssl.SSLSocket, bytes]]) -> Told:
        try:
            safe, seen = of(wire)
            with safe:
                safe.sendall("안녕".encode())
                return safe.recv(100), seen
        except (NotThePeer, OSError) as error:
            return error
        finally:
            wire.close()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(2) as pool:
        outgoing = socket.create_connection(listener.getsockname(), PATIENCE_S)
        incoming, _ = listener.accept()
        one, other = pool.submit(play, incoming, server), pool.submit(play, outgoing, client)
        return one.result(PATIENCE_S), other.result(PATIENCE_S)


def _side(
    own: OwnCertificate, *trusted: OwnCertificate, server: bool
) -> Callable[[socket.socket], tuple[ssl.SSLSocket, bytes]]:
    return lambda wire: secured(wire, own, [one.der for one in trusted], server=server, timeout_s=PATIENCE_S)


def test_two_devices_that_know_each_other_talk(known: dict[str, OwnCertificate]) -> None:
    desk, laptop = known["desk"], known["laptop"]
    told, heard = _meet(_side(desk, laptop, server=True), _side(laptop, known["stranger"], desk, server=False))
    assert told == ("안녕".encode(), laptop.der)
    assert heard == ("안녕".encode(), desk.der)


def test_a_device_that_is_not_known_is_refused_within_the_handshake(known: dict[str, OwnCertificate]) -> None:
    desk, laptop, stranger = known["desk"], known["laptop"], known["stranger"]
    told, _ = _meet(_side(desk, laptop, server=True), _side(stranger, desk, server=False))
    assert isinstance(told, NotThePeer)


def test_whoever_sits_between_with_a_certificate_of_its_own_is_refused(known: dict[str, OwnCertificate]) -> None:
    desk, laptop, stranger = known["desk"], known["laptop"], known["stranger"]
    _, heard = _meet(_side(stranger, laptop, server=True), _side(laptop, desk, server=False))
    assert isinstance(heard, NotThePeer)


def test_one_paired_device_cannot_pass_for_another_one(known: dict[str, OwnCertificate]) -> None:
    desk, laptop, stranger = known["desk"], known["laptop"], known["stranger"]
    _, heard = _meet(_side(stranger, laptop, server=True), _side(laptop, desk, server=False))
    assert isinstance(heard, NotThePeer)
    told, _ = _meet(_side(desk, laptop, stranger, server=True), _side(stranger, desk, server=False))
    assert isinstance(told, tuple)
    assert told[1] == stranger.der, "whose certificate it is, is told"


def test_a_certificate_with_the_name_and_number_of_another_one_is_refused(
    known: dict[str, OwnCertificate], tmp_path: Path
) -> None:
    desk, laptop = known["desk"], known["laptop"]
    forged = _forged(laptop.der, tmp_path / "copied.pem")
    told, _ = _meet(_side(desk, laptop, server=True), _side(forged, desk, server=False))
    assert isinstance(told, NotThePeer | OSError)


def test_a_client_without_a_certificate_is_refused(known: dict[str, OwnCertificate]) -> None:
    desk, laptop = known["desk"], known["laptop"]

    def bare(wire: socket.socket) -> tuple[ssl.SSLSocket, bytes]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        wire.settimeout(PATIENCE_S)
        return context.wrap_socket(wire), b""

    told, _ = _meet(_side(desk, laptop, server=True), bare)
    assert isinstance(told, NotThePeer)


def test_an_older_tls_is_refused(known: dict[str, OwnCertificate]) -> None:
    desk, laptop = known["desk"], known["laptop"]

    def older(wire: socket.socket) -> tuple[ssl.SSLSocket, bytes]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(laptop.path)
        wire.settimeout(PATIENCE_S)
        return context.wrap_socket(wire), b""

    told, _ = _meet(_side(desk, laptop, server=True), older)
    assert isinstance(told, NotThePeer)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(300), os.urandom(2_000), b""])
def test_random_bytes_are_refused(known: dict[str, OwnCertificate], data: bytes) -> None:
    one, other = socket.socketpair()
    with other:
        other.sendall(data)
        other.shutdown(socket.SHUT_WR)
        with pytest.raises((NotThePeer, OSError)):
            secured(one, known["desk"], [known["laptop"].der], server=True, timeout_s=PATIENCE_S)
    assert one.fileno() == -1, "it is closed"


def test_a_silent_connection_is_given_up(known: dict[str, OwnCertificate]) -> None:
    one, other = socket.socketpair()
    with other, pytest.raises(OSError):
        secured(one, known["desk"], [known["laptop"].der], server=True, timeout_s=0.05)


def test_nobody_is_let_in_where_nobody_is_paired(known: dict[str, OwnCertificate]) -> None:
    one, other = socket.socketpair()
    with other, pytest.raises(NotThePeer):
        secured(one, known["desk"], [], server=True)


def test_a_certificate_is_made_once_a_device_and_is_for_this_user_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "한글 집")
    home.keys.mkdir(parents=True)
    first = own_certificate(home, FILES, b"\1" * 16)
    assert own_certificate(home, FILES, b"\1" * 16) == first
    assert own_certificate(home, FILES, b"\2" * 16).der != first.der, "a copy on another machine is another device"
    for path in home.keys.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_certificate(first.der)
    assert len(fingerprint(first.der)) == 32


@pytest.mark.parametrize("value", [b"", b"\x30\x03\x02\x01\x01", os.urandom(500), bytes(5_000), "cert", None])
def test_anything_else_is_no_certificate(value: object) -> None:
    assert not is_certificate(value)


def test_dates_do_not_matter(known: dict[str, OwnCertificate], tmp_path: Path) -> None:
    """A clock may be a month off, or start in 1970: it does not decide who may talk."""
    desk = known["desk"]
    for first, last in ((1990, 1991), (2200, 2201)):
        odd = _forged(
            desk.der, tmp_path / f"{first}.pem", datetime(first, 1, 1, tzinfo=UTC), datetime(last, 1, 1, tzinfo=UTC)
        )
        told, heard = _meet(_side(desk, odd, server=True), _side(odd, desk, server=False))
        assert isinstance(told, tuple)
        assert isinstance(heard, tuple)


def _forged(der: bytes, path: Path, first: datetime | None = None, last: datetime | None = None) -> OwnCertificate:
    """Return a certificate that looks like another one, with a key of its own."""
    copied = x509.load_der_x509_certificate(der)
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(copied.subject)
        .issuer_name(copied.issuer)
        .public_key(key.public_key())
        .serial_number(copied.serial_number)
        .not_valid_before(first or copied.not_valid_before_utc)
        .not_valid_after(last or copied.not_valid_after_utc)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + made.public_bytes(pem))
    return OwnCertificate(made.public_bytes(serialization.Encoding.DER), path)
