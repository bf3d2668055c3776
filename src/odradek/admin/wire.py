"""Requests to brokers and their responses: connections, single calls, and connections that are kept for many calls.

Commands and the console ask clusters through this module alone. The Kafka client library produces, and is the member of
a consumer group; it asks nothing else.
"""

from __future__ import annotations

import select
import socket
import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.admin.errors import AnswerTimeout, LostConnection, NoAnswer, RefusedConnection, UnsupportedRequest
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import SIZE_BYTES, encode_request_frame, response_header_bytes
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from odradek.admin.security import WireSecurity
    from odradek.protocol.schema import Request, Response

TIMEOUT_S = 15.0
LARGEST_RESPONSE_BYTES = 64 * 1024 * 1024
CLIENT_ID = b"odradek-cli"
LONGEST_RECEIVE_S = 60.0  # of a response, or of what is left of it, however often some bytes come
MOST_IDLE = 4  # connections to a broker that are kept

R = TypeVar("R", bound="Response")


class SecuredAddress(NamedTuple):
    host: str
    port: int
    security: WireSecurity | None


# One version, or several in the order of preference, of which the first is used that the broker has.
Versions = int | tuple[int, ...]


class BrokerConnection:
    """A socket to a broker, after TLS and SASL. RefusedConnection if they fail; NoAnswer if the broker cannot be
    reached or does not answer in time; LostConnection if the connection breaks."""

    def __init__(self, address: SecuredAddress, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._has_answered = False
        self._received = bytearray()  # of a response
        self._versions: dict[int, tuple[int, int]] | None = None
        self._waiting: tuple[type[OSError], ...] = (BlockingIOError,)  # for more of a response
        security = self._security = address.security
        try:
            self._socket = socket.create_connection(address[:2], timeout=timeout_s)
        except (OSError, UnicodeError) as error:
            raise self._failure(error, NoAnswer) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if security is None:
            return
        try:
            self._socket = security.secure(self._socket, address.host)
            self._waiting += security.waiting
            security.log_in(self._socket, _ask)
        except (OSError, Failure) as error:
            self.close()
            raise self._reason(error) from None
        except BaseException:
            self.close()
            raise
        self._has_answered = security.credentials is not None

    @property
    def is_idle(self) -> bool:
        """Whether the broker has neither closed the connection nor sent what was not asked for."""
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        return not poller.poll(0)

    def set_timeout(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._socket.settimeout(timeout_s)

    def ask(self, request: Request, response_type: type[R], version: Versions) -> R:
        """UnsupportedRequest if the broker has none of several versions."""
        chosen = version if isinstance(version, int) else self._choose(type(request), version)
        try:
            response = _ask(self._socket, request, response_type, chosen)
        except (OSError, Failure) as error:
            raise self._reason(error) from None
        self._has_answered |= not isinstance(request, ApiVersionsRequest)  # which every listener answers
        return response

    def _choose(self, request: type[Request], versions: tuple[int, ...]) -> int:
        if self._versions is None:
            answer = self.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        first, last = self._versions.get(request.api_key, (0, -1))
        for version in versions:
            if first <= version <= last:
                return version
        host, port = self.address[:2]
        name = request.__name__.removesuffix("Request")
        raise UnsupportedRequest(
            f"the broker at {host}:{port} does not support {name} as this command needs it "
            f"({ErrorCode.UNSUPPORTED_VERSION.name})"
        )

    def send(self, request: Request, version: int, client_id: bytes = CLIENT_ID) -> None:
        """Sends a request whose response `receive_available` returns: a caller can wait for several brokers at once."""
        try:
            self._socket.sendall(encode_request_frame(request, version, client_id))
        except OSError as error:
            raise self._failure(error, LostConnection) from None

    def receive_available(self, response_type: type[R], version: int, largest_bytes: int) -> R | None:
        """The response to `send` if all of it has arrived. Keeps the part that has arrived, and does not wait."""
        received = self._received
        try:
            self._socket.settimeout(0)
            while (missing := _missing_bytes(self._socket, received, response_type, version, largest_bytes)) > 0:
                received += _receive(self._socket, missing)
            self._socket.settimeout(self._timeout_s)
        except self._waiting:
            return None
        except OSError as error:
            raise self._failure(error, LostConnection) from None
        self._received = bytearray()
        return _decode_response(self._socket, memoryview(received)[SIZE_BYTES:], response_type, version)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _reason(self, error: OSError | Failure) -> Failure:
        """The failure of a request, or of TLS and SASL before it."""
        if isinstance(error, TimeoutError):
            return self._failure(error, AnswerTimeout)
        if not self._has_answered and not isinstance(error, RefusedConnection):
            from odradek.admin.security import mismatch  # noqa: PLC0415 - plain connections work without ssl

            found = mismatch(*self.address[:2], self._security, error, _ask, self._timeout_s)
            if found is not None:
                return found
        return error if isinstance(error, Failure) else self._failure(error, LostConnection)

    def _failure(self, error: OSError | UnicodeError, kind: type[Failure]) -> Failure:
        host, port = self.address[:2]
        reason = "invalid host name" if isinstance(error, UnicodeError) else error.strerror or str(error)
        message = f"no response from {host}:{port}: {reason}"
        return kind(message, reason.lower()) if issubclass(kind, NoAnswer) else kind(message)


class KeptConnections:
    """Connections for any number of threads, which are kept for later requests, so that a caller logs in once.

    A broker closes connections that were idle, or whose session has ended: a request that fails on a connection that
    was used before is sent once more on a new one. Other credentials need a new connection, too.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], list[BrokerConnection]] = {}
        self._lock = Lock()

    def __del__(self) -> None:
        self.close()

    def __call__(
        self, address: SecuredAddress, request: Request, response_type: type[R], version: Versions,
        timeout_s: float = TIMEOUT_S,
    ) -> R:  # fmt: skip
        """NoAnswer if the broker cannot be reached or does not answer in time."""
        kept = self._take(address)
        if kept is not None:
            kept.set_timeout(timeout_s)
            try:
                return self._ask(kept, request, response_type, version)
            except (NoAnswer, UnsupportedRequest):
                raise
            except Failure:
                pass  # the broker has closed it
        return self._ask(BrokerConnection(address, timeout_s), request, response_type, version)

    def close(self) -> None:
        """Close the connections that are not in use; the next request opens one."""
        with self._lock:
            connections = [each for idle in self._idle.values() for each in idle]
            self._idle.clear()
        for each in connections:
            each.close()

    def _take(self, address: SecuredAddress) -> BrokerConnection | None:
        """A connection to the address with its credentials. Others to this broker are closed."""
        while True:
            with self._lock:
                idle = self._idle.get((address[0], address[1]))
                if not idle:
                    return None
                kept = idle.pop()
            if kept.address == address and kept.is_idle:
                return kept
            kept.close()

    def _ask(self, connection: BrokerConnection, request: Request, response_type: type[R], version: Versions) -> R:
        """The connection is kept unless the request fails: a late response must not be taken for that of the next."""
        try:
            response = connection.ask(request, response_type, version)
        except UnsupportedRequest:
            self._keep(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        return response

    def _keep(self, connection: BrokerConnection) -> None:
        host, port = connection.address[:2]
        with self._lock:
            idle = self._idle.setdefault((host, port), [])
            if len(idle) < MOST_IDLE:
                idle.append(connection)
                return
        connection.close()


def _ask(connection: socket.socket, request: Request, response_type: type[R], version: int) -> R:
    connection.sendall(encode_request_frame(request, version, CLIENT_ID))
    received = bytearray()
    deadline = time.monotonic() + LONGEST_RECEIVE_S
    while (missing := _missing_bytes(connection, received, response_type, version, LARGEST_RESPONSE_BYTES)) > 0:
        if time.monotonic() > deadline:
            raise TimeoutError("the broker sends too slowly")
        received += _receive(connection, missing)
    return _decode_response(connection, memoryview(received)[SIZE_BYTES:], response_type, version)


def _receive(connection: socket.socket, most_bytes: int) -> bytes:
    piece = connection.recv(min(most_bytes, 1 << 20))
    if not piece:
        raise ConnectionResetError("the broker closed the connection")
    return piece


def _missing_bytes(
    connection: socket.socket, received: bytearray, response_type: type[R], version: int, largest_bytes: int
) -> int:
    """How many bytes of the length field, then of the response, are missing. Failure for an impossible length."""
    if len(received) < SIZE_BYTES:
        return SIZE_BYTES - len(received)
    size_bytes = int.from_bytes(received[:SIZE_BYTES], "big")
    if not response_header_bytes(response_type, version) <= size_bytes <= largest_bytes:
        host, port = connection.getpeername()[:2]
        raise Failure(f"{host}:{port} sent a response of {size_bytes} bytes; is it a Kafka broker?")
    return SIZE_BYTES + size_bytes - len(received)


def _decode_response(connection: socket.socket, frame: memoryview, response_type: type[R], version: int) -> R:
    try:
        return response_type.decode(frame, response_header_bytes(response_type, version), version)
    except MalformedMessage as problem:
        host, port = connection.getpeername()[:2]
        raise Failure(f"{host}:{port} sent a response that cannot be read: {problem}") from None
