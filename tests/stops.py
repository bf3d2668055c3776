"""The modules that a request passes in a broker, in the order in which it reaches them: `python -m tests.stops`.

The broker runs on the simulated host: the connection before its dispatcher, and other replicas, are not there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import odradek
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records import Record, build_batch
from tests.handlers.brokers import SimulatedBroker

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ROOT = Path(odradek.__file__).parent


def stops_of(request: Callable[[], object]) -> list[str]:
    """Modules of ours whose functions are called, without those of the codec."""
    found: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            name = path.relative_to(ROOT).with_suffix("").as_posix()
            if not name.startswith("protocol/"):
                found.setdefault(name)

    sys.setprofile(enter)
    try:
        request()
    finally:
        sys.setprofile(None)
    return list(found)


def main() -> None:
    broker = SimulatedBroker(offsets_topic_num_partitions="1")
    try:
        for name, request in ways(broker).items():
            request()  # what is done once is no part of the way
            stops = stops_of(request)
            print(f"{name}: {len(stops)} stops\n  {' → '.join(stops)}")
    finally:
        broker.close()


def ways(broker: SimulatedBroker) -> dict[str, Callable[[], object]]:
    numbers = iter(range(100))

    def create() -> object:
        topic = CreatableTopic(name=f"t{next(numbers)}", num_partitions=1, replication_factor=1)
        return broker.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), CreateTopicsResponse)

    def produce() -> object:
        batch = memoryview(bytearray(build_batch([Record(0, 0, None, b"value")])))
        data = [TopicProduceData(name="t0", partition_data=[PartitionProduceData(index=0, records=batch)])]
        return broker.call(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data), ProduceResponse, 9)

    def fetch() -> object:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        topics = [FetchTopic(topic="t0", partitions=[partition])]
        return broker.call(FetchRequest(max_wait_ms=0, min_bytes=1, topics=topics), FetchResponse, 12)

    broker.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), FindCoordinatorResponse, 4)
    broker.run(asyncio.sleep(5))  # a poll's pause: the topic of the coordinator is created and loaded

    def commit() -> object:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name="t0", partitions=[partition])]
        return broker.call(OffsetCommitRequest(group_id="g", topics=topics), OffsetCommitResponse, 8)

    return {"CreateTopics": create, "produce with acks=all": produce, "fetch": fetch, "commit": commit}


if __name__ == "__main__":
    main()
