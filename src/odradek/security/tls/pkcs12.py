"""PKCS12 stores, read by the package cryptography (extra `odradek[security]`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.security.tls.store_problem import StoreProblem

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate


def key_of_pkcs12(data: bytes, password: str | None, origin: str) -> tuple[str, str]:
    """The certificate chain and the private key, both in PEM form."""
    store = _load(data, password, origin)
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra

    if store.key is None or store.cert is None:
        raise StoreProblem(f"{origin}: there is no private key with a certificate in it")
    key = store.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = [store.cert, *store.additional_certs]
    return "".join(_pem(each.certificate) for each in chain), key.decode()


def trusted_certificates_of_pkcs12(data: bytes, password: str | None, origin: str) -> str:
    store = _load(data, password, origin)
    found = [*([store.cert] if store.cert is not None else []), *store.additional_certs]
    if not found:
        raise StoreProblem(f"{origin}: there is no certificate in it")
    return "".join(_pem(each.certificate) for each in found)


def _load(data: bytes, password: str | None, origin: str) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12  # noqa: PLC0415 - an extra
    except ImportError:
        raise StoreProblem(f"{origin}: PKCS12 stores need `pip install 'odradek[security]'`") from None
    try:
        return load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError:
        raise StoreProblem(f"{origin}: this is no PKCS12 store, or the password is wrong") from None


def _pem(certificate: Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - an extra

    return certificate.public_bytes(Encoding.PEM).decode()
