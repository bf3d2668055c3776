"""Logs in to another broker by SASL, and says when to do it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from odradek.client.broker_connection import BrokerUnavailable
from odradek.client.sasl_login import LoginRefused, SaslLogin

if TYPE_CHECKING:
    from odradek.client.broker_connection import BrokerConnection
    from odradek.client.sasl_login import Exchange

RENEWAL_SHARE = 0.8  # of the lifetime of a session, after which this broker authenticates again (KIP-368)


class Login(Protocol):
    def exchange(self) -> Exchange:
        """A new exchange, with a nonce of its own."""

    async def take(self, login: SaslLogin, response: Any) -> None:
        """`login.take(response)`, where it blocks nobody."""


async def authenticate(connection: BrokerConnection, login: Login) -> float | None:
    """Log in; returns after how many ms to do it again, or None. `BrokerUnavailable` if the broker refuses."""
    exchange = login.exchange()
    steps = SaslLogin(exchange)
    try:
        while steps.request is not None:
            response = await connection.send(
                steps.request, steps.version, steps.response_type, _unchanged, in_place=False
            )
            await login.take(steps, response)
    except LoginRefused as refusal:
        reason = str(refusal)
        if refusal.mechanisms is not None:
            reason += f" for {exchange.mechanism}; it offers {', '.join(refusal.mechanisms) or 'none'}"
        raise BrokerUnavailable(f"did not accept this broker's login: {reason}") from refusal
    return steps.session_lifetime_ms * RENEWAL_SHARE if steps.session_lifetime_ms > 0 else None


def _unchanged(response: Any) -> Any:
    return response
