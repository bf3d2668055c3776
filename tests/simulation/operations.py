"""What a client may do to the simulated broker, each step checked against the model at once."""

from odradek.protocol.batch import read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records import Record, build_batch
from tests.simulation.world import ModelBatch, ModelPartition, ModelTopic, World

LATEST, EARLIEST = -1, -2
CONTENT_POSITION = 17  # base offset, length, leader epoch and magic lie before the CRC


class Operations:
    """Random steps in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance
        self._producer_ids: list[int] = []

    async def step(self) -> None:
        await self._chance.choices(
            [self.produce, self.fetch, self.list_offsets, self.produce_again, self.create_topic, self.delete_records,
             self.new_producer, self.add_partitions, self.delete_topic, self.describe, self.long_poll,
             self.look_up_time, self.pass_time],
            [40, 30, 8, 5, 4, 3, 2, 1, 2, 2, 3, 4, 4],
        )[0]()  # fmt: skip

    # Steps

    async def create_topic(self) -> None:
        name = f"topic-{self._chance.randint(1, 6)}"  # few names, so that they are used again after a deletion
        if name in self._world.topics:
            return
        flushes = self._chance.random() < 0.3
        configs = {
            "segment.index.bytes": self._chance.choice(["64", "10485760"]),  # a small index rolls segments often
            "index.interval.bytes": self._chance.choice(["0", "200", "4096"]),
        }
        if flushes:
            configs["flush.messages"] = "1"
        count = self._chance.randint(1, 3)
        topic = CreatableTopic(
            name=name,
            num_partitions=count,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        answer = await self._world.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse, 7)
        assert answer.topics[0].error_code == ErrorCode.NONE, answer
        partitions = [ModelPartition() for _ in range(count)]
        self._world.topics[name] = ModelTopic(answer.topics[0].topic_id, flushes, partitions)

    async def delete_topic(self) -> None:
        if len(self._world.topics) < 3:
            return
        name = self._chance.choice(list(self._world.topics))
        answer = await self._world.call(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
        assert answer.responses[0].error_code == ErrorCode.NONE
        del self._world.topics[name]

    async def add_partitions(self) -> None:
        picked = self._pick()
        if picked is None or len(picked[1].partitions) > 4:
            return
        name, topic, _ = picked
        requested = CreatePartitionsTopic(name=name, count=len(topic.partitions) + 1, assignments=None)
        answer = await self._world.call(CreatePartitionsRequest(topics=[requested]), CreatePartitionsResponse, 3)
        assert answer.results[0].error_code == ErrorCode.NONE
        topic.partitions.append(ModelPartition())

    async def new_producer(self) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        answer = await self._world.call(request, InitProducerIdResponse, 4)
        assert answer.producer_id not in self._producer_ids, "a producer id was given twice"
        self._producer_ids.append(answer.producer_id)

    async def produce(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        partition = topic.partitions[index]
        producer = None
        if self._producer_ids and self._chance.random() < 0.5:
            producer_id = self._chance.choice(self._producer_ids)
            producer = (producer_id, self._next_sequence(partition, producer_id))
        count = self._chance.randint(1, 8)
        batch = self._build(count, producer)
        content = bytes(batch[CONTENT_POSITION:])
        offset = partition.end_offset
        # Known before it is sent: after a power loss in the middle it may be there, whole, or not.
        partition.batches.append(ModelBatch(offset, offset + count - 1, content, producer, self._now_ms()))
        partition.end_offset += count
        answer = await self._send(name, topic, index, batch)
        assert answer.error_code == ErrorCode.NONE, answer
        assert answer.base_offset == offset
        if topic.flushes_each_append:
            partition.durable_end_offset = partition.end_offset

    async def produce_again(self) -> None:
        """A retry of the newest idempotent batch is answered with its first offset and stored once."""
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        partition = topic.partitions[index]
        known = [batch for batch in partition.batches if batch.producer is not None]
        if not known or known[-1].last_offset < partition.start_offset:
            return
        newest = known[-1]
        assert newest.producer is not None
        again = bytearray(CONTENT_POSITION) + newest.content
        again[8:12] = (len(again) - 12).to_bytes(4, "big")
        again[16] = 2
        answer = await self._send(name, topic, index, again)
        assert answer.error_code == ErrorCode.NONE, answer
        assert answer.base_offset == newest.base_offset

    async def fetch(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        partition = topic.partitions[index]
        offset = self._chance.randint(partition.start_offset, partition.end_offset)
        records = await self._fetch(name, topic, index, offset, self._chance.choice([1, 300, 5000, 1 << 20]))
        wanted = [batch for batch in partition.batches if batch.last_offset >= offset]
        assert bool(wanted) == bool(records)
        compare(records, wanted)

    async def long_poll(self) -> None:
        """A fetch at the end waits, and a produce to that partition ends it with the new batch."""
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        partition = topic.partitions[index]
        loop = self._world.simulation.loop
        waiting = loop.create_task(self._fetch(name, topic, index, partition.end_offset, 1 << 20, max_wait_ms=10_000))
        began = loop.time()
        batch = self._build(1, None)
        content = bytes(batch[CONTENT_POSITION:])
        offset = partition.end_offset
        partition.batches.append(ModelBatch(offset, offset, content, None, self._now_ms()))
        partition.end_offset += 1
        answer = await self._send(name, topic, index, batch)
        assert answer.base_offset == offset
        if topic.flushes_each_append:
            partition.durable_end_offset = partition.end_offset
        compare(await waiting, partition.batches[-1:])
        assert loop.time() - began < 10

    async def list_offsets(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        start, end = await self.offsets(name, index)
        assert (start, end) == (topic.partitions[index].start_offset, topic.partitions[index].end_offset)

    async def look_up_time(self) -> None:
        """The first record that is not older than a time, which every record of the model has as its own."""
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        partition = topic.partitions[index]
        now_ms = self._now_ms()
        timestamp = self._chance.randint(now_ms - 200_000, now_ms)
        requested = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[requested])])
        answer = await self._world.call(request, ListOffsetsResponse, 7)
        found = answer.topics[0].partitions[0]
        wanted = [batch for batch in partition.batches if batch.timestamp >= timestamp]
        offsets = [max(batch.base_offset, partition.start_offset) for batch in wanted]
        expected = [offset for offset, batch in zip(offsets, wanted, strict=True) if offset <= batch.last_offset]
        assert found.offset == (expected[0] if expected else -1)

    async def pass_time(self) -> None:
        """So that housekeeping flushes, writes checkpoints and removes files."""
        self._world.simulation.clock.advance(self._chance.randint(1, 90_000))

    async def delete_records(self) -> None:
        picked = self._pick()
        if picked is None:
            return
        name, topic, index = picked
        partition = topic.partitions[index]
        offset = self._chance.randint(partition.start_offset, partition.end_offset)
        requested = DeleteRecordsPartition(partition_index=index, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[requested])])
        answer = await self._world.call(request, DeleteRecordsResponse, 2)
        assert answer.topics[0].partitions[0].low_watermark == offset
        partition.start_offset = offset

    async def describe(self) -> None:
        """Topics, ids and partition counts are exactly the acknowledged ones, in every life."""
        answer = await self._world.call(MetadataRequest(topics=None), MetadataResponse, 12)
        reported = {topic.name: (topic.topic_id, len(topic.partitions)) for topic in answer.topics}
        assert reported == {name: (topic.topic_id, len(topic.partitions)) for name, topic in self._world.topics.items()}
        self._world.cluster_id = self._world.cluster_id or answer.cluster_id or ""
        assert answer.cluster_id == self._world.cluster_id

    # After a crash

    async def reconcile(self) -> None:
        """What is left is a prefix of what was acknowledged, and holds all that was flushed; the model follows."""
        await self.describe()
        for name, topic in self._world.topics.items():
            for index, partition in enumerate(topic.partitions):
                start, end = await self.offsets(name, index)
                assert start == min(partition.start_offset, end) or end < partition.start_offset
                assert partition.durable_end_offset <= end <= max(partition.end_offset, start)
                partition.cut(end)
                partition.start_offset = start
                partition.durable_end_offset = end
                offset = start
                while offset < end:
                    records = await self._fetch(name, topic, index, offset, 1 << 20)
                    offset = compare(records, [batch for batch in partition.batches if batch.last_offset >= offset])

    async def offsets(self, name: str, index: int) -> tuple[int, int]:
        found = []
        for timestamp in (EARLIEST, LATEST):
            requested = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
            request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[requested])])
            answer = await self._world.call(request, ListOffsetsResponse, self._chance.randint(1, 11))
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
            found.append(answer.topics[0].partitions[0].offset)
        return found[0], found[1]

    # Parts

    def _pick(self) -> tuple[str, ModelTopic, int] | None:
        if not self._world.topics:
            return None
        name = self._chance.choice(list(self._world.topics))
        topic = self._world.topics[name]
        return name, topic, self._chance.randrange(len(topic.partitions))

    def _now_ms(self) -> int:
        return self._world.simulation.clock.now_ms()

    def _next_sequence(self, partition: ModelPartition, producer_id: int) -> int:
        for batch in reversed(partition.batches):
            if batch.producer is not None and batch.producer[0] == producer_id:
                return batch.producer[1] + batch.last_offset - batch.base_offset + 1
        return 0

    def _build(self, count: int, producer: tuple[int, int] | None) -> bytearray:
        now_ms = self._now_ms()
        records = [
            Record(offset=i, timestamp=now_ms, key=b"k", value=self._chance.randbytes(self._chance.randint(0, 120)))
            for i in range(count)
        ]
        producer_id, sequence = producer or (-1, -1)
        return build_batch(
            records,
            compression=self._chance.choice(list(Compression)),
            producer_id=producer_id,
            producer_epoch=0 if producer else -1,
            base_sequence=sequence,
        )

    async def _send(self, name: str, topic: ModelTopic, index: int, batch: bytearray) -> PartitionProduceResponse:
        version = self._chance.randint(7, 13)
        data = PartitionProduceData(index=index, records=memoryview(batch))
        named = TopicProduceData(name=name, topic_id=topic.topic_id, partition_data=[data])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[named])
        answer = await self._world.call(request, ProduceResponse, version)
        return answer.responses[0].partition_responses[0]

    async def _fetch(
        self, name: str, topic: ModelTopic, index: int, offset: int, max_bytes: int, *, max_wait_ms: int = 0
    ) -> bytes:
        partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        wanted = FetchTopic(topic=name, topic_id=topic.topic_id, partitions=[partition])
        request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, session_epoch=-1, topics=[wanted])
        answer = await self._world.call(request, FetchResponse, self._chance.randint(4, 18))
        assert answer.error_code == ErrorCode.NONE
        reported = answer.responses[0].partitions[0]
        assert reported.error_code == ErrorCode.NONE, reported
        assert reported.high_watermark >= offset
        assert isinstance(reported.records, memoryview)
        return bytes(reported.records)


def compare(records: bytes, wanted: list[ModelBatch]) -> int:
    """Whole batches come back as they were sent, the last one may be cut; the offset after the last whole one."""
    view, position, next_offset = memoryview(records), 0, -1
    for batch in wanted:
        if len(view) - position < 12:
            break
        size = 12 + int.from_bytes(view[position + 8 : position + 12], "big")
        if len(view) - position < size:
            assert position > 0, "the first batch is always whole"
            break
        header = read_batch_header(view, position)
        assert (header.base_offset, header.last_offset) == (batch.base_offset, batch.last_offset)
        assert view[position + CONTENT_POSITION : position + size] == batch.content
        position += size
        next_offset = header.last_offset + 1
    else:
        assert position == len(view), "there is more than was ever sent"
    return next_offset
