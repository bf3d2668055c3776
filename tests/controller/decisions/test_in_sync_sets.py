"""AlterPartition: which proposals of a leader are refused, with which error, and what an accepted one changes."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from odradek.controller.decisions.in_sync_sets import InSyncProposal, InSyncResult, decide_in_sync_changes
from odradek.protocol.errors import ErrorCode
from tests.controller.clusters import TOPIC_ID, after, broker, cluster_of, image_of, partition, topic

SHUTTING_DOWN = replace(broker(4), is_shutting_down=True)
BROKERS = [broker(1), broker(2, epoch=5), replace(broker(3), is_fenced=True), SHUTTING_DOWN]
CLUSTER = cluster_of(image_of(BROKERS, topic(partition(0, [1, 2, 3, 4, 9], [1]))))
GOOD = InSyncProposal(TOPIC_ID, 0, 5, 7, ((1, 1), (2, 5)))


def decide(proposal: InSyncProposal, node_id: int = 1, broker_epoch: int = 1) -> object:
    results, _ = decide_in_sync_changes(node_id, broker_epoch, [proposal], CLUSTER)
    return results if isinstance(results, ErrorCode) else results[0].error


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"topic_id": uuid.UUID(int=9)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 6}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 8}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 6}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"in_sync_replicas": ((2, 5),)}, ErrorCode.INVALID_REQUEST),
        ({"in_sync_replicas": ((1, 1), (7, 1))}, ErrorCode.INVALID_REQUEST),
        ({"in_sync_replicas": ((1, 1), (1, 1))}, ErrorCode.INVALID_REQUEST),
        ({"is_recovering": True}, ErrorCode.INVALID_REQUEST),
        ({"in_sync_replicas": ((1, 1), (2, 4))}, ErrorCode.INELIGIBLE_REPLICA),
        ({"in_sync_replicas": ((1, 1), (3, 1))}, ErrorCode.INELIGIBLE_REPLICA),
        ({"in_sync_replicas": ((1, 1), (4, 1))}, ErrorCode.INELIGIBLE_REPLICA),
        ({"in_sync_replicas": ((1, 1), (9, 1))}, ErrorCode.INELIGIBLE_REPLICA),
        ({"in_sync_replicas": ((1, 1), (2, -1))}, ErrorCode.NONE),
        ({}, ErrorCode.NONE),
    ],
)
def test_proposals_are_checked_in_kafkas_order(change: dict[str, Any], error: ErrorCode) -> None:
    assert decide(GOOD._replace(**change)) is error


def test_only_the_leader_with_its_present_epoch_may_propose() -> None:
    assert decide(GOOD, node_id=2, broker_epoch=5) is ErrorCode.INVALID_REQUEST
    assert decide(GOOD, broker_epoch=2) is ErrorCode.STALE_BROKER_EPOCH
    assert decide(GOOD, node_id=8) is ErrorCode.STALE_BROKER_EPOCH


def test_accepted_proposal_raises_the_partition_epoch_only() -> None:
    results, changes = decide_in_sync_changes(1, 1, [GOOD, GOOD], CLUSTER)
    assert results == [InSyncResult(ErrorCode.NONE, 5, 8, (1, 2)), InSyncResult(ErrorCode.INVALID_UPDATE_VERSION)]
    changed = after(CLUSTER, changes).image.topics["t"].partitions[0]
    assert (changed.leader_epoch, changed.partition_epoch, changed.in_sync_replicas) == (5, 8, (1, 2))


def test_proposal_that_completes_a_reassignment_without_the_leader_elects_another() -> None:
    moving = replace(partition(0, [2, 1], [1]), adding_replicas=(2,), removing_replicas=(1,))
    cluster = cluster_of(image_of(BROKERS, topic(moving)))
    results, changes = decide_in_sync_changes(1, 1, [GOOD], cluster)
    assert results == [InSyncResult(ErrorCode.NEW_LEADER_ELECTED)]
    moved = after(cluster, changes).image.topics["t"].partitions[0]
    assert (moved.replicas, moved.in_sync_replicas, moved.leader, moved.leader_epoch) == ((2,), (2,), 2, 6)
    assert not moved.adding_replicas + moved.removing_replicas


def test_shrinking_below_the_minimum_keeps_the_others_eligible() -> None:
    full = topic(partition(0, [1, 2], [1, 2]))
    cluster = cluster_of(image_of(BROKERS, full, min_insync_replicas="2"))
    _, changes = decide_in_sync_changes(1, 1, [GOOD._replace(in_sync_replicas=((1, 1),))], cluster)
    shrunk = after(cluster, changes).image.topics["t"].partitions[0]
    assert (shrunk.in_sync_replicas, shrunk.eligible_leader_replicas) == ((1,), (2,))
