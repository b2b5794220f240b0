"""Connections between daemons: TLS 1.3, self-signed certificates, each side knows the other's by heart.

A device *is* its certificate. The certificates of the paired devices are the only trusted ones, so OpenSSL refuses any
other within the handshake, before a byte of it is read as anything; which of the paired ones it is, is compared after.
Dates are not looked at: a clock may be a month off, and what counts is the key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from memorize.errors import CannotRead, CannotWrite
from memorize.log.files import Files, replace_file
from memorize.paths import Home

CERTIFICATE_BYTES_MAX: Final = 4_096
HANDSHAKE_S: Final = 10.0
_PEM_BYTES_MAX: Final = 64 * 1024
_NO_CHECK_TIME: Final = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, which ``ssl`` has no name for
_PROTOCOL: Final = "memorize/1"


class OwnCertificate(NamedTuple):
    """The certificate of this device (DER), and the file that holds it with its private key."""

    der: bytes
    path: Path


class NotThePeer(Exception):  # noqa: N818 - called for what it says of the other side
    """The other side is not who it should be, or does not speak TLS 1.3: ``str`` tells what was seen."""


def fingerprint(der: bytes) -> bytes:
    """Return the hash by which a certificate, and so a device, is known: SHA-256."""
    return hashlib.sha256(der).digest()


def own_certificate(home: Home, files: Files, device: bytes) -> OwnCertificate:
    """Return the certificate of a device, made at the first use.

    It is named by the device: a copy of the state directory on another machine becomes another device, makes its own
    and has to be paired, so two machines never speak as one. Raises CannotRead, CannotWrite.
    """
    path = home.keys / f"device-{device.hex()}.pem"
    try:
        if path.name not in files.names(str(home.keys)):
            replace_file(files, str(path), _made())
    except OSError as error:
        raise CannotWrite(path=path, detail=error.strerror or str(error)) from error
    try:
        pem = files.read(str(path), _PEM_BYTES_MAX).decode("ascii")
        begin = pem.index("-----BEGIN CERTIFICATE-----")
        return OwnCertificate(ssl.PEM_cert_to_DER_cert(pem[begin:].strip()), path)
    except (OSError, ValueError) as error:
        raise CannotRead(path=path, detail=getattr(error, "strerror", None) or str(error)) from error


def _made() -> bytes:
    """Return a new private key and a certificate for it, as PEM."""
    from datetime import UTC, datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    # The serial number tells certificates with the same name apart where OpenSSL looks them up.
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"memorize {os.urandom(8).hex()}")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 12, 31, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, form, plain) + made.public_bytes(pem)


def is_certificate(der: object) -> bool:
    """Tell whether these bytes are a certificate that OpenSSL can be given."""
    if type(der) is not bytes or not 0 < len(der) <= CERTIFICATE_BYTES_MAX:
        return False
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
    except (ssl.SSLError, ValueError):
        return False
    return True


def context(own: OwnCertificate, trusted: Iterable[bytes], *, server: bool) -> ssl.SSLContext:
    """Return what TLS needs to know: this device's certificate, and those that may be at the other end."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= _NO_CHECK_TIME
    made.load_cert_chain(own.path)
    for der in trusted:
        made.load_verify_locations(cadata=der)
    with contextlib.suppress(NotImplementedError):
        made.set_alpn_protocols([_PROTOCOL])
    if server:
        made.num_tickets = 0  # every connection shows its certificate
    return made


def secured(
    wire: socket.socket, own: OwnCertificate, trusted: Iterable[bytes], *, server: bool, timeout_s: float = HANDSHAKE_S
) -> tuple[ssl.SSLSocket, bytes]:
    """Return the connection under TLS and the certificate at its other end, which is one of the trusted.

    Takes over ``wire``, which is closed when this fails. Raises NotThePeer, OSError.
    """
    known = tuple(trusted)
    try:
        wire.settimeout(timeout_s)
        if not known:
            raise NotThePeer("no device is paired")
        safe = context(own, known, server=server).wrap_socket(wire, server_side=server)
    except ssl.SSLCertVerificationError as error:
        wire.close()
        raise NotThePeer("somebody else answers there: its certificate is not the paired device's") from error
    except ssl.SSLError as error:
        wire.close()
        raise NotThePeer(error.reason or str(error)) from error
    except BaseException:
        wire.close()
        raise
    seen = safe.getpeercert(binary_form=True)
    if seen is None or seen not in known or safe.version() != "TLSv1.3":
        safe.close()
        raise NotThePeer("it showed another certificate")
    return safe, seen
