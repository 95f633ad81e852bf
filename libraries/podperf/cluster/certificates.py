"""The certificates of a cluster: an authority of its own, and one certificate for each program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=30)  # nobody keeps such a cluster for longer
_BEFORE = timedelta(minutes=5)  # a clock that is set back a little must not make a certificate invalid


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs the certificates of one cluster. Its key is never written to a file."""

    def __init__(self, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podperf cluster")])
        unsigned = self._unsigned(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = unsigned.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def certify(self, name: str, group: str | None = None, addresses: Sequence[str] = ()) -> Certificate:
        """A certificate for a user of this name and group (Kubernetes reads CN and O), and for a server at these
        addresses and DNS names."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if group is not None:
            attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        unsigned = self._unsigned(x509.Name(attributes), key.public_key()).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if addresses:
            names = x509.SubjectAlternativeName([_general_name(each) for each in addresses])
            unsigned = unsigned.add_extension(names, critical=False)
        signed = unsigned.sign(self._key, hashes.SHA256())
        return Certificate(signed.public_bytes(serialization.Encoding.PEM), _pem(key))

    def _unsigned(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _BEFORE)
            .not_valid_after(self._now + LIFE)
        )


def signing_key() -> bytes:
    """A private key as PEM, with which tokens of service accounts are signed."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
