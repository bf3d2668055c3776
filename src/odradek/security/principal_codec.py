"""Principals as bytes, in the format of Kafka's DefaultKafkaPrincipalBuilder: a version, then the message. Pure."""

from __future__ import annotations

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Message, boolean, string
from odradek.security.principals import Principal

_VERSION = 0


class DefaultPrincipalData(Message, versions=(0, 0), flexible=0):
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()


def encode_principal(principal: Principal) -> bytes:
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.is_token_authenticated
    )
    parts = data.encode(_VERSION)
    return _VERSION.to_bytes(2, "big") + b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # no slices


def decode_principal(data: bytes) -> Principal:
    """`MalformedMessage` for anything else than one encoded principal."""
    if len(data) < 2 or int.from_bytes(data[:2], "big") != _VERSION:
        raise MalformedMessage("a principal is encoded in an unknown version")
    decoded = DefaultPrincipalData.decode(memoryview(data), 2, _VERSION)
    return Principal(decoded.type, decoded.name, decoded.token_authenticated)
