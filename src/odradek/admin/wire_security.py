"""TLS and SASL for requests over sockets of our own, by the same properties that the Kafka client library gets."""

from __future__ import annotations

import secrets
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import BadCredentials, RefusedConnection, SecurityMismatch
from odradek.conventions.failures import Failure
from odradek.host.tls_context import make_context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.security.sasl_client.credentials import MECHANISMS, SaslCredentials
from odradek.security.sasl_client.oauthbearer import OauthbearerExchange
from odradek.security.tls.pkcs12 import key_of_pkcs12
from odradek.security.tls.store_problem import StoreProblem

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from odradek.protocol.schema import Request, Response

    Ask = Callable[[socket.socket, Request, type[Response], int], Response]

PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
MOST_MESSAGES = 8
SYSTEM_CERTIFICATES = "probe"  # librdkafka's word for them


@dataclass(frozen=True, slots=True, eq=False)
class WireSecurity:
    context: ssl.SSLContext | None
    credentials: SaslCredentials | None = field(repr=False)

    def secure(self, plain: socket.socket, host: str) -> socket.socket:
        """The socket after the TLS handshake; OSError if it fails."""
        return plain if self.context is None else self.context.wrap_socket(plain, server_hostname=host)

    def log_in(self, connection: socket.socket, ask: Ask) -> None:
        """Failure if the broker is not genuine, or does not accept the credentials."""
        if self.credentials is None:
            return
        exchange = self.credentials.exchange(secrets.token_hex(16))
        handshake = ask(connection, SaslHandshakeRequest(mechanism=exchange.mechanism), SaslHandshakeResponse, 1)
        assert isinstance(handshake, SaslHandshakeResponse)
        if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise SecurityMismatch(
                f"the broker does not accept {exchange.mechanism}; "
                f"give one of its mechanisms as -X sasl.mechanisms: {', '.join(handshake.mechanisms)}"
            )
        if handshake.error_code:
            raise Failure(f"the broker does not begin SASL: {ErrorCode(handshake.error_code).name}")
        message: bytes | None = exchange.begin()
        for _ in range(MOST_MESSAGES):
            answer = ask(connection, SaslAuthenticateRequest(auth_bytes=message or b""), SaslAuthenticateResponse, 2)
            assert isinstance(answer, SaslAuthenticateResponse)
            if answer.error_code:
                reason = answer.error_message or ErrorCode(answer.error_code).name
                raise BadCredentials(
                    f"the broker refused the credentials of {self.credentials.user}: {reason.rstrip('.')}; "
                    f"check user, password and mechanism ({exchange.mechanism})"
                )
            try:
                message = exchange.answer(bytes(answer.auth_bytes))
            except ValueError as problem:
                raise Failure(f"the broker is not genuine: {problem}") from None
            if message is None:
                return
        raise Failure("the broker does not finish the authentication")


class UnsupportedLogin(Failure):
    """Only the Kafka client library has the mechanism."""


class SecuredAddress(NamedTuple):
    host: str
    port: int
    security: WireSecurity | None


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
    return WireSecurity(context, _credentials(properties))


def _credentials(properties: Mapping[str, str]) -> SaslCredentials:
    mechanism = properties.get("sasl.mechanisms", properties.get("sasl.mechanism", "GSSAPI"))
    if mechanism not in MECHANISMS:
        raise UnsupportedLogin(
            f"-X sasl.mechanisms={mechanism}: this command logs in with {', '.join(MECHANISMS)} only"
        )
    return SaslCredentials(mechanism, properties.get("sasl.username", ""), properties.get("sasl.password", ""))


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
