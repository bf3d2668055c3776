"""The state of authentication on one connection of a SASL listener: which requests it allows, and when a session ends.

The order is Kafka's: ApiVersions at most once, SaslHandshake, then SaslAuthenticate until the mechanism has decided.
After that all requests are allowed, until the session expires (KIP-368); then only a re-authentication is, with the
same mechanism and principal. Pure: times are passed in. A connection of another listener has no such state.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from odradek.conventions.dataclass import dataclass
from odradek.protocol.errors import ErrorCode
from odradek.security.principals import Principal
from odradek.security.sasl.outcome import Authenticated, Challenge, Deferred

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.security.sasl.outcome import Mechanism

SASL_HANDSHAKE_KEY, API_VERSIONS_KEY, SASL_AUTHENTICATE_KEY = 17, 18, 36
SHORTEST_REAUTHENTICATION_INTERVAL_MS = 1000.0


class Mechanisms(Protocol):
    """The mechanisms of a listener, with its users."""

    @property
    def names(self) -> Sequence[str]: ...

    def begin(self, name: str) -> Mechanism: ...

    def longest_session_ms(self, name: str) -> int:
        """`connections.max.reauth.ms`; 0 for sessions without an end."""


class Times(NamedTuple):
    now_ms: int  # of the wall clock, which credentials are compared with
    monotonic_ms: float


class _State(enum.Enum):
    VERSIONS_OR_HANDSHAKE = enum.auto()
    HANDSHAKE = enum.auto()
    AUTHENTICATE = enum.auto()
    RAW_TOKENS = enum.auto()  # after a handshake of version 0, tokens come without request headers
    COMPLETE = enum.auto()
    FAILED = enum.auto()


_ALLOWED = {
    _State.VERSIONS_OR_HANDSHAKE: (API_VERSIONS_KEY, SASL_HANDSHAKE_KEY),
    _State.HANDSHAKE: (SASL_HANDSHAKE_KEY,),
    # All but the first are answered with an error.
    _State.AUTHENTICATE: (SASL_AUTHENTICATE_KEY, SASL_HANDSHAKE_KEY, API_VERSIONS_KEY),
}


@dataclass(frozen=True, slots=True)
class HandshakeStep:
    """`failure` is the reason for the log when the connection must be closed after the answer."""

    error: ErrorCode = ErrorCode.NONE
    mechanisms: Sequence[str] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class AuthenticateStep:
    """`message` is empty, not null, without an error, as in Kafka."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    data: bytes = b""
    session_lifetime_ms: int = 0
    failure: str | None = None
    is_complete: bool = False
    deferred: Deferred | None = None
    """The computation to await before the same step is taken again."""


class Authentication:
    __slots__ = (
        "_expires_monotonic_ms",
        "_last_begun_ms",
        "_mechanism",
        "_mechanisms",
        "_state",
        "mechanism_name",
        "principal",
    )

    def __init__(self, mechanisms: Mechanisms) -> None:
        self._mechanisms = mechanisms
        self._state = _State.VERSIONS_OR_HANDSHAKE
        self._mechanism: Mechanism | None = None  # None in an exchange: it was begun with another mechanism
        self._expires_monotonic_ms: float | None = None
        self._last_begun_ms: float | None = None
        self.mechanism_name: str | None = None
        self.principal: Principal | None = None
        """None until the client has authenticated."""

    @property
    def expects_raw_token(self) -> bool:
        return self._state is _State.RAW_TOKENS

    @property
    def is_complete(self) -> bool:
        """Whether the client has authenticated, and is not about to do it again."""
        return self._state is _State.COMPLETE

    @property
    def is_unrestricted(self) -> bool:
        """Whether every request is allowed from here on, without a check of each."""
        return self._state is _State.COMPLETE and self._expires_monotonic_ms is None

    def refuse(self, api_key: int, monotonic_ms: float) -> str | None:
        """Why a request closes the connection; None if it may be handled."""
        if self._state is _State.COMPLETE:
            expires_ms = self._expires_monotonic_ms
            if expires_ms is None or monotonic_ms < expires_ms or api_key == SASL_HANDSHAKE_KEY:
                return None
            return "the session has expired, and the client did not authenticate again"
        if api_key in _ALLOWED.get(self._state, ()):
            return None
        return f"a request with API key {api_key} came before authentication was complete"

    def ask_for_versions(self) -> str | None:
        """The reason for the log when ApiVersions must be refused and the connection closed."""
        if self._state is _State.VERSIONS_OR_HANDSHAKE:
            self._state = _State.HANDSHAKE
        elif self._state is _State.AUTHENTICATE:
            self._state = _State.FAILED
            return "ApiVersions in an exchange"
        return None

    def handshake(self, mechanism: str, version: int, times: Times) -> HandshakeStep:
        if self._state is _State.COMPLETE and not self._may_begin_again(times):
            return HandshakeStep(ErrorCode.ILLEGAL_SASL_STATE)
        if self._state in (_State.AUTHENTICATE, _State.RAW_TOKENS, _State.FAILED):
            self._state = _State.FAILED
            return HandshakeStep(ErrorCode.ILLEGAL_SASL_STATE, failure="a second handshake in one exchange")
        names = self._mechanisms.names
        if mechanism not in names:
            self._state = _State.FAILED
            reason = f"mechanism {mechanism[:64]!r} is not enabled"
            return HandshakeStep(ErrorCode.UNSUPPORTED_SASL_MECHANISM, names, failure=reason)
        if self._state is _State.COMPLETE:
            self._last_begun_ms = times.monotonic_ms
        is_same = self.mechanism_name in (None, mechanism)
        self._mechanism = self._mechanisms.begin(mechanism) if is_same else None
        self.mechanism_name = self.mechanism_name or mechanism
        self._state = _State.AUTHENTICATE if version >= 1 else _State.RAW_TOKENS
        return HandshakeStep(mechanisms=names)

    def authenticate(self, token: bytes, times: Times) -> AuthenticateStep:
        if self._state not in (_State.AUTHENTICATE, _State.RAW_TOKENS):
            message = "SaslAuthenticate request received after successful authentication"
            return AuthenticateStep(ErrorCode.ILLEGAL_SASL_STATE, message)
        if self._mechanism is None:
            message = f"SASL mechanism is not that of the first authentication, which was {self.mechanism_name}"
            return self._fail(message, message)
        outcome = self._mechanism.evaluate(token)
        if isinstance(outcome, Challenge):
            return AuthenticateStep(data=outcome.data)
        if isinstance(outcome, Deferred):
            return AuthenticateStep(deferred=outcome)
        if isinstance(outcome, Authenticated):
            return self._complete(outcome, times)
        action = "authentication" if self.principal is None else "re-authentication"
        invalid = f"Authentication failed during {action} due to invalid credentials with SASL mechanism "
        return self._fail(outcome.message or invalid + str(self.mechanism_name), outcome.reason)

    def _may_begin_again(self, times: Times) -> bool:
        """Sessions without an end are not renewed, and others at most once a second."""
        if self._expires_monotonic_ms is None:
            return False
        last_ms = self._last_begun_ms
        return last_ms is None or times.monotonic_ms - last_ms >= SHORTEST_REAUTHENTICATION_INTERVAL_MS

    def _complete(self, outcome: Authenticated, times: Times) -> AuthenticateStep:
        principal = Principal(outcome.principal_type, outcome.user, outcome.is_token)
        if self.principal is not None and principal != self.principal:
            message = (
                f"Cannot change principals during re-authentication from {self.principal.type}.{self.principal.name}: "
                f"{principal.type}.{principal.name}"
            )
            return self._fail(message, message)
        lifetimes = [] if outcome.expires_ms is None else [outcome.expires_ms - times.now_ms]
        longest_ms = self._mechanisms.longest_session_ms(str(self.mechanism_name))
        if longest_ms > 0:
            lifetimes.append(longest_ms)
        # In an answer, 0 is a session without an end, so one that has ended has 1 ms.
        lifetime_ms = max(min(lifetimes), 1) if lifetimes else None
        self._expires_monotonic_ms = None if lifetime_ms is None else times.monotonic_ms + lifetime_ms
        self.principal = principal
        self._mechanism = None
        self._state = _State.COMPLETE
        return AuthenticateStep(data=outcome.data, session_lifetime_ms=lifetime_ms or 0, is_complete=True)

    def _fail(self, message: str, reason: str) -> AuthenticateStep:
        self._state = _State.FAILED
        self._mechanism = None
        return AuthenticateStep(ErrorCode.SASL_AUTHENTICATION_FAILED, message, failure=reason)
