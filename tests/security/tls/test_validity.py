"""The validity of certificates, compared with the cryptography package."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from odradek.security.tls.distinguished_names import MalformedCertificate
from odradek.security.tls.validity import validity


def certificate(begin: datetime.datetime, end: datetime.datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize("last_year", [2027, 2049, 2050, 9999])
def test_validity_is_read_in_both_forms_of_time(last_year: int) -> None:
    begin = datetime.datetime(1999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    end = datetime.datetime(last_year, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert validity(certificate(begin, end)) == (begin, end)


@pytest.mark.parametrize("data", [b"", b"\x30\x00", b"\x30\x02\x30\x00", b"\x30\x80", b"\xff" * 40])
def test_malformed_certificates_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedCertificate):
        validity(data)
