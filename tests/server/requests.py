"""The few requests that the tests of this folder make over a socket."""

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
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
from tests.wire import WireClient

VERSION = 12  # of Produce and Fetch: topics have names


def batch(*values: bytes) -> bytearray:
    return build_batch([Record(offset, 1_000, b"key", value) for offset, value in enumerate(values or (b"value",))])


def create_topic(client: WireClient, name: str, partitions: int = 1, **configs: str) -> None:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    answer = client.call(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE, answer.topics[0]


def produce_request(topic: str, records: bytes | bytearray, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=memoryview(records))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def produce(client: WireClient, topic: str, *values: bytes, partition: int = 0) -> int:
    """The offset of the first."""
    request = produce_request(topic, batch(*values), partition=partition)
    reported = client.call(request, ProduceResponse, VERSION).responses[0].partition_responses[0]
    assert reported.error_code == ErrorCode.NONE, reported
    return reported.base_offset


def fetch_request(
    topic: str, offset: int = 0, *, max_wait_ms: int = 0, max_bytes: int = 64 << 20, partition: int = 0
) -> FetchRequest:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )


def records_of(answer: FetchResponse) -> bytes:
    reported = answer.responses[0].partitions[0]
    assert reported.error_code == ErrorCode.NONE, reported
    return bytes(reported.records or b"")  # type: ignore[arg-type]  # decoded bytes, no slice


def fetch(client: WireClient, topic: str, offset: int = 0) -> bytes:
    return records_of(client.call(fetch_request(topic, offset), FetchResponse, VERSION))


def end_offset(client: WireClient, topic: str, partition: int = 0) -> int:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    reported = client.call(request, ListOffsetsResponse).topics[0].partitions[0]
    assert reported.error_code == ErrorCode.NONE
    return reported.offset


def greet(client: WireClient) -> None:
    """A round trip. After two of them, what others had sent before has been looked at."""
    for _ in range(2):
        client.call(ApiVersionsRequest(), ApiVersionsResponse, 0)
