"""Conversations with a SASL listener, correct ones and others, and what a broker answers to each message: error codes
and texts, or that it closes the connection. The same on Odradek and on Apache Kafka."""

import struct
from collections.abc import Sequence
from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.schema import Request, Response
from tests.wire import WireClient, decode_response, encode_request

RIGHT, WRONG, UNKNOWN = b"\0alice\0alice secret", b"\0alice\0wrong", b"\0nobody\0wrong"
VERSIONS = ("versions",)
METADATA = ("metadata",)

Message = tuple[Any, ...]
LISTED = ("NONE", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
UNSUPPORTED = ("UNSUPPORTED_SASL_MECHANISM", LISTED[1])
ACCEPTED = ("NONE", "", b"")
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"
CLOSED, ANSWERED = "closed", "MetadataResponse"


def refused(text: str) -> tuple[str, str, bytes]:
    return "SASL_AUTHENTICATION_FAILED", text, b""


PLAIN, SCRAM = ("handshake", "PLAIN", 1), ("handshake", "SCRAM-SHA-256", 1)
WRONG_PASSWORD = refused("Authentication failed: Invalid username or password")

# Messages, and the answers of Apache Kafka 4.3.1.
CONVERSATIONS: dict[str, tuple[Sequence[Message], Sequence[Any]]] = {
    "right password": (
        [VERSIONS, PLAIN, ("token", RIGHT, 2), METADATA],
        ["ApiVersionsResponse", LISTED, ACCEPTED, ANSWERED],
    ),
    "without versions": ([PLAIN, ("token", RIGHT, 1), METADATA], [LISTED, ACCEPTED, ANSWERED]),
    "version 0 of tokens": ([PLAIN, ("token", RIGHT, 0), METADATA], [LISTED, ACCEPTED, ANSWERED]),
    "wrong password": ([PLAIN, ("token", WRONG, 2)], [LISTED, WRONG_PASSWORD, CLOSED]),
    "unknown user": ([PLAIN, ("token", UNKNOWN, 2)], [LISTED, WRONG_PASSWORD, CLOSED]),
    "two fields": (
        [PLAIN, ("token", b"alice\0secret", 2)],
        [LISTED, refused("Invalid SASL/PLAIN response: expected 3 tokens, got 2"), CLOSED],
    ),
    "no password": (
        [PLAIN, ("token", b"\0alice\0", 2)],
        [LISTED, refused("Authentication failed: password not specified"), CLOSED],
    ),
    "no user": (
        [PLAIN, ("token", b"\0\0secret", 2)],
        [LISTED, refused("Authentication failed: username not specified"), CLOSED],
    ),
    "another identity": (
        [PLAIN, ("token", b"bob\0alice\0alice secret", 2)],
        [LISTED, refused(OTHER_IDENTITY), CLOSED],
    ),
    "mechanism that is not enabled": (
        [VERSIONS, ("handshake", "GSSAPI", 1)],
        ["ApiVersionsResponse", UNSUPPORTED, CLOSED],
    ),
    "mechanism in lower case": ([("handshake", "plain", 1)], [UNSUPPORTED, CLOSED]),
    "request before the handshake": ([METADATA], [CLOSED]),
    "request after versions": ([VERSIONS, METADATA], ["ApiVersionsResponse", CLOSED]),
    "versions twice": ([VERSIONS, VERSIONS], ["ApiVersionsResponse", CLOSED]),
    "versions after the handshake": (
        [PLAIN, VERSIONS],
        [LISTED, ("ApiVersionsResponse", "ILLEGAL_SASL_STATE"), CLOSED],
    ),
    "token before the handshake": ([("token", RIGHT, 2)], [CLOSED]),
    "malformed SCRAM": ([SCRAM, ("token", b"n,,x", 2)], [LISTED, refused(INVALID), CLOSED]),
    "channel binding": (
        [SCRAM, ("token", b"p=tls-unique,,n=a,r=abcdefghij", 2)],
        [LISTED, refused(INVALID), CLOSED],
    ),
    "second handshake": ([PLAIN, PLAIN], [LISTED, ("ILLEGAL_SASL_STATE", []), CLOSED]),
    "handshake after authentication": (
        [PLAIN, ("token", RIGHT, 2), PLAIN, METADATA],
        [LISTED, ACCEPTED, ("ILLEGAL_SASL_STATE", []), ANSWERED],
    ),
    "token after authentication": (
        [PLAIN, ("token", RIGHT, 2), ("token", RIGHT, 2), METADATA],
        [
            LISTED,
            ACCEPTED,
            ("ILLEGAL_SASL_STATE", "SaslAuthenticate request received after successful authentication", b""),
            ANSWERED,
        ],
    ),
    "raw token": ([("handshake", "PLAIN", 0), ("raw", RIGHT), METADATA], [LISTED, ("raw", b""), ANSWERED]),
    "wrong raw token": ([("handshake", "PLAIN", 0), ("raw", WRONG)], [LISTED, CLOSED]),
    "raw garbage": ([("handshake", "PLAIN", 0), ("raw", b"\xff\x00" * 20)], [LISTED, CLOSED]),
    "empty raw token": ([("handshake", "PLAIN", 0), ("raw", b"")], [LISTED, CLOSED]),
    "raw token of an unknown user": ([("handshake", "PLAIN", 0), ("raw", UNKNOWN)], [LISTED, CLOSED]),
    "raw SCRAM garbage": ([("handshake", "SCRAM-SHA-256", 0), ("raw", b"\xff\x00" * 20)], [LISTED, CLOSED]),
    "request in place of a raw token": ([("handshake", "PLAIN", 0), METADATA], [LISTED, CLOSED]),
    "token with a header after version 0": ([("handshake", "PLAIN", 0), ("token", RIGHT, 2)], [LISTED, CLOSED]),
    "raw token after version 1": ([PLAIN, ("raw", RIGHT)], [LISTED, CLOSED]),
    "second handshake after version 0": ([("handshake", "PLAIN", 0), PLAIN], [LISTED, CLOSED]),
    "raw token after authentication": (
        [("handshake", "PLAIN", 0), ("raw", RIGHT), ("raw", RIGHT)],
        [LISTED, ("raw", b""), CLOSED],
    ),
}


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
    if isinstance(response, ApiVersionsResponse) and response.error_code:
        return type(response).__name__, ErrorCode(response.error_code).name
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
