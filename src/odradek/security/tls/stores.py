"""Keys and certificates from Kafka's stores: PEM files and inline PEM, and PKCS12. Reads no files itself.

A JKS store is refused with the command that converts it. A store without `ssl.keystore.type`, or with Kafka's default
JKS, is recognized by its content: Java reads PKCS12 stores under the type JKS, too.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from odradek.conventions.dataclass import dataclass
from odradek.security.tls.pem import MalformedPem, pem_blocks
from odradek.security.tls.store_problem import StoreProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.tls.settings import KeyStoreSettings, TrustStoreSettings

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_JCEKS_MAGIC = b"\xce\xce\xce\xce"
DER_SEQUENCE = b"\x30"
_TYPES = ("PEM", "PKCS12", "JKS")


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    certificates: str
    """The certificate chain in PEM form, the broker's own first."""
    key: str = field(repr=False)
    key_password: str | None = field(default=None, repr=False)


def read_key_material(store: KeyStoreSettings, prefix: str, read_file: Callable[[str], bytes]) -> KeyMaterial:
    """`StoreProblem` if there is no key, or none that can be used."""
    kind = _checked_type(store.type, f"{prefix}ssl.keystore.type")
    if store.key or store.certificate_chain:
        if not (store.key and store.certificate_chain) or store.location:
            raise StoreProblem(
                f"{prefix}ssl.keystore.key: set it together with {prefix}ssl.keystore.certificate.chain, "
                f"and without {prefix}ssl.keystore.location"
            )
        if kind != "PEM":
            raise StoreProblem(f"{prefix}ssl.keystore.key is PEM text: set {prefix}ssl.keystore.type=PEM")
        return _key_from_pem(f"{store.key}\n{store.certificate_chain}", store, f"{prefix}ssl.keystore.key")
    name = f"{prefix}ssl.keystore.location"
    if not store.location:
        raise StoreProblem(f"{name} is not set: a listener with TLS needs a key and a certificate")
    data = _read(store.location, name, read_file)
    if _format_of(data, kind, store.location, name) == "PEM":
        return _key_from_pem(_text(data, store.location, name), store, f"{name}={store.location}")
    return _key_from_pkcs12(data, store, prefix)


def read_trusted_certificates(store: TrustStoreSettings, prefix: str, read_file: Callable[[str], bytes]) -> str | None:
    """The certificates in PEM form; None without a trust store."""
    if not store.is_set:
        return None
    kind = _checked_type(store.type, f"{prefix}ssl.truststore.type")
    if store.certificates:
        if kind != "PEM":
            raise StoreProblem(f"{prefix}ssl.truststore.certificates is PEM text: set {prefix}ssl.truststore.type=PEM")
        return _certificates_of(store.certificates, f"{prefix}ssl.truststore.certificates")
    name, location = f"{prefix}ssl.truststore.location", store.location or ""
    data = _read(location, name, read_file)
    if _format_of(data, kind, location, name) == "PEM":
        return _certificates_of(_text(data, location, name), f"{name}={location}")
    from odradek.security.tls.pkcs12 import trusted_certificates_of_pkcs12  # noqa: PLC0415 - an optional dependency

    return trusted_certificates_of_pkcs12(data, store.password, f"{name}={location}")


def _checked_type(wanted: str | None, name: str) -> str | None:
    if wanted is None:
        return None
    kind = wanted.upper()
    if kind not in _TYPES:
        raise StoreProblem(f"{name}={wanted}: expected one of {', '.join(_TYPES)}")
    return kind


def _read(path: str, name: str, read_file: Callable[[str], bytes]) -> bytes:
    try:
        return read_file(path)
    except OSError as problem:
        raise StoreProblem(f"{name}={path}: {problem.strerror or problem}") from problem


def _text(data: bytes, path: str, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise StoreProblem(f"{name}={path}: this is no PEM file") from None


def _format_of(data: bytes, kind: str | None, path: str, name: str) -> str:
    if data.startswith((_JKS_MAGIC, _JCEKS_MAGIC)):
        target = f"{path.removesuffix('.jks')}.p12"
        raise StoreProblem(
            f"{name}={path}: this is a JKS store, which only Java reads; convert it with "
            f"`keytool -importkeystore -srckeystore {path} -destkeystore {target} -deststoretype PKCS12` "
            f"and set {name}={target} and {name.removesuffix('location')}type=PKCS12"
        )
    if kind in (None, "JKS"):
        return "PKCS12" if data.startswith(DER_SEQUENCE) else "PEM"
    return kind


def _key_from_pem(text: str, store: KeyStoreSettings, origin: str) -> KeyMaterial:
    try:
        blocks = pem_blocks(text)
    except MalformedPem as problem:
        raise StoreProblem(f"{origin}: {problem}") from None
    keys = [block.text for block in blocks if block.is_private_key]
    certificates = [block.text for block in blocks if block.is_certificate]
    if len(keys) != 1 or not certificates:
        raise StoreProblem(
            f"{origin}: expected one private key and its certificate chain in PEM form, "
            f"found {len(keys)} keys and {len(certificates)} certificates"
        )
    if "ENCRYPTED" in keys[0] and not store.key_password:
        raise StoreProblem(f"{origin}: the private key is encrypted; set ssl.key.password")
    return KeyMaterial("".join(certificates), keys[0], store.key_password)


def _certificates_of(text: str, origin: str) -> str:
    try:
        found = [block.text for block in pem_blocks(text) if block.is_certificate]
    except MalformedPem as problem:
        raise StoreProblem(f"{origin}: {problem}") from None
    if not found:
        raise StoreProblem(f"{origin}: there is no certificate in PEM form in it")
    return "".join(found)


def _key_from_pkcs12(data: bytes, store: KeyStoreSettings, prefix: str) -> KeyMaterial:
    from odradek.security.tls.pkcs12 import key_of_pkcs12  # noqa: PLC0415 - an optional dependency

    certificates, key = key_of_pkcs12(data, store.password, f"{prefix}ssl.keystore.location={store.location}")
    return KeyMaterial(certificates, key)
