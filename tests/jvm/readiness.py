"""Whether a Kafka broker answers: one Metadata request by hand, so that waiting needs no client library."""

import socket
import struct

METADATA_API_KEY = 3
METADATA_VERSION = 1


def _read_exactly(connection: socket.socket, size_bytes: int) -> bytes:
    data = b""
    while len(data) < size_bytes:
        piece = connection.recv(size_bytes - len(data))
        if not piece:
            raise ConnectionError("closed by the broker")
        data += piece
    return data


def answers_with_a_broker(host: str, port: int, timeout_seconds: float = 2.0) -> bool:
    """True once the broker lists itself: it is registered with its controller and may be used."""
    request = struct.pack(">hhih", METADATA_API_KEY, METADATA_VERSION, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection((host, port), timeout=timeout_seconds) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size_bytes,) = struct.unpack(">i", _read_exactly(connection, 4))
            _correlation_id, broker_count = struct.unpack_from(">ii", _read_exactly(connection, size_bytes))
    except (OSError, struct.error):
        return False
    return bool(broker_count > 0)
