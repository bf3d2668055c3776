"""Conversations with a SASL listener, correct ones and others, and what a broker answers to each message: error codes
and texts, or that it closes the connection. The same on Odradek and on Apache Kafka."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.wire import WireClient, decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.schema import Request, Response

RIGHT, WRONG, UNKNOWN = b"\0alice\0alice secret", b"\0alice\0wrong", b"\0nobody\0wrong"
VERSIONS = ("versions",)
METADATA = ("metadata",)
FIRST = b"n,,n=nobody,r=fyko+d2lbbFgONRv9qkxdawL"

Message = tuple[Any, ...]
CONVERSATIONS: dict[str, Sequence[Message]] = {
    "right password": [VERSIONS, ("handshake", "PLAIN", 1), ("token", RIGHT, 2), METADATA],
    "without versions": [("handshake", "PLAIN", 1), ("token", RIGHT, 1), METADATA],
    "version 0 of tokens": [("handshake", "PLAIN", 1), ("token", RIGHT, 0), METADATA],
    "wrong password": [("handshake", "PLAIN", 1), ("token", WRONG, 2)],
    "unknown user": [("handshake", "PLAIN", 1), ("token", UNKNOWN, 2)],
    "two fields": [("handshake", "PLAIN", 1), ("token", b"alice\0secret", 2)],
    "no password": [("handshake", "PLAIN", 1), ("token", b"\0alice\0", 2)],
    "no user": [("handshake", "PLAIN", 1), ("token", b"\0\0secret", 2)],
    "another identity": [("handshake", "PLAIN", 1), ("token", b"bob\0alice\0alice secret", 2)],
    "mechanism that is not enabled": [VERSIONS, ("handshake", "GSSAPI", 1)],
    "mechanism in lower case": [("handshake", "plain", 1)],
    "request before the handshake": [METADATA],
    "request after versions": [VERSIONS, METADATA],
    "versions twice": [VERSIONS, VERSIONS],
    "token before the handshake": [("token", RIGHT, 2)],
    "malformed SCRAM": [("handshake", "SCRAM-SHA-256", 1), ("token", b"n,,x", 2)],
    "channel binding": [("handshake", "SCRAM-SHA-256", 1), ("token", b"p=tls-unique,,n=a,r=abcdefghij", 2)],
    "second handshake": [("handshake", "PLAIN", 1), ("handshake", "PLAIN", 1)],
    "handshake after authentication": [
        ("handshake", "PLAIN", 1), ("token", RIGHT, 2), ("handshake", "PLAIN", 1), METADATA,
    ],
    "token after authentication": [("handshake", "PLAIN", 1), ("token", RIGHT, 2), ("token", RIGHT, 2), METADATA],
    "raw token": [("handshake", "PLAIN", 0), ("raw", RIGHT), METADATA],
    "wrong raw token": [("handshake", "PLAIN", 0), ("raw", WRONG)],
}  # fmt: skip


def converse(port: int, messages: Sequence[Message]) -> list[Any]:
    """The answers, the last of which is `closed` when the broker closed the connection."""
    answers: list[Any] = []
    with WireClient(port) as client:
        for message in messages:
            answer = _send(client, message)
            answers.append(answer)
            if answer == "closed":
                break
        if answers[-1] != "closed" and messages[-1] != METADATA:
            answers.append("closed" if _receive(client) is None else "more bytes")
    return answers


def _send(client: WireClient, message: Message) -> Any:
    match message:
        case ("versions",):
            request: Request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            response: type[Response] = ApiVersionsResponse
            version = 3
        case ("metadata",):
            request, response, version = MetadataRequest(topics=[]), MetadataResponse, 12
        case ("handshake", name, version):
            request, response = SaslHandshakeRequest(mechanism=name), SaslHandshakeResponse
        case ("token", token, version):
            request, response = SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse
        case ("raw", token):
            client.socket.sendall(struct.pack(">i", len(token)) + token)
            frame = _receive(client)
            return "closed" if frame is None else ("raw", frame)
        case _:
            raise ValueError(message)
    client.socket.sendall(encode_request(request, version))
    frame = _receive(client)
    return "closed" if frame is None else _summary(decode_response(response, frame, version))


def _summary(response: Any) -> Any:
    if isinstance(response, SaslHandshakeResponse):
        return ErrorCode(response.error_code).name, sorted(response.mechanisms)
    if isinstance(response, SaslAuthenticateResponse):
        return ErrorCode(response.error_code).name, response.error_message, bytes(response.auth_bytes)
    return type(response).__name__


def _receive(client: WireClient) -> bytes | None:
    """One frame, or None at the end of the connection."""
    try:
        received = b""
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
            missing = 4 if len(received) < 4 else 4 + int.from_bytes(received[:4], "big") - len(received)
            piece = client.socket.recv(missing)
            if not piece:
                return None
            received += piece
    except ConnectionResetError:
        return None
    return received[4:]
