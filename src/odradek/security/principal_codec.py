"""Principals as bytes, in the format of Kafka's DefaultKafkaPrincipalBuilder: a version, then the message. Pure.

A tagged field, which Kafka skips, carries the listener through which the client came, for the audit log.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Message, boolean, string
from odradek.security.principals import Principal

_VERSION = 0


class ForwardedClient(NamedTuple):
    """`listener` is empty if the sender does not name it."""

    principal: Principal
    listener: str


class DefaultPrincipalData(Message, versions=(0, 0), flexible=0):
    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
    listener: str = string(tag=10_000, tagged="0+", default="")


def encode_principal(principal: Principal, listener: str = "") -> bytes:
    data = DefaultPrincipalData(
        type=principal.type,
        name=principal.name,
        token_authenticated=principal.is_token_authenticated,
        listener=listener,
    )
    parts = data.encode(_VERSION)
    return _VERSION.to_bytes(2, "big") + b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]  # no slices


def decode_principal(data: bytes) -> ForwardedClient:
    """`MalformedMessage` for anything else than one encoded principal."""
    if len(data) < 2 or int.from_bytes(data[:2], "big") != _VERSION:
        raise MalformedMessage("a principal is encoded in an unknown version")
    decoded = DefaultPrincipalData.decode(memoryview(data), 2, _VERSION)
    return ForwardedClient(Principal(decoded.type, decoded.name, decoded.token_authenticated), decoded.listener)
