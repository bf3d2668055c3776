"""OAUTHBEARER (RFC 7628): an access token in one message, so that it needs TLS. Pure."""

from __future__ import annotations

_END_OF_FAILURE = b"\x01"  # the client's answer to the description of a failure


class OauthbearerExchange:
    __slots__ = ("_token",)

    mechanism = "OAUTHBEARER"

    def __init__(self, token: str) -> None:
        self._token = token

    def begin(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        return _END_OF_FAILURE if challenge else None
