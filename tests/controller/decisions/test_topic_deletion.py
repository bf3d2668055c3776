"""Which topics a request deletes."""

import uuid

from odradek.controller.decisions.topic_deletion import decide_deletions
from odradek.metadata.changes import TopicCreated, TopicDeleted
from odradek.metadata.entities import PartitionImage, TopicImage
from odradek.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode

A, B, UNKNOWN = uuid.UUID(int=0xA), uuid.UUID(int=0xB), uuid.UUID(int=0xC)
PARTITION = PartitionImage(0, (0,), (0,), 0, 0, 0)
IMAGE = MetadataImage(version=0, cluster_id="c", controller_id=0).apply_all(
    TopicCreated(TopicImage(name, topic_id, (PARTITION,), is_internal=False)) for name, topic_id in (("a", A), ("b", B))
)


def test_topics_are_deleted_by_name_and_by_id() -> None:
    results, changes = decide_deletions(IMAGE, ["a"], [B], is_enabled=True)
    assert {(result.name, result.topic_id, result.error) for result in results} == {
        ("a", A, ErrorCode.NONE),
        ("b", B, ErrorCode.NONE),
    }
    assert set(changes) == {TopicDeleted(A), TopicDeleted(B)}


def test_unknown_topics_are_said_to_be_unknown() -> None:
    results, changes = decide_deletions(IMAGE, ["x"], [UNKNOWN], is_enabled=True)
    assert changes == []
    assert {(result.name, result.topic_id, result.error, result.message) for result in results} == {
        ("x", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        (None, UNKNOWN, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."),
    }


def test_a_topic_that_is_meant_twice_is_not_deleted() -> None:
    for names, topic_ids in ((["a", "a"], []), ([], [A, A]), (["a"], [A])):
        results, changes = decide_deletions(IMAGE, names, topic_ids, is_enabled=True)
        assert changes == []
        assert [result.error for result in results] == [ErrorCode.INVALID_REQUEST]


def test_nothing_is_deleted_where_deletion_is_disabled() -> None:
    results, changes = decide_deletions(IMAGE, ["a", "x"], [B], is_enabled=False)
    assert changes == []
    assert {result.error for result in results} == {ErrorCode.TOPIC_DELETION_DISABLED}
