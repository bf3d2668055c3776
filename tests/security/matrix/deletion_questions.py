"""Requests that delete records, offsets, groups and topics."""

from collections.abc import Iterator
from uuid import UUID

from odradek.protocol.messages import (
    delete_groups,
    delete_records,
    delete_topics,
    offset_delete,
)
from tests.security.matrix.question import Question
from tests.security.matrix.rights import Names


def deletion_questions(names: Names, topic_id: UUID) -> Iterator[Question]:
    both = (names.topic, names.missing_topic)
    records = [
        delete_records.DeleteRecordsTopic(
            name=name, partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
        )
        for name in both
    ]
    yield Question(
        "DeleteRecords",
        delete_records.DeleteRecordsRequest(topics=records, timeout_ms=1000),
        delete_records.DeleteRecordsResponse,
    )
    offsets = [
        offset_delete.OffsetDeleteRequestTopic(
            name=name, partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
        )
        for name in both
    ]
    yield Question(
        "OffsetDelete",
        offset_delete.OffsetDeleteRequest(group_id=names.group, topics=offsets),
        offset_delete.OffsetDeleteResponse,
    )
    yield Question(
        "DeleteGroups",
        delete_groups.DeleteGroupsRequest(groups_names=[names.group]),
        delete_groups.DeleteGroupsResponse,
    )
    missing = delete_topics.DeleteTopicState(name=names.missing_topic)
    present = delete_topics.DeleteTopicState(name=names.topic)
    by_id = delete_topics.DeleteTopicState(name=None, topic_id=topic_id)
    for label, topic in (
        ("DeleteTopics of a missing topic", missing),
        ("DeleteTopics by id", by_id),
        ("DeleteTopics", present),
    ):
        yield Question(
            label,
            delete_topics.DeleteTopicsRequest(topics=[topic], timeout_ms=10_000),
            delete_topics.DeleteTopicsResponse,
        )
