"""Requests as the tests of this folder write them: one call for each thing that a client may want."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from odradek.protocol.batch import read_batch_header
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records import Record, build_batch
from tests.handlers.brokers import AnyBroker, Pending

NOW_MS = 1_700_000_000_000
NO_ID = UUID(int=0)
BY_NAME = 12  # the last version of Produce and Fetch that names topics
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4


# --- topics


def create_topic(broker: AnyBroker, name: str, partitions: int = 1, **configs: str) -> UUID:
    requested = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    made = broker.call(CreateTopicsRequest(topics=[requested], timeout_ms=10_000), CreateTopicsResponse).topics[0]
    assert made.error_code == ErrorCode.NONE, made
    # Apache Kafka tells of a leader before it leads.
    broker.settle(lambda: all(list_offset(broker, name, -2, partition=i).error_code == 0 for i in range(partitions)))
    return made.topic_id


def delete_topic(broker: AnyBroker, name: str) -> None:
    deleted = broker.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), DeleteTopicsResponse, 4)
    assert deleted.responses[0].error_code == ErrorCode.NONE
    broker.settle(lambda: describe_topic(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def describe_topic(broker: AnyBroker, name: str) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    return broker.call(request, MetadataResponse).topics[0]


def alter_configs(broker: AnyBroker, kind: int, resource: str, **values: str | None) -> ErrorCode:
    """None takes a setting away."""
    configs = [
        AlterableConfig(name=name.replace("_", "."), config_operation=1 if value is None else 0, value=value)
        for name, value in values.items()
    ]
    requested = AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)
    answer = broker.call(IncrementalAlterConfigsRequest(resources=[requested]), IncrementalAlterConfigsResponse)
    return ErrorCode(answer.responses[0].error_code)


# --- batches


def batch(
    *values: bytes,
    key: bytes | None = b"key",
    timestamps: Sequence[int] | None = None,
    compression: Compression = Compression.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytearray:
    """`producer` is its id, its epoch and the sequence of the first record."""
    records = [
        Record(offset, timestamps[offset] if timestamps else NOW_MS + offset, key, value)
        for offset, value in enumerate(values or (b"value",))
    ]
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        records,
        compression=compression,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


FIVE = bytes(batch(*[b"value" * 20] * 5))


def topic_of_fives(broker: AnyBroker, name: str) -> str:
    """Partition 0 has offsets 0 to 19 in four batches, partition 1 offsets 0 to 4 in one, partition 2 nothing."""
    create_topic(broker, name, 3)
    for partition in (0, 0, 0, 0, 1):
        assert produce(broker, name, FIVE, partition=partition).error_code == ErrorCode.NONE
    return name


def base_offsets(records: object) -> list[int]:
    """Of the whole batches; the last may be cut."""
    assert isinstance(records, memoryview | bytes)
    found, position = [], 0
    while len(records) - position >= 61:
        header = read_batch_header(records, position)
        position += header.size_bytes
        if position > len(records):
            break
        found.append(header.base_offset)
    return found


# --- produce and fetch


def produce(
    broker: AnyBroker,
    topic: str | UUID,
    records: bytes | bytearray | None = None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int | None = None,
    transactional_id: str | None = None,
) -> PartitionProduceResponse:
    request = produce_request(
        [(topic, partition, batch() if records is None else records)], acks=acks, transactional_id=transactional_id
    )
    chosen = version or (BY_NAME if isinstance(topic, str) else 13)
    return broker.call(request, ProduceResponse, chosen).responses[0].partition_responses[0]


def produce_request(
    wanted: Iterable[tuple[str | UUID, int, bytes | bytearray]], *, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    topics: dict[str | UUID, TopicProduceData] = {}
    for topic, partition, records in wanted:
        if topic not in topics:
            named, topic_id = (topic, NO_ID) if isinstance(topic, str) else ("", topic)
            topics[topic] = TopicProduceData(name=named, topic_id=topic_id, partition_data=[])
        topics[topic].partition_data.append(PartitionProduceData(index=partition, records=memoryview(records)))
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=list(topics.values())
    )


def wanted(
    topic: str | UUID,
    offset: int = 0,
    *,
    partition: int = 0,
    max_bytes: int = 1 << 20,
    epoch: int = -1,
    last_epoch: int = -1,
) -> FetchTopic:
    """One partition of a fetch."""
    each = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )
    return (
        FetchTopic(topic=topic, partitions=[each])
        if isinstance(topic, str)
        else FetchTopic(topic_id=topic, partitions=[each])
    )


def fetch_request(
    topics: Sequence[FetchTopic],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 << 20,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
    forgotten: Sequence[ForgottenTopic] = (),
    replica_id: int = -1,
) -> FetchRequest:
    """`session` is its id and the epoch."""
    return FetchRequest(
        replica_id=replica_id,
        replica_state=ReplicaState(replica_id=replica_id),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=list(topics),
        forgotten_topics_data=list(forgotten),
    )


def _fetch_version(request: FetchRequest) -> int:
    return BY_NAME if all(topic.topic for topic in request.topics) else 18


def fetch_all(broker: AnyBroker, request: FetchRequest, version: int | None = None) -> FetchResponse:
    return broker.call(request, FetchResponse, version or _fetch_version(request))


def begin_fetch(broker: AnyBroker, request: FetchRequest) -> Pending[FetchResponse]:
    return broker.begin(request, FetchResponse, _fetch_version(request))


def fetch(broker: AnyBroker, topic: str | UUID, offset: int = 0, **options: int) -> PartitionData:
    """One partition, without a session and without waiting."""
    return partitions_of(fetch_all(broker, fetch_request([wanted(topic, offset, **options)])))[0]


def partitions_of(response: FetchResponse) -> list[PartitionData]:
    assert response.error_code == ErrorCode.NONE
    return [partition for topic in response.responses for partition in topic.partitions]


def sizes(response: FetchResponse) -> list[int]:
    return [size_of(each) for each in partitions_of(response)]


def size_of(partition: PartitionData) -> int:
    assert isinstance(partition.records, memoryview)
    return len(partition.records)


# --- offsets


def list_offset(
    broker: AnyBroker, topic: str, timestamp: int, *, partition: int = 0, version: int = 11, epoch: int = -1
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])], timeout_ms=1000
    )
    return broker.call(request, ListOffsetsResponse, version).topics[0].partitions[0]


def end_of_epoch(broker: AnyBroker, topic: str, epoch: int, *, current: int = -1) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    return broker.call(request, OffsetForLeaderEpochResponse).topics[0].partitions[0]


def delete_records(broker: AnyBroker, topic: str, offset: int, *, partition: int = 0) -> DeleteRecordsPartitionResult:
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=10_000)
    return broker.call(request, DeleteRecordsResponse).topics[0].partitions[0]
