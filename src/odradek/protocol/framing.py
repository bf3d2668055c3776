"""The headers of requests (versions 1 and 2) and responses (versions 0 and 1) (KIP-482)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, cast

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.tagged_fields import skip_tagged_fields
from odradek.protocol.varints import decode_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.schema import Request, Response

API_VERSIONS_KEY = 18
SIZE_BYTES = 4  # before a frame; it does not count itself
_FIXED_FIELDS = struct.Struct(">hhih")
_REQUEST = struct.Struct(">ihhih")
# The size of the frame, which does not count itself, and the correlation id.
_RESPONSE_0 = struct.Struct(">ii")
_RESPONSE_1 = struct.Struct(">iix")
_pack_response_0, _pack_response_1 = _RESPONSE_0.pack, _RESPONSE_1.pack
_HEADER_0_BYTES, _HEADER_1_BYTES = _RESPONSE_0.size - 4, _RESPONSE_1.size - 4


class RequestHeader:
    __slots__ = ("api_key", "api_version", "body_position", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None, body_position: int
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body_position = body_position

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r}, body_position={self.body_position})"
        )


def decode_request_header(frame: memoryview, flexible_from: Callable[[int], int | None]) -> RequestHeader:
    """Decodes a request's header. `flexible_from` returns the first flexible version of an API, or None.

    None means that the API has no flexible version or is unknown: the header then ends after the client id."""
    try:
        api_key, api_version, correlation_id, client_id_length = _FIXED_FIELDS.unpack_from(frame)
    except struct.error:
        raise MalformedMessage(f"a frame of {len(frame)} bytes is too short for a request header") from None
    position = _FIXED_FIELDS.size
    client_id = None
    if client_id_length >= 0:
        end = position + client_id_length
        if end > len(frame):
            raise MalformedMessage(f"a client id of {client_id_length} bytes in a frame of {len(frame)}")
        try:
            client_id = str(frame[position:end], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage(f"the client id is not UTF-8: {error}") from error
        position = end
    elif client_id_length != -1:
        raise MalformedMessage(f"a client id of {client_id_length} bytes")
    first_flexible_version = flexible_from(api_key)
    if first_flexible_version is not None and api_version >= first_flexible_version:
        if position < len(frame) and not frame[position]:  # no tagged fields: almost every request
            position += 1
        else:
            count, position = decode_unsigned_varint(frame, position)
            position = skip_tagged_fields(frame, position, count)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def encode_response_header(correlation_id: int, flexible: bool, body_bytes: int) -> bytes:
    """The beginning of a response's frame: its size and its header. ApiVersions has no flexible header: clients read it
    before they know the versions."""
    if flexible:
        return _pack_response_1(_HEADER_1_BYTES + body_bytes, correlation_id)
    return _pack_response_0(_HEADER_0_BYTES + body_bytes, correlation_id)


def encode_request_frame(request: Request, version: int, client_id: bytes, correlation_id: int = 0) -> bytearray:
    """Size, header and body of a request."""
    body = b"".join(cast("list[bytes]", request.encode(version)))
    tags = b"\0" if request.is_flexible(version) else b""
    size_bytes = _REQUEST.size - SIZE_BYTES + len(client_id) + len(tags) + len(body)
    head = _REQUEST.pack(size_bytes, request.api_key, version, correlation_id, len(client_id))
    return bytearray(head + client_id + tags + body)


def response_header_bytes(response_type: type[Response], version: int) -> int:
    """Bytes before the body of a response: the correlation id, and an empty list of tagged fields if it is flexible.
    The header of ApiVersions never is: the client does not know the broker's versions."""
    return 4 + (response_type.is_flexible(version) and response_type.api_key != API_VERSIONS_KEY)
