"""The raw engine of `odradek bench produce`: the same encoded batches over and over, several requests in flight."""

from __future__ import annotations

import selectors
import time
from collections import deque
from typing import TYPE_CHECKING

from odradek.cli.bench.raw_connection import CLIENT_ID, CORRELATION_POSITION, RawConnection
from odradek.cli.bench.results import Result, Tick
from odradek.conventions.failures import Failure
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import encode_request_frame
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.admin.cluster import TopicDescription
    from odradek.cli.bench.workload import ProduceWorkload

VERSION = 9  # the newest version that names topics, and that every supported broker has
RESPONSE_HEADER_BYTES = 5
RECORD_OVERHEAD_BYTES = 12
LARGEST_BATCH_BYTES = 900_000
ACKS = {"0": 0, "1": 1, "all": -1}
STALL_S = 30.0


class ProduceConnection(RawConnection):
    """One connection with its partitions."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.frames: list[bytearray] = []
        self.sent_at: deque[float] = deque()
        self.turn = 0


def batch_of(workload: ProduceWorkload) -> tuple[bytes, int]:
    """One encoded batch and its number of records. Batches have the requested size, within the broker's limit."""
    limit = min(workload.batch_size, LARGEST_BATCH_BYTES)
    count = max(1, limit // (len(workload.value) + RECORD_OVERHEAD_BYTES))
    now_ms = int(time.time() * 1000)
    records = [Record(offset, now_ms, None, workload.value) for offset in range(count)]
    return bytes(build_batch(records, compression=Compression[workload.compression.upper()])), count


def open_connections(description: TopicDescription, workload: ProduceWorkload, batch: bytes) -> list[ProduceConnection]:
    """Open `connections` to each leader, and distribute its partitions among them."""
    by_leader: dict[tuple[str, int], list[int]] = {}
    for partition in description.partitions:
        if partition.leader is None:
            raise Failure(f"topic {description.name}, partition {partition.id} has no leader")
        by_leader.setdefault((partition.leader.host, partition.leader.port), []).append(partition.id)
    connections = []
    for (host, port), partitions in by_leader.items():
        for first in range(min(workload.connections, len(partitions))):
            connection = ProduceConnection(host, port)
            for index in partitions[first :: workload.connections]:
                data = TopicProduceData(
                    name=description.name,
                    partition_data=[PartitionProduceData(index=index, records=memoryview(batch))],
                )
                request = ProduceRequest(acks=ACKS[workload.acks], timeout_ms=30_000, topic_data=[data])
                connection.frames.append(encode_request_frame(request, VERSION, CLIENT_ID))
            connections.append(connection)
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
            for answer in connection.answers():
                check_answer(answer)
                self.latencies_ms.append((time.perf_counter() - connection.sent_at.popleft()) * 1000)
        if not mask & selectors.EVENT_WRITE:
            return
        connection.send_more()
        now = time.perf_counter()
        while self._may_send(connection, now) and not self.workload.is_over(self.sent, now - self.began_at):
            frame = connection.frames[connection.turn % len(connection.frames)]
            connection.turn += 1
            self.requests += 1
            frame[CORRELATION_POSITION : CORRELATION_POSITION + 4] = (self.requests & 0x7FFFFFFF).to_bytes(4, "big")
            connection.send(frame)
            self.sent += self.batch_records
            if self.workload.acks != "0":
                connection.sent_at.append(now)
            elif connection.is_sending:
                return


def check_answer(answer: memoryview) -> None:
    for topic in ProduceResponse.decode(answer, RESPONSE_HEADER_BYTES, VERSION).responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                name = ErrorCode(partition.error_code).name
                raise Failure(f"{topic.name}, partition {partition.index}: {partition.error_message or name} ({name})")


def run_raw(
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
    sent = producer.sent
    size_bytes = sent * len(workload.value)
    return Result("produce", "raw", sent, size_bytes, seconds, producer.latencies_ms, "batches acknowledged after")
