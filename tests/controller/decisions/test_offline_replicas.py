"""Replicas on failed log directories: who leads in their place, and what stays as it is."""

import uuid
from dataclasses import replace

import pytest

from odradek.controller.decisions.offline_replicas import MAX_OFFLINE_REPLICAS, OfflineReplica, decide_offline_replicas
from odradek.metadata.entities import BrokerImage, PartitionImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_LEADER
from tests.controller.clusters import TOPIC_ID, after, broker, cluster_of, image_of, partition, topic

BROKERS = [broker(1), broker(2), broker(3)]
FENCED = [broker(1), replace(broker(2), is_fenced=True), broker(3)]
REPLICA = OfflineReplica(TOPIC_ID, 0)


def decide(present: PartitionImage, brokers: list[BrokerImage] | None = None, **settings: str) -> PartitionImage:
    cluster = cluster_of(image_of(brokers or BROKERS, topic(present), **settings))
    error, changes = decide_offline_replicas(1, 1, [REPLICA, REPLICA], cluster)
    assert error is ErrorCode.NONE
    return after(cluster, changes).image.topics["t"].partitions[0]


def test_another_in_sync_replica_leads_and_the_failed_one_leaves_every_set() -> None:
    changed = decide(partition(0, [1, 2, 3]), min_insync_replicas="3")
    assert (changed.leader, changed.in_sync_replicas, changed.eligible_leader_replicas) == (2, (2, 3), ())
    assert (changed.leader_epoch, changed.partition_epoch) == (6, 8)


def test_a_failed_follower_is_not_waited_for() -> None:
    changed = decide(partition(0, [2, 1, 3], [2, 1]))
    assert (changed.leader, changed.leader_epoch, changed.in_sync_replicas) == (2, 5, (2,))


@pytest.mark.parametrize("replicas", [[1], [1, 2, 3]])
def test_the_only_replica_with_the_records_stays_the_leader(replicas: list[int]) -> None:
    present = partition(0, replicas, [1])
    assert decide(present) == present


def test_a_replica_outside_the_sets_leads_where_unclean_elections_are_allowed() -> None:
    changed = decide(partition(0, [1, 2, 3], [1]), unclean_leader_election_enable="true")
    assert (changed.leader, changed.in_sync_replicas) == (2, (2,))


def test_an_eligible_replica_that_is_away_is_waited_for() -> None:
    present = replace(partition(0, [1, 2, 3], [1]), eligible_leader_replicas=(2,))
    changed = decide(present, FENCED, min_insync_replicas="2")
    assert (changed.leader, changed.in_sync_replicas, changed.eligible_leader_replicas) == (NO_LEADER, (), (2,))


def test_unknown_partitions_are_ignored_and_old_registrations_refused() -> None:
    cluster = cluster_of(image_of(BROKERS, topic(partition(0, [1, 2, 3]))))
    unknown = [OfflineReplica(uuid.UUID(int=9), 0), OfflineReplica(TOPIC_ID, 7)]
    assert decide_offline_replicas(1, 1, unknown, cluster) == (ErrorCode.NONE, [])
    assert decide_offline_replicas(1, 0, [REPLICA], cluster) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert decide_offline_replicas(9, 1, [REPLICA], cluster) == (ErrorCode.STALE_BROKER_EPOCH, [])
    too_many = [REPLICA] * (MAX_OFFLINE_REPLICAS + 1)
    assert decide_offline_replicas(1, 1, too_many, cluster) == (ErrorCode.INVALID_REQUEST, [])
