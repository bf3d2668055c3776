"""Any message of the protocol room over one blocking socket: for requests that no client library lets a test send."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Self, TypeVar

from odradek.protocol.schema import Response

if TYPE_CHECKING:
    from types import TracebackType

    from odradek.protocol.schema import Request

R = TypeVar("R", bound=Response)
CLIENT_ID = "wire"
TIMEOUT_SECONDS = 30.0


class MessageConnection:
    """One socket to a broker, one request at a time."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, port = bootstrap_servers.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
        self._correlation_id = 0

    def ask(self, request: Request, response: type[R], version: int) -> R:
        self.send(request, version)
        data = self._read(struct.unpack(">i", self._read(4))[0])
        (correlation_id,) = struct.unpack_from(">i", data)
        assert correlation_id == self._correlation_id
        header_bytes = 5 if response.is_flexible(version) else 4  # a flexible header ends with its tagged fields
        return response.decode(memoryview(data), header_bytes, version)

    def send(self, request: Request, version: int) -> None:
        self._correlation_id += 1
        client_id = CLIENT_ID.encode()
        header = struct.pack(">hhih", request.api_key, version, self._correlation_id, len(client_id)) + client_id
        tagged_fields = b"\0" if request.is_flexible(version) else b""
        body = b"".join(bytes(part) for part in request.encode(version))  # type: ignore[arg-type]  # no slices here
        data = header + tagged_fields + body
        self._socket.sendall(struct.pack(">i", len(data)) + data)

    def _read(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self._socket.recv(min(size, 1 << 20))
            if not piece:
                raise ConnectionError("closed by the broker")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
