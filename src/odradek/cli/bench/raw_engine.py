"""The raw engine of `odradek bench`: requests that are encoded once, on non-blocking sockets, without a client.

It takes less CPU than a client. A produce request is sent over and over, with several in flight; the responses to
fetches are read by their batch headers alone.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, cast

from odradek.admin.errors import check
from odradek.cli.bench.workload import ProduceWorkload, Result, Tick
from odradek.conventions.failures import Failure
from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.framing import encode_request_frame
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from odradek.admin.cluster import TopicDescription
    from odradek.admin.records.record_reader import PartitionRange

CLIENT_ID = b"odradek-bench"
CORRELATION_POSITION = 8
RECEIVE_BYTES = 1 << 20
RESPONSE_HEADER_BYTES = 5
STALL_S = 30.0

PRODUCE_VERSION = 9  # the newest version that names topics, and that every supported broker has
RECORD_OVERHEAD_BYTES = 12
LARGEST_BATCH_BYTES = 900_000
ACKS = {"0": 0, "1": 1, "all": -1}

FETCH_VERSION = 12  # the newest that names topics
MAX_WAIT_MS = 500
MAX_BYTES = 64 * 1024 * 1024


class RawConnection:
    """Sends frames and yields responses. The owner waits for the socket with a selector."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._unsent = memoryview(b"")
        self._received = bytearray(RECEIVE_BYTES)
        self._start = 0
        self._end = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    @property
    def is_sending(self) -> bool:
        return len(self._unsent) > 0

    def send(self, frame: bytearray | bytes) -> None:
        """Begin to send a frame, after the previous one was sent. `send_more` sends the rest."""
        self._unsent = memoryview(frame)
        self.send_more()

    def send_more(self) -> None:
        while self._unsent:
            try:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
            except BlockingIOError:
                return

    def responses(self) -> Iterator[memoryview]:
        """Receive once, and yield every complete response without its length. Each is valid until the next one."""
        self._make_room()
        try:
            with memoryview(self._received) as buffer:
                count = self.socket.recv_into(buffer[self._end :])
        except BlockingIOError:
            return
        if not count:
            raise ConnectionResetError("the broker closed the connection")
        self._end += count
        while self._end - self._start >= 4:
            size_bytes = int.from_bytes(self._received[self._start : self._start + 4], "big")
            after = self._start + 4 + size_bytes
            if after > self._end:
                return
            with memoryview(self._received) as buffer, buffer[self._start + 4 : after] as response:
                yield response
            self._start = after

    def _make_room(self) -> None:
        """Move the unread bytes to the front, and grow to hold a response that has begun."""
        left = self._end - self._start
        if self._start:
            self._received[:left] = self._received[self._start : self._end]
            self._start, self._end = 0, left
        if left >= 4:
            needed = 4 + int.from_bytes(self._received[:4], "big")
            if needed > len(self._received):
                self._received.extend(bytes(needed - len(self._received)))


def spread(
    description: TopicDescription, partitions: Collection[int], connections: int
) -> Iterator[tuple[str, int, list[int]]]:
    """Yields host, port and partitions of each connection: at most `connections` to each leader."""
    led: dict[tuple[str, int], list[int]] = {}
    for partition in description.partitions:
        if partition.id in partitions:
            if partition.leader is None:
                raise Failure(f"topic {description.name}, partition {partition.id} has no leader")
            led.setdefault((partition.leader.host, partition.leader.port), []).append(partition.id)
    for (host, port), ids in led.items():
        for first in range(min(connections, len(ids))):
            yield host, port, ids[first::connections]


class ProduceConnection(RawConnection):
    """One connection with a frame for each of its partitions."""

    def __init__(self, host: str, port: int, frames: list[bytearray]) -> None:
        super().__init__(host, port)
        self.frames = itertools.cycle(frames)
        self.sent_at: deque[float] = deque()


def batch_of(workload: ProduceWorkload) -> tuple[bytes, int]:
    """One encoded batch and its number of records. Batches have the requested size, within the broker's limit."""
    limit = min(workload.batch_size, LARGEST_BATCH_BYTES)
    count = max(1, limit // (len(workload.value) + RECORD_OVERHEAD_BYTES))
    now_ms = int(time.time() * 1000)
    records = [Record(offset, now_ms, None, workload.value) for offset in range(count)]
    return bytes(build_batch(records, compression=Compression[workload.compression.upper()])), count


def open_connections(description: TopicDescription, workload: ProduceWorkload, batch: bytes) -> list[ProduceConnection]:
    """Open `connections` to each leader, and distribute its partitions among them."""
    connections = []
    for host, port, partitions in spread(
        description, {each.id for each in description.partitions}, workload.connections
    ):
        frames = []
        for index in partitions:
            data = PartitionProduceData(index=index, records=memoryview(batch))
            topics = [TopicProduceData(name=description.name, partition_data=[data])]
            request = ProduceRequest(acks=ACKS[workload.acks], timeout_ms=30_000, topic_data=topics)
            frames.append(encode_request_frame(request, PRODUCE_VERSION, CLIENT_ID))
        connections.append(ProduceConnection(host, port, frames))
    return connections


class RawProducer:
    """Keeps every connection busy until all records are sent, then waits for the outstanding responses."""

    def __init__(self, workload: ProduceWorkload, connections: list[ProduceConnection], batch_records: int) -> None:
        self.workload = workload
        self.connections = connections
        self.batch_records = batch_records
        self.sent = 0
        self.requests = 0
        self.latencies_ms: list[float] = []
        self.began_at = time.perf_counter()

    def run(self, tick: Tick) -> None:
        """Send everything, and wait for every response."""
        with selectors.DefaultSelector() as selector:
            for connection in self.connections:
                selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, connection)
            received_at = time.perf_counter()
            while True:
                now = time.perf_counter()
                is_over = self.workload.is_over(self.sent, now - self.began_at)
                if is_over and not any(c.is_sending or c.sent_at for c in self.connections):
                    return
                for connection in self.connections:
                    can_send = not is_over and self._may_send(connection, now)
                    wants = selectors.EVENT_WRITE if can_send or connection.is_sending else 0
                    selector.modify(connection, selectors.EVENT_READ | wants, connection)
                events = selector.select(0.01)
                if events:
                    received_at = now
                elif now - received_at > STALL_S:
                    raise Failure(f"the broker has not answered for {STALL_S:.0f} s")
                for key, mask in events:
                    self._serve(key.data, mask)
                tick(self.sent)

    def _may_send(self, connection: ProduceConnection, now: float) -> bool:
        workload = self.workload
        if connection.is_sending or len(connection.sent_at) >= workload.in_flight:
            return False
        return workload.rate is None or self.sent <= (now - self.began_at) * workload.rate

    def _serve(self, connection: ProduceConnection, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            for response in connection.responses():
                check_response(response)
                self.latencies_ms.append((time.perf_counter() - connection.sent_at.popleft()) * 1000)
        if not mask & selectors.EVENT_WRITE:
            return
        connection.send_more()
        now = time.perf_counter()
        while self._may_send(connection, now) and not self.workload.is_over(self.sent, now - self.began_at):
            frame = next(connection.frames)
            self.requests += 1
            frame[CORRELATION_POSITION : CORRELATION_POSITION + 4] = (self.requests & 0x7FFFFFFF).to_bytes(4, "big")
            connection.send(frame)
            self.sent += self.batch_records
            if self.workload.acks != "0":
                connection.sent_at.append(now)
            elif connection.is_sending:
                return


def check_response(response: memoryview) -> None:
    for topic in ProduceResponse.decode(response, RESPONSE_HEADER_BYTES, PRODUCE_VERSION).responses:
        for each in topic.partition_responses:
            check(each.error_code, each.error_message, f"{topic.name}, partition {each.index}")


def produce_raw(
    description: TopicDescription, workload: ProduceWorkload, tick: Tick, settle: Callable[[int], None]
) -> Result:
    """Only complete batches are sent, so slightly more records than requested may be written."""
    batch, batch_records = batch_of(workload)
    connections = open_connections(description, workload, batch)
    try:
        producer = RawProducer(workload, connections, batch_records)
        producer.run(tick)
        settle(producer.sent)
        seconds = time.perf_counter() - producer.began_at
    finally:
        for connection in connections:
            connection.close()
    size_bytes = producer.sent * len(workload.value)
    latencies_ms = producer.latencies_ms
    return Result("produce", "raw", producer.sent, size_bytes, seconds, latencies_ms, "batches acknowledged after")


class FetchConnection(RawConnection):
    """One connection with its partitions, their next offsets and their ends. One fetch is in flight."""

    def __init__(self, host: str, port: int, topic: str, fetch_size: int, ranges: Sequence[PartitionRange]) -> None:
        super().__init__(host, port)
        self.topic = topic
        self.fetch_size = fetch_size
        self.offsets = {each.partition: each.start_offset for each in ranges}
        self.ends = {each.partition: each.end_offset for each in ranges}
        self.records = 0
        self.size_bytes = 0

    def send_fetch(self) -> None:
        """Fetch every partition that is not at its end. Partitions rotate, so that each is first in turn."""
        partitions = [
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=self.fetch_size)
            for partition, offset in self.offsets.items()
        ]
        first = next(iter(self.offsets))
        self.offsets[first] = self.offsets.pop(first)
        topics = [FetchTopic(topic=self.topic, partitions=partitions)]
        request = FetchRequest(max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES, topics=topics)
        self.send(encode_request_frame(request, FETCH_VERSION, CLIENT_ID))

    def serve(self) -> None:
        """Take the response if it is complete, and send the next fetch until every partition is at its end."""
        for frame in self.responses():
            response = FetchResponse.decode(frame, RESPONSE_HEADER_BYTES, FETCH_VERSION)
            check(response.error_code, None, self.topic)
            for partition in (each for topic in response.responses for each in topic.partitions):
                check(partition.error_code, None, f"{self.topic}, partition {partition.partition_index}")
                if partition.records is not None:
                    self._count(partition.partition_index, cast("memoryview", partition.records))
            if self.offsets:
                self.send_fetch()

    def _count(self, partition: int, records: memoryview) -> None:
        """Count the complete batches of a response by their headers. An incomplete last batch is fetched again."""
        position, size_bytes = 0, len(records)
        offset = self.offsets[partition]
        while size_bytes - position >= HEADER_SIZE_BYTES:
            header = read_batch_header(records, position)
            if position + header.size_bytes > size_bytes:
                break
            self.records += header.record_count
            offset = header.last_offset + 1
            position += header.size_bytes
        self.size_bytes += position
        self.offsets[partition] = offset
        if offset >= self.ends[partition]:
            del self.offsets[partition]


def consume_raw(
    description: TopicDescription, *, ranges: Sequence[PartitionRange], total: int, fetch_size: int,
    duration_ms: int | None, connection_count: int, tick: Tick,
) -> Result:  # fmt: skip
    """Whole batches are counted, so that slightly more records than asked for may be read."""
    by_partition = {each.partition: each for each in ranges}
    connections = [
        FetchConnection(host, port, description.name, fetch_size, [by_partition[each] for each in partitions])
        for host, port, partitions in spread(description, by_partition.keys(), connection_count)
    ]
    began_at = time.perf_counter()
    count = 0
    try:
        with selectors.DefaultSelector() as selector:
            for connection in connections:
                selector.register(connection, selectors.EVENT_READ, connection)
                connection.send_fetch()
            while selector.get_map() and count < total:
                if duration_ms is not None and (time.perf_counter() - began_at) * 1000 >= duration_ms:
                    break
                events = selector.select(STALL_S)
                if not events:
                    raise Failure(f"the broker has not answered for {STALL_S:.0f} s")
                for key, _mask in events:
                    key.data.serve()
                    if not key.data.offsets:
                        selector.unregister(key.fileobj)
                count = sum(connection.records for connection in connections)
                tick(count)
        seconds = time.perf_counter() - began_at
    finally:
        for connection in connections:
            connection.close()
    return Result("consume", "raw", count, sum(c.size_bytes for c in connections), seconds)
