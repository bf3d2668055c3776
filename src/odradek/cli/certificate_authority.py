"""A certificate authority for development, by the package cryptography: certificates in PEM form.

Keys are of P-256: a handshake costs a tenth of one with RSA.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 825  # the most that some clients accept
CLOCK_SKEW = datetime.timedelta(hours=1)


class CertificateAuthority:
    """Signs certificates. Its key is in memory, and in `key_pem` to be kept."""

    def __init__(self, name: str = "Odradek development CA", *, valid_days: int = VALID_DAYS) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = _common_name(name)
        self._valid_days = valid_days
        self._certificate = (
            self._builder(self._subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @classmethod
    def of(cls, certificate_pem: str, key_pem: str) -> Self:
        """The authority whose key was kept."""
        authority = cls()
        authority._certificate = x509.load_pem_x509_certificate(certificate_pem.encode())
        authority._subject = authority._certificate.subject
        key = serialization.load_pem_private_key(key_pem.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        authority._key = key
        return authority

    @property
    def certificate_pem(self) -> str:
        return self._certificate.public_bytes(serialization.Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        return _key_pem(self._key)

    def issue(self, subject: x509.Name | str, host_names: Sequence[str] = ()) -> str:
        """A private key and its certificate, in one PEM text: for a client, and with host names for a server, too."""
        name = subject if isinstance(subject, x509.Name) else _common_name(subject)
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if host_names else [])]
        builder = (
            self._builder(name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        )
        if host_names:
            names = x509.SubjectAlternativeName([_alternative_name(each) for each in host_names])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return _key_pem(key) + certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + datetime.timedelta(days=self._valid_days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
