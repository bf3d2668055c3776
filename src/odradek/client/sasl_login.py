"""The client's side of a login by SASL, without I/O: SaslHandshake, then SaslAuthenticate until the exchange is
complete. Brokers log in to each other by it, and commands to brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 2
MOST_MESSAGES = 8  # of the server, in one exchange


class Exchange(Protocol):
    """The client's side of a SASL mechanism; `security/sasl_client` implements it."""

    @property
    def mechanism(self) -> str: ...

    def begin(self) -> bytes: ...

    def answer(self, challenge: bytes) -> bytes | None: ...


class LoginRefused(Exception):
    """The broker has refused the login with `error_code`, or this side does not accept the broker: then it is NONE.
    `mechanisms` are those that the broker offers in place of the one that it has refused."""

    def __init__(self, reason: str, error_code: int = ErrorCode.NONE, mechanisms: Sequence[str] | None = None) -> None:
        super().__init__(reason)
        self.error_code = error_code
        self.mechanisms = mechanisms


class SaslLogin:
    """One login without I/O: the caller sends `request`, and hands its response to `take`, until `request` is None."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._messages = 0
        self.request: SaslHandshakeRequest | SaslAuthenticateRequest | None = SaslHandshakeRequest(
            mechanism=exchange.mechanism
        )
        self.session_lifetime_ms = 0

    @property
    def response_type(self) -> type[SaslHandshakeResponse | SaslAuthenticateResponse]:
        return SaslHandshakeResponse if isinstance(self.request, SaslHandshakeRequest) else SaslAuthenticateResponse

    @property
    def version(self) -> int:
        return HANDSHAKE_VERSION if isinstance(self.request, SaslHandshakeRequest) else AUTHENTICATE_VERSION

    def take(self, response: SaslHandshakeResponse | SaslAuthenticateResponse) -> None:
        """LoginRefused if one side does not accept the other. The key of a password takes milliseconds to compute."""
        message: bytes | None
        if isinstance(response, SaslHandshakeResponse):
            if response.error_code:
                name = ErrorCode(response.error_code).name
                raise LoginRefused(name, response.error_code, list(response.mechanisms))
            message = self._exchange.begin()
        else:
            if response.error_code:
                reason = response.error_message or ErrorCode(response.error_code).name
                raise LoginRefused(reason, response.error_code)
            try:
                message = self._exchange.answer(bytes(response.auth_bytes))
            except ValueError as problem:
                raise LoginRefused(str(problem)) from problem
            self.session_lifetime_ms = response.session_lifetime_ms
        self.request = None if message is None else SaslAuthenticateRequest(auth_bytes=message)
        self._messages += 1
        if self.request is not None and self._messages > MOST_MESSAGES:
            raise LoginRefused("the exchange has no end")
