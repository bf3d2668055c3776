"""TLS and SASL of connections to brokers, by the properties that librdkafka has for them; and why a listener and this
client do not understand each other: another protocol, or a certificate without trust."""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import BadCredentials, RefusedConnection, SecurityMismatch
from odradek.client.sasl_login import LoginRefused, SaslLogin
from odradek.conventions.failures import Failure
from odradek.host.tls_context import make_context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.security.sasl_client.credentials import MECHANISMS, SaslCredentials
from odradek.security.sasl_client.oauthbearer import OauthbearerExchange
from odradek.security.tls.pkcs12 import key_of_pkcs12
from odradek.security.tls.store_problem import StoreProblem

if TYPE_CHECKING:
    from odradek.protocol.schema import Request, Response

    Ask = Callable[[socket.socket, Request, type[Response], int], Response]

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
OTHER_NAME = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
SYSTEM_CERTIFICATES = "probe"  # librdkafka's word for them


@dataclass(frozen=True, slots=True, eq=False)
class WireSecurity:
    """TLS, if there is a context, and the user for SASL."""

    context: ssl.SSLContext | None
    credentials: SaslCredentials | None = field(repr=False)

    @property
    def waiting(self) -> tuple[type[OSError], ...]:
        """Errors of a socket that has not received all of a record."""
        return (ssl.SSLWantReadError,)

    def secure(self, plain: socket.socket, host: str) -> socket.socket:
        """The socket after the TLS handshake; OSError if it fails."""
        return plain if self.context is None else self.context.wrap_socket(plain, server_hostname=host)

    def log_in(self, connection: socket.socket, ask: Ask) -> None:
        """Failure if the broker is not genuine, or does not accept the credentials."""
        if self.credentials is None:
            return
        login = SaslLogin(self.credentials.exchange(secrets.token_hex(16)))
        try:
            while login.request is not None:
                login.take(ask(connection, login.request, login.response_type, login.version))  # type: ignore[arg-type]  # the response is of the type that is asked for
        except LoginRefused as refusal:
            raise self._refused(refusal, self.credentials) from None

    def _refused(self, refusal: LoginRefused, credentials: SaslCredentials) -> Failure:
        if refusal.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            return SecurityMismatch(
                f"the broker does not accept {credentials.mechanism}; "
                f"give one of its mechanisms as -X sasl.mechanisms: {', '.join(refusal.mechanisms or ())}"
            )
        if refusal.mechanisms is not None:
            return Failure(f"the broker does not begin SASL: {refusal}")
        if refusal.error_code:
            return BadCredentials(
                f"the broker refused the credentials of {credentials.user}: {str(refusal).rstrip('.')}; "
                f"check user, password and mechanism ({credentials.mechanism})"
            )
        return Failure(f"the broker is not genuine: {refusal}")


class BearerToken(NamedTuple):
    """An access token for OAUTHBEARER, and the time at which it expires, in seconds since the epoch."""

    user: str
    value: str
    expires_s: float

    def __repr__(self) -> str:
        return f"BearerToken({self.user!r})"


def wire_security(properties: Mapping[str, str], token: BearerToken | None = None) -> WireSecurity | None:
    """None for a plaintext listener. Failure for a protocol or a mechanism that is not supported."""
    protocol = properties.get("security.protocol", PROTOCOLS[0]).lower()
    if protocol not in PROTOCOLS:
        raise Failure(f"-X security.protocol={protocol}: expected one of {', '.join(PROTOCOLS)}")
    if protocol == PROTOCOLS[0]:
        return None
    context = _context(properties) if protocol.endswith("ssl") else None
    if not protocol.startswith("sasl"):
        return WireSecurity(context, None)
    if token is not None:
        return WireSecurity(context, SaslCredentials(OauthbearerExchange.mechanism, token.user, token.value))
    mechanism = properties.get("sasl.mechanisms", properties.get("sasl.mechanism", "GSSAPI"))
    if mechanism not in MECHANISMS:
        raise Failure(
            f"-X sasl.mechanisms={mechanism}: this command logs in with {', '.join(MECHANISMS)}, "
            f"or {OauthbearerExchange.mechanism} by sasl.oauthbearer.method=oidc"
        )
    user, password = properties.get("sasl.username", ""), properties.get("sasl.password", "")
    return WireSecurity(context, SaslCredentials(mechanism, user, password))


def _context(properties: Mapping[str, str]) -> ssl.SSLContext:
    certificates, key = _text(properties, "ssl.certificate"), _text(properties, "ssl.key")
    is_verified = properties.get("enable.ssl.certificate.verification", "true").lower() != "false"
    try:
        if "ssl.keystore.location" in properties:
            path = properties["ssl.keystore.location"]
            data, password = Path(path).read_bytes(), properties.get("ssl.keystore.password")
            certificates, key = key_of_pkcs12(data, password, f"ssl.keystore.location={path}")
        return make_context(
            is_server=False,
            certificates=certificates,
            key=key,
            key_password=properties.get("ssl.key.password"),
            trusted=_text(properties, "ssl.ca"),
            verification=ssl.CERT_REQUIRED if is_verified else ssl.CERT_NONE,
            checks_host_name=is_verified and properties.get("ssl.endpoint.identification.algorithm") != "none",
            protocols=("TLSv1.2", "TLSv1.3"),
            ciphers=properties.get("ssl.cipher.suites"),
        )
    except (ssl.SSLError, StoreProblem) as problem:
        raise RefusedConnection(f"the TLS properties cannot be used: {problem}") from None


def _text(properties: Mapping[str, str], name: str) -> str | None:
    """PEM text of a property, or of the file that it names."""
    if f"{name}.pem" in properties:
        return properties[f"{name}.pem"]
    path = properties.get(f"{name}.location")
    if path is None or path == SYSTEM_CERTIFICATES:
        return None
    try:
        if Path(path).is_dir():  # of authorities
            return "".join(each.read_text() for each in sorted(Path(path).iterdir()) if each.is_file())
        return Path(path).read_text()
    except OSError as problem:
        raise RefusedConnection(f"{name}.location={path}: {problem.strerror or problem}") from None


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
