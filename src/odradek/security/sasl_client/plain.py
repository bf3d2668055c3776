"""PLAIN (RFC 4616): user and password in one message, so that it needs TLS. Pure."""

from __future__ import annotations


class PlainExchange:
    __slots__ = ("_password", "_user")

    mechanism = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    def begin(self) -> bytes:
        return f"\0{self._user}\0{self._password}".encode()

    def answer(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - the server sends nothing of use
        return None
