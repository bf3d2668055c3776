"""Decisions about whole requests: a result for each thing named, and changes for those accepted."""

from odradek.configuration.broker_configs import BrokerConfig
from odradek.controller.decisions.request_results import (
    decide_partition_additions,
    decide_producer_ids,
    decide_quota_changes,
    decide_topic_creations,
)
from odradek.controller.decisions.topics import MAX_PARTITIONS_PER_REQUEST, Cluster, NewPartitions, NewTopic
from odradek.metadata.changes import BrokerRegistered, Change, ClientQuotaChanged, ProducerIdsAllocated, TopicCreated
from odradek.metadata.client_quotas import QuotaAlteration, QuotaOperation
from odradek.metadata.entities import BrokerImage
from odradek.metadata.snapshot import empty_image
from odradek.protocol.errors import ErrorCode
from tests.controller.counted_text import CountedText
from tests.metadata.inline_host import CountingEntropy


def cluster(*changes: Change) -> Cluster:
    entropy = CountingEntropy()
    image = empty_image("c").apply_all([BrokerRegistered(BrokerImage(0, {})), *changes])
    return Cluster(image, BrokerConfig.from_properties({}), entropy.random_below, entropy.uuid)


def test_every_topic_has_one_result_and_refused_ones_no_change() -> None:
    requests = [NewTopic(name=name) for name in ("twice", "new", "twice", "/")]
    results, changes = decide_topic_creations(requests, cluster())
    assert {result.name: result.error for result in results} == {
        "new": ErrorCode.NONE,
        "/": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert [change.topic.name for change in changes if isinstance(change, TopicCreated)] == ["new"]


def test_partitions_of_a_topic_named_twice_are_not_added() -> None:
    _, created = decide_topic_creations([NewTopic(name="t")], cluster())
    results, changes = decide_partition_additions([NewPartitions(name="t", count=5)] * 2, cluster(*created))
    assert [(result.name, result.error) for result in results] == [("t", ErrorCode.INVALID_REQUEST)]
    assert changes == []


def test_names_that_are_all_repeated_are_compared_about_once_each() -> None:
    names, comparisons = CountedText.of(f"t{number}" for number in range(300))
    decide_partition_additions([NewPartitions(name=name, count=5) for name in names * 2], cluster())
    decide_topic_creations([NewTopic(name=name) for name in names * 2], cluster())
    assert comparisons[0] < 4 * len(names)


def test_partitions_added_by_one_request_are_counted_over_all_its_topics_before_any_is_made() -> None:
    _, created = decide_topic_creations([NewTopic(name=f"t{number}") for number in range(3)], cluster())
    half = MAX_PARTITIONS_PER_REQUEST // 2
    present = cluster(*created)
    too_many = [NewPartitions(name=f"t{number}", count=1 + half) for number in range(3)]
    results, changes = decide_partition_additions(too_many, present)
    assert {(result.error, result.message) for result in results} == {
        (ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    }
    assert len(results) == 3
    assert changes == []
    results, changes = decide_partition_additions(too_many[:2], present)
    assert [result.error for result in results] == [ErrorCode.NONE] * 2
    assert len(changes) == 2


def test_only_partitions_that_would_be_made_are_counted() -> None:
    _, created = decide_topic_creations([NewTopic(name="t")], cluster())
    requests = [
        NewPartitions(name="t", count=2),
        NewPartitions(name="unknown", count=2**31 - 1),
        *[NewPartitions(name="twice", count=2**31 - 1)] * 2,
    ]
    results, _ = decide_partition_additions(requests, cluster(*created))
    assert {result.name: result.error for result in results} == {
        "t": ErrorCode.NONE,
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    huge = NewPartitions(name="t", count=2**31 - 1, assignments=[(0,)])
    (result,), _ = decide_partition_additions([huge], cluster(*created))
    assert result.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    (result,), _ = decide_partition_additions([NewPartitions(name="t", count=2**31 - 1)], cluster(*created))
    assert result.error is ErrorCode.POLICY_VIOLATION


def test_quota_that_does_not_change_needs_no_commit() -> None:
    alteration = QuotaAlteration([("user", "ann")], [QuotaOperation("consumer_byte_rate", 5.0, remove=False)])
    _, changes = decide_quota_changes([alteration], cluster())
    assert changes == [ClientQuotaChanged(frozenset({("user", "ann")}), {"consumer_byte_rate": 5.0})]
    results, changes = decide_quota_changes([alteration], cluster(*changes))
    assert [result.error for result in results] == [ErrorCode.NONE]
    assert changes == []


def test_producer_ids_continue_where_the_image_ends() -> None:
    assert decide_producer_ids(10, cluster(ProducerIdsAllocated(40))) == (40, [ProducerIdsAllocated(50)])
