"""A broker that answers ListOffsets and Fetch with given bytes, for readers that must survive any of them."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from odradek.cli.client.wire_security import SecuredAddress
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TIMEOUT_S = 60.0
FETCH_KEY = 1


class Log:
    """Partition 0 of every topic: batches at the offsets of their headers, or whatever `answer` returns."""

    def __init__(self, batches: Sequence[bytes], end_offset: int, aborted: Sequence[tuple[int, int]] = ()) -> None:
        self.batches = batches
        self.end_offset = end_offset
        self.aborted = aborted
        self.fetches = 0

    def read(self, offset: int) -> bytes:
        """From the batch with the offset on, as a broker finds it by its index: it does not look into batches."""
        starts = [struct.unpack_from(">q", batch)[0] for batch in self.batches if len(batch) >= 8]
        first = max((number for number, start in enumerate(starts) if start <= offset), default=0)
        return b"".join(self.batches[first:])


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data


def _serve(connection: socket.socket, log: Log) -> None:
    with connection:
        while True:
            try:
                frame = _exactly(connection, int.from_bytes(_exactly(connection, 4), "big"))
            except OSError:
                return
            key, version, _correlation, name_bytes = struct.unpack_from(">hhih", frame)
            assert key == FETCH_KEY
            request = FetchRequest.decode(memoryview(frame), 10 + name_bytes, version)
            (topic,) = request.topics
            (wanted,) = topic.partitions
            data = log.read(wanted.fetch_offset) if wanted.fetch_offset < log.end_offset else b""
            log.fetches += 1
            partition = PartitionData(
                partition_index=wanted.partition,
                error_code=0,
                high_watermark=log.end_offset,
                last_stable_offset=log.end_offset,
                aborted_transactions=[AbortedTransaction(producer_id=p, first_offset=o) for p, o in log.aborted],
                records=data,
            )
            answer = FetchResponse(responses=[FetchableTopicResponse(topic=topic.topic, partitions=[partition])])
            body = b"\0\0\0\0" + b"".join(bytes(part) for part in answer.encode(version))  # type: ignore[arg-type]  # no slices
            connection.sendall(len(body).to_bytes(4, "big") + body)


@contextmanager
def serving(log: Log) -> Iterator[Any]:
    """Stands for the cluster of a reader."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()[:2]

        def accept() -> None:
            while True:
                try:
                    connection, _peer = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_serve, args=(connection, log), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        leader = SimpleNamespace(host=address[0], port=address[1])
        described = SimpleNamespace(name="t", partitions=[SimpleNamespace(id=0, leader=leader)])
        try:
            yield SimpleNamespace(
                properties={},
                address=lambda host, port: SecuredAddress(host, port, None),
                describe_topic=lambda _name: described,
            )
        finally:
            listener.shutdown(socket.SHUT_RDWR)
