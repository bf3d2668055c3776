"""The raw engine of `odradek bench consume`: fetches whose answers are read by their batch headers alone."""

from __future__ import annotations

import selectors
import time
from typing import TYPE_CHECKING, cast

from odradek.cli.bench.raw_connection import CLIENT_ID, RawConnection
from odradek.cli.bench.results import Result, Tick
from odradek.conventions.failures import Failure
from odradek.protocol.batch import HEADER_SIZE_BYTES, read_batch_header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import encode_request_frame
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.admin.cluster import TopicDescription
    from odradek.admin.records.record_reader import PartitionRange

VERSION = 12  # the newest that names topics
RESPONSE_HEADER_BYTES = 5
MAX_WAIT_MS = 500
MAX_BYTES = 64 * 1024 * 1024
STALL_S = 30.0


class FetchConnection(RawConnection):
    """One connection with its partitions, their next offsets and their ends. One fetch is in flight."""

    def __init__(self, host: str, port: int, topic: str, fetch_size: int) -> None:
        super().__init__(host, port)
        self.topic = topic
        self.fetch_size = fetch_size
        self.offsets: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.records = 0
        self.size_bytes = 0

    def ask(self) -> None:
        """Fetch every partition that is not at its end. Partitions rotate, so that each is first in turn."""
        partitions = [
            FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=self.fetch_size)
            for partition, offset in self.offsets.items()
        ]
        first = next(iter(self.offsets))
        self.offsets[first] = self.offsets.pop(first)
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            topics=[FetchTopic(topic=self.topic, partitions=partitions)],
        )
        self.send(encode_request_frame(request, VERSION, CLIENT_ID))

    def take(self, answer: memoryview) -> None:
        response = FetchResponse.decode(answer, RESPONSE_HEADER_BYTES, VERSION)
        check(response.error_code, self.topic)
        for topic in response.responses:
            for partition in topic.partitions:
                check(partition.error_code, f"{self.topic}, partition {partition.partition_index}")
                if partition.records is not None:
                    self._count(partition.partition_index, cast("memoryview", partition.records))

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


def check(error_code: int, subject: str) -> None:
    if error_code:
        raise Failure(f"{subject}: {ErrorCode(error_code).name}")


def open_connections(
    description: TopicDescription, ranges: Sequence[PartitionRange], fetch_size: int, count: int
) -> list[FetchConnection]:
    leaders = {partition.id: partition.leader for partition in description.partitions}
    by_leader: dict[tuple[str, int], list[PartitionRange]] = {}
    for each in ranges:
        leader = leaders[each.partition]
        if leader is None:
            raise Failure(f"topic {description.name}, partition {each.partition} has no leader")
        by_leader.setdefault((leader.host, leader.port), []).append(each)
    connections = []
    for (host, port), led in by_leader.items():
        for first in range(min(count, len(led))):
            connection = FetchConnection(host, port, description.name, fetch_size)
            connection.offsets = {r.partition: r.start_offset for r in led[first::count]}
            connection.ends = {r.partition: r.end_offset for r in led[first::count]}
            connections.append(connection)
    return connections


def run_raw(
    description: TopicDescription,
    *,
    ranges: Sequence[PartitionRange],
    total: int,
    fetch_size: int,
    duration_ms: int | None,
    connection_count: int,
    tick: Tick,
) -> Result:
    """Whole batches are counted, so that slightly more records than asked for may be read."""
    connections = open_connections(description, ranges, fetch_size, connection_count)
    began_at = time.perf_counter()
    count = 0
    try:
        with selectors.DefaultSelector() as selector:
            for connection in connections:
                selector.register(connection, selectors.EVENT_READ, connection)
                connection.ask()
            while selector.get_map() and count < total:
                if duration_ms is not None and (time.perf_counter() - began_at) * 1000 >= duration_ms:
                    break
                events = selector.select(STALL_S)
                if not events:
                    raise Failure(f"the broker has not answered for {STALL_S:.0f} s")
                for key, _mask in events:
                    serve(key.data, selector)
                count = sum(connection.records for connection in connections)
                tick(count)
        seconds = time.perf_counter() - began_at
    finally:
        for connection in connections:
            connection.close()
    return Result("consume", "raw", count, sum(c.size_bytes for c in connections), seconds)


def serve(connection: FetchConnection, selector: selectors.BaseSelector) -> None:
    for answer in connection.answers():
        connection.take(answer)
        if connection.offsets:
            connection.ask()
        else:
            selector.unregister(connection)
