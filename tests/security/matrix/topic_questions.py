"""Requests about topics and their records."""

from collections.abc import Iterator
from uuid import UUID

from odradek.protocol.messages import (
    create_partitions,
    create_topics,
    describe_producers,
    describe_topic_partitions,
    fetch,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from tests.security.matrix.question import Question, produce_request, record_batch
from tests.security.matrix.rights import Names


def topic_questions(names: Names, topic_id: UUID) -> Iterator[Question]:
    both = (names.topic, names.missing_topic)
    rights = {"include_topic_authorized_operations": True, "allow_auto_topic_creation": False}
    named = [metadata.MetadataRequestTopic(name=name) for name in both]
    yield Question("Metadata", metadata.MetadataRequest(topics=named, **rights), metadata.MetadataResponse)
    by_id = [metadata.MetadataRequestTopic(name=None, topic_id=topic_id)]
    yield Question("Metadata by id", metadata.MetadataRequest(topics=by_id, **rights), metadata.MetadataResponse)
    yield Question(
        "Metadata of everything",
        metadata.MetadataRequest(topics=None, include_cluster_authorized_operations=True, **rights),
        metadata.MetadataResponse,
        10,
    )
    yield Question(
        "Metadata that creates",
        metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="!")], allow_auto_topic_creation=True),
        metadata.MetadataResponse,
    )
    described = [describe_topic_partitions.TopicRequest(name=name) for name in both]
    for label, topics in (("DescribeTopicPartitions", described), ("DescribeTopicPartitions of everything", [])):
        yield Question(
            label,
            describe_topic_partitions.DescribeTopicPartitionsRequest(topics=topics, cursor=None),
            describe_topic_partitions.DescribeTopicPartitionsResponse,
        )
    yield Question("Produce", produce_request(both), produce.ProduceResponse, 12)
    appended = [produce.PartitionProduceData(index=0, records=record_batch())]
    topic_data = [produce.TopicProduceData(topic_id=topic_id, partition_data=appended)]
    yield Question(
        "Produce by id",
        produce.ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=topic_data),
        produce.ProduceResponse,
    )
    fetched = [
        fetch.FetchTopic(topic=name, partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)])
        for name in both
    ]
    yield Question("Fetch", fetch_request(fetched), fetch.FetchResponse, 12)
    fetched_by_id = fetch.FetchTopic(
        topic_id=topic_id, partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)]
    )
    yield Question("Fetch by id", fetch_request([fetched_by_id]), fetch.FetchResponse)
    listed = [
        list_offsets.ListOffsetsTopic(
            name=name, partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
        )
        for name in both
    ]
    yield Question(
        "ListOffsets", list_offsets.ListOffsetsRequest(replica_id=-1, topics=listed), list_offsets.ListOffsetsResponse
    )
    epochs = [
        offset_for_leader_epoch.OffsetForLeaderTopic(
            topic=name, partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        )
        for name in both
    ]
    yield Question(
        "OffsetForLeaderEpoch",
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=epochs),
        offset_for_leader_epoch.OffsetForLeaderEpochResponse,
    )
    producers = [describe_producers.TopicRequest(name=name, partition_indexes=[0]) for name in both]
    yield Question(
        "DescribeProducers",
        describe_producers.DescribeProducersRequest(topics=producers),
        describe_producers.DescribeProducersResponse,
    )


def fetch_request(topics: list[fetch.FetchTopic]) -> fetch.FetchRequest:
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, session_id=0, session_epoch=-1, topics=topics)


def topic_creations(names: Names) -> Iterator[Question]:
    new = [
        create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in (names.topic, names.missing_topic)
    ]
    yield Question(
        "CreateTopics",
        create_topics.CreateTopicsRequest(topics=new, validate_only=True),
        create_topics.CreateTopicsResponse,
    )
    grown = [
        create_partitions.CreatePartitionsTopic(name=name, count=2, assignments=None)
        for name in (names.topic, names.missing_topic)
    ]
    yield Question(
        "CreatePartitions",
        create_partitions.CreatePartitionsRequest(topics=grown, timeout_ms=60_000, validate_only=True),
        create_partitions.CreatePartitionsResponse,
    )
