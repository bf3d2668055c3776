"""Logs in to another broker by SASL: SaslHandshake, then SaslAuthenticate until the exchange is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from odradek.client.broker_connection import BrokerUnavailable
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from odradek.client.broker_connection import BrokerConnection

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 2
MOST_MESSAGES = 8  # of the server, in one exchange
RENEWAL_SHARE = 0.8  # of the lifetime of a session, after which this broker authenticates again (KIP-368)


class Exchange(Protocol):
    """The client's side of a SASL mechanism; `security/sasl_client` implements it."""

    @property
    def mechanism(self) -> str: ...

    def begin(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None: ...


class Login(Protocol):
    def exchange(self) -> Exchange:
        """A new exchange, with a nonce of its own."""

    async def answer(self, exchange: Exchange, challenge: bytes) -> bytes | None:
        """The answer, computed where it blocks nobody; ValueError if the server is not accepted."""


async def authenticate(connection: BrokerConnection, login: Login) -> float | None:
    """Log in; returns after how many ms to do it again, or None. `BrokerUnavailable` if the broker refuses."""
    exchange = login.exchange()
    handshake: SaslHandshakeResponse = await connection.send(
        SaslHandshakeRequest(mechanism=exchange.mechanism),
        HANDSHAKE_VERSION,
        SaslHandshakeResponse,
        _unchanged,
        in_place=False,
    )
    if handshake.error_code:
        offered = ", ".join(handshake.mechanisms) or "none"
        raise _refused(f"{ErrorCode(handshake.error_code).name} for {exchange.mechanism}; it offers {offered}")
    message: bytes | None = exchange.begin()
    for _ in range(MOST_MESSAGES):
        response: SaslAuthenticateResponse = await connection.send(
            SaslAuthenticateRequest(auth_bytes=message or b""),
            AUTHENTICATE_VERSION,
            SaslAuthenticateResponse,
            _unchanged,
            in_place=False,
        )
        if response.error_code:
            raise _refused(response.error_message or ErrorCode(response.error_code).name)
        try:
            message = await login.answer(exchange, bytes(response.auth_bytes))
        except ValueError as problem:
            raise _refused(str(problem)) from problem
        if message is None:
            lifetime_ms = response.session_lifetime_ms
            return lifetime_ms * RENEWAL_SHARE if lifetime_ms > 0 else None
    raise _refused("the exchange has no end")


def _refused(reason: str) -> BrokerUnavailable:
    return BrokerUnavailable(f"did not accept this broker's login: {reason}")


def _unchanged(response: Any) -> Any:
    return response
