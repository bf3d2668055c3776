"""A broker that answers ListOffsets and Fetch with given bytes, for readers that must survive any of them."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from odradek.admin.wire import SecuredAddress
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.protocol.schema import Response

FETCH_KEY, LIST_OFFSETS_KEY = 1, 2


class Log:
    """A partition of every topic: batches at the offsets of their headers, or whatever `read` returns. An error code is
    the answer to every fetch until it is set to zero; a silent broker does not answer until it is told to."""

    def __init__(self, batches: Sequence[bytes], end_offset: int, aborted: Sequence[tuple[int, int]] = ()) -> None:
        self.batches = batches
        self.end_offset = self.stable_offset = end_offset
        self.aborted = aborted
        self.fetches = 0
        self.error_code = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.client_ids: set[str] = set()

    def read(self, offset: int) -> bytes:
        """From the batch with the offset on, as a broker finds it by its index: it does not look into batches."""
        starts = [struct.unpack_from(">q", batch)[0] for batch in self.batches if len(batch) >= 8]
        first = max((number for number, start in enumerate(starts) if start <= offset), default=0)
        return b"".join(self.batches[first:])

    def answer(self, topic: str, wanted: FetchPartition) -> FetchResponse:
        self.fetches += 1
        data = self.read(wanted.fetch_offset) if wanted.fetch_offset < self.stable_offset else b""
        partition = PartitionData(
            partition_index=wanted.partition,
            error_code=self.error_code,
            high_watermark=self.end_offset,
            last_stable_offset=self.stable_offset,
            aborted_transactions=[AbortedTransaction(producer_id=p, first_offset=o) for p, o in self.aborted],
            records=b"" if self.error_code else data,
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[partition])])

    def list_offsets(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsResponse:
        found = ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index,
            error_code=0,
            timestamp=-1,
            offset=self.end_offset if wanted.timestamp == -1 else 0,
        )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic, partitions=[found])])


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
            log.client_ids.add(frame[10 : 10 + name_bytes].decode())
            answer: Response
            if key == FETCH_KEY:
                (fetched,) = FetchRequest.decode(memoryview(frame), 10 + name_bytes, version).topics
                (partition,) = fetched.partitions
                answer = log.answer(fetched.topic, partition)
            else:
                assert key == LIST_OFFSETS_KEY
                (listed,) = ListOffsetsRequest.decode(memoryview(frame), 10 + name_bytes, version).topics
                answer = log.list_offsets(listed.name, listed.partitions[0])
            log.may_answer.wait()
            body = b"\0\0\0\0" + b"".join(bytes(part) for part in answer.encode(version))  # type: ignore[arg-type]  # no slices
            try:
                connection.sendall(len(body).to_bytes(4, "big") + body)
            except OSError:
                return


def _accept(listener: socket.socket, log: Log) -> None:
    while True:
        try:
            connection, _peer = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, log), daemon=True).start()


@contextmanager
def serving(*logs: Log) -> Iterator[Any]:
    """Stands for the cluster of a reader: a broker for each partition."""
    with ExitStack() as stack:
        partitions = []
        for number, log in enumerate(logs):
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            stack.callback(log.may_answer.set)
            threading.Thread(target=_accept, args=(listener, log), daemon=True).start()
            host, port = listener.getsockname()[:2]
            partitions.append(SimpleNamespace(id=number, leader=SimpleNamespace(host=host, port=port)))
        described = SimpleNamespace(name="t", partitions=partitions)
        ends = {number: log.end_offset for number, log in enumerate(logs)}
        yield SimpleNamespace(
            properties={},
            is_stopped=lambda: False,
            address=lambda host, port: SecuredAddress(host, port, None),
            describe_topic=lambda _name: described,
            choose_partitions=lambda _topic, wanted: list(wanted),
            earliest_offsets=lambda _topic, wanted: dict.fromkeys(wanted, 0),
            latest_offsets=lambda _topic, _wanted: ends,
            last_stable_offsets=lambda _topic, _wanted: ends,
        )
