"""A certificate for the connection between Terraform and a plugin.

go-plugin insists on TLS even over a unix socket in a folder that only its owner can enter, so the
certificate proves nothing that matters. To make one takes a plugin that has just started longer
than all else it does; where the mirror was installed, one is ready.
"""

import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "REHEARSAL_CERTIFICATE"  # the environment variable that names a ready certificate
HOST: Final = "localhost"  # the name that go-plugin's client expects
LIFE: Final = dt.timedelta(days=3650)  # longer than any rehearsal


def ready(environ: Mapping[str, str]) -> bytes:
    """The certificate that the environment names, else a new one for this process alone."""
    path = environ.get(VARIABLE)
    return Path(path).read_bytes() if path else make()


def make() -> bytes:
    """A new P-256 key and its self-signed certificate, one after the other, as PEM."""
    from cryptography import x509  # noqa: PLC0415 - slow to import, and seldom needed
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - as above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - as above

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    return private + certificate.public_bytes(pem)


def write(path: Path) -> None:
    """Make a certificate in a file that only its owner can read; a ready one stays."""
    if path.exists():
        return
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_bytes(make())
    fresh.replace(path)


def handshake(pem: bytes) -> str:
    """The certificate as go-plugin's first line has it: DER in base64 without padding."""
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    body = pem.partition(begin)[2].partition(end)[0]
    return b"".join(body.split()).decode().rstrip("=")
