"""Power goes at any operation of the disk, and takes what was not synced: topics that flush before they acknowledge
lose nothing that they acknowledged. CRASH_ROUNDS makes it longer; `make soak` does."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from odradek.protocol.batch import read_batch_header
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.records import Record, build_batch
from tests.simulation.world import PowerLoss, World

if TYPE_CHECKING:
    from uuid import UUID

LIVES = max(20, int(os.environ.get("CRASH_ROUNDS", "0")))
SEEDS = 3
TOPIC = "flushed"
PARTITION_COUNT = 3
PRODUCERS = 4
MOST_OPERATIONS = 120
EARLIEST = -2
CHECKED_POSITION = 17  # what lies before is the broker's to write

pytestmark = pytest.mark.timeout(120 + LIVES)


class Producers:
    """Several at once in one simulated world, and what they were promised."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.topic_id: UUID | None = None
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self._number = 0

    async def create_topic(self, **more: str) -> None:
        settings = {"flush.messages": "1", "segment.index.bytes": "64", "index.interval.bytes": "0"}
        settings |= {name.replace("_", "."): value for name, value in more.items()}
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in settings.items()]
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITION_COUNT, replication_factor=1, configs=configs)
        answer = await self._world.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        self.topic_id = answer.topics[0].topic_id

    async def produce_until_the_end(self) -> None:
        await asyncio.gather(*(self._produce(number % PARTITION_COUNT) for number in range(PRODUCERS)))

    async def _produce(self, partition: int) -> None:
        while True:
            self._number += 1
            self._world.simulation.clock.advance(100)  # so that housekeeping has its turn
            batch = build_batch([Record(0, self._world.simulation.clock.now_ms(), None, b"%d" % self._number)])
            content = bytes(batch[CHECKED_POSITION:])
            data = PartitionProduceData(index=partition, records=memoryview(batch))
            request = ProduceRequest(
                transactional_id=None,
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
            )
            answer = await self._world.call(request, ProduceResponse, 9)
            reported = answer.responses[0].partition_responses[0]
            assert reported.error_code == ErrorCode.NONE
            place = (partition, reported.base_offset)
            assert place not in self.acknowledged, "an offset was given twice"
            self.acknowledged[place] = content

    async def starts(self) -> list[int]:
        requested = [
            ListOffsetsPartition(partition_index=index, timestamp=EARLIEST) for index in range(PARTITION_COUNT)
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=requested)])
        answer = await self._world.call(request, ListOffsetsResponse, 7)
        return [each.offset for each in answer.topics[0].partitions]

    async def check(self) -> None:
        starts = await self.starts()
        for (partition, offset), content in self.acknowledged.items():
            if offset < starts[partition]:
                continue
            requested = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1)
            topic = FetchTopic(topic=TOPIC, partitions=[requested])
            request = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[topic])
            answer = await self._world.call(request, FetchResponse, 12)
            reported = answer.responses[0].partitions[0]
            assert reported.error_code == ErrorCode.NONE, f"offset {offset} of partition {partition} is gone"
            records = reported.records
            assert isinstance(records, bytes | bytearray | memoryview)
            assert read_batch_header(records).base_offset == offset
            assert records[CHECKED_POSITION:] == content


@pytest.mark.parametrize("seed", range(SEEDS))
def test_retention_takes_whole_segments_and_no_more(seed: int) -> None:
    """Whatever it was doing when the power went: what it keeps is there, and no offset is given again."""
    kept_bytes = 500
    world = World(seed, {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "1000"})
    producers = Producers(world)
    world.run(producers.create_topic(retention_bytes=str(kept_bytes)))
    disk = world.simulation.disk
    for _ in range(LIVES):
        disk.operations_left, disk.interruption = world.chance.randrange(2 * MOST_OPERATIONS), PowerLoss()
        with suppress(PowerLoss):
            world.run(producers.produce_until_the_end())
        world.lose_power()
        world.run(producers.check())
        for partition, start in enumerate(world.run(producers.starts())):
            later = [data for (index, offset), data in producers.acknowledged.items()
                     if index == partition and offset >= start]  # fmt: skip
            written = sum(index == partition for index, _ in producers.acknowledged)
            assert len(later) == written or sum(map(len, later)) + CHECKED_POSITION * len(later) >= kept_bytes
    assert max(world.run(producers.starts())) > 0
    world.close()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_flushed_and_acknowledged_survives(seed: int) -> None:
    world = World(seed, {"log.flush.offset.checkpoint.interval.ms": "10"})
    producers = Producers(world)
    world.run(producers.create_topic())
    disk = world.simulation.disk
    for _ in range(LIVES):
        disk.operations_left, disk.interruption = world.chance.randrange(MOST_OPERATIONS), PowerLoss()
        with suppress(PowerLoss):
            world.run(producers.produce_until_the_end())
        world.lose_power()
        world.run(producers.check())
    assert len(producers.acknowledged) > LIVES
    world.close()
