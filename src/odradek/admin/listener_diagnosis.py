"""Why a listener and this client do not understand each other: another protocol, or a certificate without trust."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import SecurityMismatch
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from odradek.admin.wire_security import Ask, WireSecurity

OTHER_NAME = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH


class FoundListener(NamedTuple):
    protocol: str
    mechanisms: tuple[str, ...]


def mismatch(
    host: str, port: int, security: WireSecurity | None, error: OSError | Failure, ask: Ask, timeout_s: float
) -> SecurityMismatch | None:
    """The reason of an error on a new connection; None unless it is one of security."""
    address = f"{host}:{port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message
        if error.verify_code in OTHER_NAME:
            return SecurityMismatch(f"the certificate of {address} is for another name ({reason}); connect to its name")
        return SecurityMismatch(
            f"the certificate of {address} is not trusted ({reason}); "
            "name its authority's certificate with -X ssl.ca.location=FILE"
        )
    if "CERT" in (alert := alert_of(error)):
        return SecurityMismatch(
            f"{address} does not accept this client's certificate ({alert.replace('_', ' ').lower()}); "
            "name one with -X ssl.certificate.location=FILE and -X ssl.key.location=FILE"
        )
    found = find_listener(host, port, ask, timeout_s)
    own = protocol_of(is_tls=security is not None and security.context is not None,
                      is_sasl=security is not None and security.credentials is not None)  # fmt: skip
    if found is None or found.protocol == own:
        return None
    advice = f"give -X security.protocol={found.protocol}"
    if found.protocol.endswith("SSL") and not own.endswith("SSL"):
        advice += ", the certificate of its authority as -X ssl.ca.location=FILE"
    if found.mechanisms and not own.startswith("SASL"):
        advice += f", and a user for {' or '.join(found.mechanisms)} (`odradek profile add --help`)"
    return SecurityMismatch(f"{address} speaks {found.protocol}, and this client {own}; {advice}")


def find_listener(host: str, port: int, ask: Ask, timeout_s: float) -> FoundListener | None:
    """What the listener speaks. No credentials are sent, so that its certificate need not be trusted."""
    for context in (None, ssl._create_unverified_context()):  # noqa: SLF001 - it finds out what the listener is
        try:
            with socket.create_connection((host, port), timeout=timeout_s) as plain:
                connection = plain if context is None else context.wrap_socket(plain, server_hostname=host)
                with connection:
                    answer = ask(connection, SaslHandshakeRequest(mechanism=""), SaslHandshakeResponse, 1)
        except (OSError, Failure) as error:
            if alert_of(error):
                return FoundListener(protocol_of(is_tls=True, is_sasl=False), ())
            continue
        assert isinstance(answer, SaslHandshakeResponse)
        is_sasl = answer.error_code != ErrorCode.ILLEGAL_SASL_STATE
        return FoundListener(protocol_of(is_tls=context is not None, is_sasl=is_sasl), tuple(answer.mechanisms))
    return None


def protocol_of(*, is_tls: bool, is_sasl: bool) -> str:
    return ("SASL_" if is_sasl else "") + ("SSL" if is_tls else "PLAINTEXT")


def alert_of(error: Exception) -> str:
    """The reason for which the other side, which speaks TLS, has refused this side; empty without one."""
    reason = (error.reason or "") if isinstance(error, ssl.SSLError) else ""
    return reason if "ALERT" in reason else ""
