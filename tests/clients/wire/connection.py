"""Kafka's protocol by hand, for what no client library will send: non-flexible versions over one blocking socket."""

import struct
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.wire import connect

T = TypeVar("T")


def int8(value: int) -> bytes:
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    return struct.pack(">q", value)


def string(value: str | None) -> bytes:
    return int16(-1) if value is None else int16(len(value.encode())) + value.encode()


def blob(value: bytes | None) -> bytes:
    return int32(-1) if value is None else int32(len(value)) + value


def array(items: Iterable[bytes] | None) -> bytes:
    if items is None:
        return int32(-1)
    encoded = list(items)
    return int32(len(encoded)) + b"".join(encoded)


class Reader:
    """Takes values off the front of an answer."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _unpack(self, layout: str) -> Any:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return value

    def int8(self) -> int:
        return int(self._unpack(">b"))

    def int16(self) -> int:
        return int(self._unpack(">h"))

    def int32(self) -> int:
        return int(self._unpack(">i"))

    def int64(self) -> int:
        return int(self._unpack(">q"))

    def string(self) -> str | None:
        size = self.int16()
        return None if size < 0 else self.take(size).decode()

    def blob(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self.take(size)

    def array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(self.int32())]

    def take(self, size: int) -> bytes:
        piece = self._data[self._position : self._position + size]
        if len(piece) != size:
            raise EOFError(f"{size} bytes wanted, {len(piece)} left")
        self._position += size
        return piece

    @property
    def remaining(self) -> int:
        return len(self._data) - self._position


class Connection:
    """One socket to a broker, one request at a time."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._wire = connect(bootstrap_servers)
        self._correlation_id = 0
        self.is_closed_by_broker = self._wire.is_closed_by_peer
        self.close = self._wire.close

    def send(self, api_key: int, version: int, body: bytes) -> None:
        """For acks=0, which is not answered."""
        self._correlation_id += 1
        request = struct.pack(">hhi", api_key, version, self._correlation_id) + string("wire") + body
        self._wire.send(int32(len(request)) + request)

    def ask(self, api_key: int, version: int, body: bytes) -> Reader:
        self.send(api_key, version, body)
        frame = self._wire.read_frame()
        if frame is None:
            raise ConnectionError("closed by the broker")
        answer = Reader(frame)
        if (correlation_id := answer.int32()) != self._correlation_id:
            raise AssertionError(f"answer {correlation_id} to request {self._correlation_id}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
