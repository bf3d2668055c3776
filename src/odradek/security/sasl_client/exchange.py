"""The client's side of a SASL exchange: answers to the server's challenges. Pure; nonces are passed in."""

from __future__ import annotations

from typing import Protocol


class SaslClientError(ValueError):
    """The server's message is not acceptable. The text has no secret."""


class SaslExchange(Protocol):
    @property
    def mechanism(self) -> str: ...

    def begin(self) -> bytes:
        """The first message to the server."""

    def answer(self, challenge: bytes) -> bytes | None:
        """The next message, or None when the exchange is complete. `SaslClientError` if the server is not genuine."""
