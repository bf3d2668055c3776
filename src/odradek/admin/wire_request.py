"""Requests and their responses over sockets of our own, for those that the Kafka client library cannot make."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from odradek.admin.errors import AnswerTimeout, LostConnection, NoAnswer, RefusedConnection
from odradek.admin.listener_diagnosis import mismatch
from odradek.admin.wire_security import SecuredAddress
from odradek.conventions.failures import Failure
from odradek.protocol.malformed import MalformedMessage

if TYPE_CHECKING:
    from odradek.protocol.schema import Request, Response

TIMEOUT_S = 15.0
LARGEST_RESPONSE_BYTES = 64 * 1024 * 1024
CORRELATION_ID_BYTES = 4
API_VERSIONS_KEY = 18
CLIENT_ID = b"odradek-cli"
LONGEST_RECEIVE_S = 60.0  # of a response, or of what is left of it, however often some bytes come
_HEADER = struct.Struct(">ihhih")

R = TypeVar("R", bound="Response")


class Call(Protocol):
    """Sends a request to an address, and returns the response: `call`, or one that keeps state between requests."""

    def __call__(
        self,
        address: tuple[str, int] | SecuredAddress,
        request: Request,
        response_type: type[R],
        version: int,
        timeout_s: float = TIMEOUT_S,
    ) -> R: ...


def encode_frame(request: Request, version: int, client_id: bytes) -> bytearray:
    """Length, request header and body. The correlation id is zero."""
    body = b"".join(cast("list[bytes]", request.encode(version)))
    tags = b"\0" if request.is_flexible(version) else b""
    size_bytes = _HEADER.size - 4 + len(client_id) + len(tags) + len(body)
    head = _HEADER.pack(size_bytes, request.api_key, version, 0, len(client_id))
    return bytearray(head + client_id + tags + body)


def call(
    address: tuple[str, int] | SecuredAddress,
    request: Request,
    response_type: type[R],
    version: int,
    timeout_s: float = TIMEOUT_S,
) -> R:
    """Send a request and return the response. NoAnswer if the broker cannot be reached or does not answer in time."""
    connection = BrokerConnection(address, timeout_s)
    try:
        return connection.ask(request, response_type, version)
    finally:
        connection.close()


class BrokerConnection:
    """A socket to a broker, after TLS and SASL. RefusedConnection if they fail; NoAnswer if the broker cannot be
    reached or does not answer in time; LostConnection if the connection breaks."""

    def __init__(self, address: tuple[str, int] | SecuredAddress, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._has_answered = False
        self._received = bytearray()  # of a response
        host, port = address[:2]
        security = self._security = address.security if isinstance(address, SecuredAddress) else None
        try:
            self._socket = socket.create_connection((host, port), timeout=timeout_s)
        except (OSError, UnicodeError) as error:
            raise self._failure(error, NoAnswer) from None
        if security is None:
            return
        try:
            self._socket = security.secure(self._socket, host)
            security.log_in(self._socket, _ask)
        except (OSError, Failure) as error:
            self.close()
            raise self._reason(error) from None
        except BaseException:
            self.close()
            raise
        self._has_answered = security.credentials is not None

    def ask(self, request: Request, response_type: type[R], version: int) -> R:
        try:
            response = _ask(self._socket, request, response_type, version)
        except (OSError, Failure) as error:
            raise self._reason(error) from None
        self._has_answered = True
        return response

    def send(self, request: Request, version: int, client_id: bytes = CLIENT_ID) -> None:
        """Sends a request whose response `receive_available` returns: a caller can wait for several brokers at once."""
        try:
            self._socket.sendall(encode_frame(request, version, client_id))
        except OSError as error:
            raise self._failure(error, LostConnection) from None

    def receive_available(self, response_type: type[R], version: int, largest_bytes: int) -> R | None:
        """The response to `send` if all of it has arrived. Keeps the part that has arrived, and does not wait."""
        received = self._received
        try:
            self._socket.settimeout(0)
            while (missing := _missing_bytes(self._socket, received, response_type, version, largest_bytes)) > 0:
                piece = self._socket.recv(min(missing, 1 << 20))
                if not piece:
                    raise ConnectionResetError("the broker closed the connection")
                received += piece
            self._socket.settimeout(self._timeout_s)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except OSError as error:
            raise self._failure(error, LostConnection) from None
        self._received = bytearray()
        return _decode_response(self._socket, memoryview(received)[4:], response_type, version)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _reason(self, error: OSError | Failure) -> Failure:
        """The failure of a request, or of TLS and SASL before it."""
        if isinstance(error, TimeoutError):
            return self._failure(error, AnswerTimeout)
        if not self._has_answered and not isinstance(error, RefusedConnection):
            found = mismatch(*self.address[:2], self._security, error, _ask, self._timeout_s)
            if found is not None:
                return found
        return error if isinstance(error, Failure) else self._failure(error, LostConnection)

    def _failure(self, error: OSError | UnicodeError, kind: type[Failure]) -> Failure:
        host, port = self.address[:2]
        reason = "invalid host name" if isinstance(error, UnicodeError) else error.strerror or str(error)
        message = f"no response from {host}:{port}: {reason}"
        return kind(message, reason.lower()) if issubclass(kind, NoAnswer) else kind(message)


def _ask(connection: socket.socket, request: Request, response_type: type[R], version: int) -> R:
    connection.sendall(encode_frame(request, version, CLIENT_ID))
    return _receive_response(connection, response_type, version)


def _receive_response(connection: socket.socket, response_type: type[R], version: int) -> R:
    received = bytearray(_receive(connection, 4))
    size_bytes = _missing_bytes(connection, received, response_type, version, LARGEST_RESPONSE_BYTES)
    return _decode_response(connection, memoryview(_receive(connection, size_bytes)), response_type, version)


def _header_bytes(response_type: type[R], version: int) -> int:
    # The header of an ApiVersions response is never flexible: the client does not know the broker's versions.
    is_flexible = response_type.is_flexible(version) and response_type.api_key != API_VERSIONS_KEY
    return CORRELATION_ID_BYTES + is_flexible  # a byte for no tagged fields


def _missing_bytes(
    connection: socket.socket, received: bytearray, response_type: type[R], version: int, largest_bytes: int
) -> int:
    """Of the length, then of the whole response. Failure for the length of no response."""
    if len(received) < 4:
        return 4 - len(received)
    size_bytes = int.from_bytes(received[:4], "big")
    if not _header_bytes(response_type, version) <= size_bytes <= largest_bytes:
        host, port = connection.getpeername()[:2]
        raise Failure(f"{host}:{port} sent a response of {size_bytes} bytes; is it a Kafka broker?")
    return 4 + size_bytes - len(received)


def _decode_response(connection: socket.socket, frame: memoryview, response_type: type[R], version: int) -> R:
    try:
        return response_type.decode(frame, _header_bytes(response_type, version), version)
    except MalformedMessage as problem:
        host, port = connection.getpeername()[:2]
        raise Failure(f"{host}:{port} sent a response that cannot be read: {problem}") from None


def _receive(connection: socket.socket, size_bytes: int) -> bytes:
    received = bytearray()
    deadline = time.monotonic() + LONGEST_RECEIVE_S
    while len(received) < size_bytes:
        if time.monotonic() > deadline:
            raise TimeoutError("the broker sends too slowly")
        piece = connection.recv(min(size_bytes - len(received), 1 << 20))
        if not piece:
            raise ConnectionResetError("the broker closed the connection")
        received += piece
    return bytes(received)
