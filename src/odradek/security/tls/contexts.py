"""From settings to the TLS context of a listener, or of the connections that this broker opens."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from odradek.host.tls_context import VERSIONS, make_context
from odradek.security.tls.cipher_suites import UnknownCipherSuite, choose_ciphers
from odradek.security.tls.settings import ClientAuth
from odradek.security.tls.store_problem import StoreProblem
from odradek.security.tls.stores import read_key_material, read_trusted_certificates

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.security.tls.settings import TlsSettings

_VERIFICATION = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


def listener_context(settings: TlsSettings, read_file: Callable[[str], bytes]) -> ssl.SSLContext:
    """`StoreProblem` says what cannot be used. Blocks."""
    return _context(settings, read_file, is_server=True, verification=_VERIFICATION[settings.client_auth])


def client_context(settings: TlsSettings, read_file: Callable[[str], bytes]) -> ssl.SSLContext:
    """For connections that are opened: the peer's certificate is always verified. Blocks."""
    return _context(settings, read_file, is_server=False, verification=ssl.CERT_REQUIRED)


def _context(
    settings: TlsSettings, read_file: Callable[[str], bytes], *, is_server: bool, verification: ssl.VerifyMode
) -> ssl.SSLContext:
    prefix = settings.prefix
    unknown = [name for name in settings.protocols if name not in VERSIONS]
    if unknown or not settings.protocols:
        raise StoreProblem(
            f"{prefix}ssl.enabled.protocols={','.join(settings.protocols)}: expected {' or '.join(VERSIONS)}, or both"
        )
    try:
        choice = choose_ciphers(settings.cipher_suites, settings.protocols)
    except UnknownCipherSuite as problem:
        raise StoreProblem(f"{prefix}ssl.cipher.suites: {problem}") from None
    needs_key = is_server or settings.key_store.is_set
    material = read_key_material(settings.key_store, prefix, read_file) if needs_key else None
    trusted = read_trusted_certificates(settings.trust_store, prefix, read_file)
    try:
        return make_context(
            is_server=is_server,
            certificates=material.certificates if material else None,
            key=material.key if material else None,
            key_password=material.key_password if material else None,
            trusted=trusted,
            verification=verification,
            checks_host_name=settings.checks_host_name,
            protocols=choice.protocols,
            ciphers=choice.ciphers,
        )
    except (ssl.SSLError, ValueError) as problem:
        raise StoreProblem(f"{prefix}ssl.keystore: {_reason(problem)}") from problem


def _reason(problem: Exception) -> str:
    reason = getattr(problem, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return "the private key does not belong to the first certificate"
    if reason in ("BAD_DECRYPT", "BAD_PASSWORD_READ", "EE_KEY_TOO_SMALL"):
        return "the private key is too small" if reason == "EE_KEY_TOO_SMALL" else "ssl.key.password is wrong"
    return f"OpenSSL refuses the key, the certificates or the ciphers ({reason or problem})"
