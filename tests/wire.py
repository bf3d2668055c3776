"""A bare client for tests: requests and responses of our own tables, or any bytes at all, over a plain socket."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any, Self, TypeVar

from odradek.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from types import TracebackType

    from odradek.protocol.schema import Message, Request, Response

AnyResponse = TypeVar("AnyResponse", bound="Response")

TIMEOUT_S = 20.0


def encode_request(request: Request, version: int, correlation_id: int = 1, client_id: str | None = "wire") -> bytes:
    """A whole frame, size included."""
    name = b"" if client_id is None else client_id.encode()
    head = struct.pack(">hhih", type(request).api_key, version, correlation_id, -1 if client_id is None else len(name))
    tags = b"\0" if is_flexible(type(request), version) else b""
    body = b"".join(bytes(part) for part in request.encode(version))  # type: ignore[arg-type]  # requests hold no slices
    frame = head + name + tags + body
    return struct.pack(">i", len(frame)) + frame


def is_flexible(message: type[Message], version: int) -> bool:
    return message.flexible_from is not None and version >= message.flexible_from


def decode_response(response: type[AnyResponse], frame: bytes, version: int) -> AnyResponse:
    has_tags = is_flexible(response, version) and response.api_key != ApiVersionsRequest.api_key
    return response.decode(memoryview(frame), 5 if has_tags else 4, version)


def connect(bootstrap_servers: str) -> WireClient:
    host, _, port = bootstrap_servers.partition(",")[0].rpartition(":")
    return WireClient(int(port), host)


class WireClient:
    """One blocking connection."""

    def __init__(self, port: int, host: str = "127.0.0.1", source_host: str | None = None) -> None:
        source = None if source_host is None else (source_host, 0)
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S, source_address=source)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def call(self, request: Request, response: type[AnyResponse], version: int | None = None) -> AnyResponse:
        chosen = type(request).versions[1] if version is None else version
        self._correlation_id += 1
        self.socket.sendall(encode_request(request, chosen, self._correlation_id))
        frame = self.read_frame()
        if frame is None:
            raise ConnectionError("the broker closed the connection")
        assert struct.unpack_from(">i", frame)[0] == self._correlation_id
        return decode_response(response, frame, chosen)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_frame(self) -> bytes | None:
        """The next response frame without its size, or None when the broker closed the connection."""
        size = self._read_exactly(4)
        if size is None:
            return None
        return self._read_exactly(struct.unpack(">i", size)[0])

    def is_closed_by_peer(self) -> bool:
        """Waits until the broker closes the connection; an answer instead of an end is False."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _read_exactly(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            try:
                chunk: Any = self.socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not chunk:
                return None
            data += chunk
        return bytes(data)
